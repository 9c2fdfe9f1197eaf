"""Protobuf, and only here: messages of the API and of the executor protocol <-> values of the model.

`jobs`, `queues`: what callers ask. `events`, `submitted`, `queries`: what they are shown. `agents`, `reports`: what
executors and the control plane tell each other. `podspec` and `kubernetes`: Kubernetes objects as their JSON.
`services`: bases to implement, stubs to call, errors as status codes. Knows the model and nothing else of ours.
"""
