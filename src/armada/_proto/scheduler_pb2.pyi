import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from armada_client.k8s.io.api.core.v1 import generated_pb2 as _generated_pb2
from armada_client.k8s.io.apimachinery.pkg.api.resource import generated_pb2 as _generated_pb2_1
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobRunState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNKNOWN: _ClassVar[JobRunState]
    PENDING: _ClassVar[JobRunState]
    RUNNING: _ClassVar[JobRunState]
    SUCCEEDED: _ClassVar[JobRunState]
    FAILED: _ClassVar[JobRunState]
UNKNOWN: JobRunState
PENDING: JobRunState
RUNNING: JobRunState
SUCCEEDED: JobRunState
FAILED: JobRunState

class Executor(_message.Message):
    __slots__ = ("id", "pool", "nodes", "lastUpdateTime", "unassigned_job_runs")
    ID_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    LASTUPDATETIME_FIELD_NUMBER: _ClassVar[int]
    UNASSIGNED_JOB_RUNS_FIELD_NUMBER: _ClassVar[int]
    id: str
    pool: str
    nodes: _containers.RepeatedCompositeFieldContainer[Node]
    lastUpdateTime: _timestamp_pb2.Timestamp
    unassigned_job_runs: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[str] = ..., pool: _Optional[str] = ..., nodes: _Optional[_Iterable[_Union[Node, _Mapping]]] = ..., lastUpdateTime: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., unassigned_job_runs: _Optional[_Iterable[str]] = ...) -> None: ...

class Node(_message.Message):
    __slots__ = ("id", "last_seen", "taints", "labels", "total_resources", "state_by_job_run_id", "name", "unallocatable_resources", "unschedulable", "reporting_node_type", "pool", "executor", "resource_usage_by_queue_and_pool", "reservation")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class StateByJobRunIdEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: JobRunState
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[JobRunState, str]] = ...) -> None: ...
    class UnallocatableResourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: ResourceList
        def __init__(self, key: _Optional[int] = ..., value: _Optional[_Union[ResourceList, _Mapping]] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    LAST_SEEN_FIELD_NUMBER: _ClassVar[int]
    TAINTS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    STATE_BY_JOB_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UNALLOCATABLE_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    UNSCHEDULABLE_FIELD_NUMBER: _ClassVar[int]
    REPORTING_NODE_TYPE_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    EXECUTOR_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_USAGE_BY_QUEUE_AND_POOL_FIELD_NUMBER: _ClassVar[int]
    RESERVATION_FIELD_NUMBER: _ClassVar[int]
    id: str
    last_seen: _timestamp_pb2.Timestamp
    taints: _containers.RepeatedCompositeFieldContainer[_generated_pb2.Taint]
    labels: _containers.ScalarMap[str, str]
    total_resources: ResourceList
    state_by_job_run_id: _containers.ScalarMap[str, JobRunState]
    name: str
    unallocatable_resources: _containers.MessageMap[int, ResourceList]
    unschedulable: bool
    reporting_node_type: str
    pool: str
    executor: str
    resource_usage_by_queue_and_pool: _containers.RepeatedCompositeFieldContainer[PoolQueueResource]
    reservation: str
    def __init__(self, id: _Optional[str] = ..., last_seen: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., taints: _Optional[_Iterable[_Union[_generated_pb2.Taint, _Mapping]]] = ..., labels: _Optional[_Mapping[str, str]] = ..., total_resources: _Optional[_Union[ResourceList, _Mapping]] = ..., state_by_job_run_id: _Optional[_Mapping[str, JobRunState]] = ..., name: _Optional[str] = ..., unallocatable_resources: _Optional[_Mapping[int, ResourceList]] = ..., unschedulable: _Optional[bool] = ..., reporting_node_type: _Optional[str] = ..., pool: _Optional[str] = ..., executor: _Optional[str] = ..., resource_usage_by_queue_and_pool: _Optional[_Iterable[_Union[PoolQueueResource, _Mapping]]] = ..., reservation: _Optional[str] = ...) -> None: ...

class PoolQueueResource(_message.Message):
    __slots__ = ("pool", "queue", "resources")
    POOL_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    pool: str
    queue: str
    resources: ResourceList
    def __init__(self, pool: _Optional[str] = ..., queue: _Optional[str] = ..., resources: _Optional[_Union[ResourceList, _Mapping]] = ...) -> None: ...

class ResourceList(_message.Message):
    __slots__ = ("resources",)
    class ResourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _generated_pb2_1.Quantity
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_generated_pb2_1.Quantity, _Mapping]] = ...) -> None: ...
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    resources: _containers.MessageMap[str, _generated_pb2_1.Quantity]
    def __init__(self, resources: _Optional[_Mapping[str, _generated_pb2_1.Quantity]] = ...) -> None: ...

class JobSchedulingInfo(_message.Message):
    __slots__ = ("lifetime", "at_most_once", "preemptible", "concurrency_safe", "object_requirements", "priority_class_name", "submit_time", "priority", "version", "resource_mutations")
    LIFETIME_FIELD_NUMBER: _ClassVar[int]
    AT_MOST_ONCE_FIELD_NUMBER: _ClassVar[int]
    PREEMPTIBLE_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_SAFE_FIELD_NUMBER: _ClassVar[int]
    OBJECT_REQUIREMENTS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_CLASS_NAME_FIELD_NUMBER: _ClassVar[int]
    SUBMIT_TIME_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_MUTATIONS_FIELD_NUMBER: _ClassVar[int]
    lifetime: int
    at_most_once: bool
    preemptible: bool
    concurrency_safe: bool
    object_requirements: _containers.RepeatedCompositeFieldContainer[ObjectRequirements]
    priority_class_name: str
    submit_time: _timestamp_pb2.Timestamp
    priority: int
    version: int
    resource_mutations: RetryResourceMutations
    def __init__(self, lifetime: _Optional[int] = ..., at_most_once: _Optional[bool] = ..., preemptible: _Optional[bool] = ..., concurrency_safe: _Optional[bool] = ..., object_requirements: _Optional[_Iterable[_Union[ObjectRequirements, _Mapping]]] = ..., priority_class_name: _Optional[str] = ..., submit_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., priority: _Optional[int] = ..., version: _Optional[int] = ..., resource_mutations: _Optional[_Union[RetryResourceMutations, _Mapping]] = ...) -> None: ...

class RetryResourceMutations(_message.Message):
    __slots__ = ("memory_factor", "memory_static")
    MEMORY_FACTOR_FIELD_NUMBER: _ClassVar[int]
    MEMORY_STATIC_FIELD_NUMBER: _ClassVar[int]
    memory_factor: float
    memory_static: str
    def __init__(self, memory_factor: _Optional[float] = ..., memory_static: _Optional[str] = ...) -> None: ...

class ObjectRequirements(_message.Message):
    __slots__ = ("podRequirements",)
    PODREQUIREMENTS_FIELD_NUMBER: _ClassVar[int]
    podRequirements: PodRequirements
    def __init__(self, podRequirements: _Optional[_Union[PodRequirements, _Mapping]] = ...) -> None: ...

class PodRequirements(_message.Message):
    __slots__ = ("nodeSelector", "affinity", "tolerations", "preemptionPolicy", "resourceRequirements", "annotations", "resource_mutations")
    class NodeSelectorEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class AnnotationsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NODESELECTOR_FIELD_NUMBER: _ClassVar[int]
    AFFINITY_FIELD_NUMBER: _ClassVar[int]
    TOLERATIONS_FIELD_NUMBER: _ClassVar[int]
    PREEMPTIONPOLICY_FIELD_NUMBER: _ClassVar[int]
    RESOURCEREQUIREMENTS_FIELD_NUMBER: _ClassVar[int]
    ANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_MUTATIONS_FIELD_NUMBER: _ClassVar[int]
    nodeSelector: _containers.ScalarMap[str, str]
    affinity: _generated_pb2.Affinity
    tolerations: _containers.RepeatedCompositeFieldContainer[_generated_pb2.Toleration]
    preemptionPolicy: str
    resourceRequirements: _generated_pb2.ResourceRequirements
    annotations: _containers.ScalarMap[str, str]
    resource_mutations: RetryResourceMutations
    def __init__(self, nodeSelector: _Optional[_Mapping[str, str]] = ..., affinity: _Optional[_Union[_generated_pb2.Affinity, _Mapping]] = ..., tolerations: _Optional[_Iterable[_Union[_generated_pb2.Toleration, _Mapping]]] = ..., preemptionPolicy: _Optional[str] = ..., resourceRequirements: _Optional[_Union[_generated_pb2.ResourceRequirements, _Mapping]] = ..., annotations: _Optional[_Mapping[str, str]] = ..., resource_mutations: _Optional[_Union[RetryResourceMutations, _Mapping]] = ...) -> None: ...

class ExecutorSettings(_message.Message):
    __slots__ = ("executorId", "cordoned", "cordonReason", "setByUser", "setAtTime")
    EXECUTORID_FIELD_NUMBER: _ClassVar[int]
    CORDONED_FIELD_NUMBER: _ClassVar[int]
    CORDONREASON_FIELD_NUMBER: _ClassVar[int]
    SETBYUSER_FIELD_NUMBER: _ClassVar[int]
    SETATTIME_FIELD_NUMBER: _ClassVar[int]
    executorId: str
    cordoned: bool
    cordonReason: str
    setByUser: str
    setAtTime: _timestamp_pb2.Timestamp
    def __init__(self, executorId: _Optional[str] = ..., cordoned: _Optional[bool] = ..., cordonReason: _Optional[str] = ..., setByUser: _Optional[str] = ..., setAtTime: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
