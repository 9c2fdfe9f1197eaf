"""This machine as a place for pods: a container is a host process group with a folder of its own.

Images are not run, resources are counted but not enforced, and volumes are not mounted; a pod's log says so. Every
container runs under a few lines of shell that record its start and its exit code in files, so that it outlives this
process and nothing is lost when it ends meanwhile.
"""
