"""Kubernetes protobuf messages and their JSON, by descriptor."""
