from google.protobuf import empty_pb2 as _empty_pb2
from armada_client.armada import submit_pb2 as _submit_pb2
from armada_client.k8s.io.api.core.v1 import generated_pb2 as _generated_pb2
from armada_client.k8s.io.apimachinery.pkg.api.resource import generated_pb2 as _generated_pb2_1
from armada._proto import events_pb2 as _events_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LeaseRequest(_message.Message):
    __slots__ = ("executor_id", "pool", "resources", "minimum_job_size", "nodes", "max_jobs_to_lease", "unassigned_job_run_ids")
    class ResourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _generated_pb2_1.Quantity
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_generated_pb2_1.Quantity, _Mapping]] = ...) -> None: ...
    class MinimumJobSizeEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _generated_pb2_1.Quantity
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_generated_pb2_1.Quantity, _Mapping]] = ...) -> None: ...
    EXECUTOR_ID_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_JOB_SIZE_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    MAX_JOBS_TO_LEASE_FIELD_NUMBER: _ClassVar[int]
    UNASSIGNED_JOB_RUN_IDS_FIELD_NUMBER: _ClassVar[int]
    executor_id: str
    pool: str
    resources: _containers.MessageMap[str, _generated_pb2_1.Quantity]
    minimum_job_size: _containers.MessageMap[str, _generated_pb2_1.Quantity]
    nodes: _containers.RepeatedCompositeFieldContainer[NodeInfo]
    max_jobs_to_lease: int
    unassigned_job_run_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, executor_id: _Optional[str] = ..., pool: _Optional[str] = ..., resources: _Optional[_Mapping[str, _generated_pb2_1.Quantity]] = ..., minimum_job_size: _Optional[_Mapping[str, _generated_pb2_1.Quantity]] = ..., nodes: _Optional[_Iterable[_Union[NodeInfo, _Mapping]]] = ..., max_jobs_to_lease: _Optional[int] = ..., unassigned_job_run_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class NodeInfo(_message.Message):
    __slots__ = ("name", "taints", "labels", "allocatable_resources", "available_resources", "total_resources", "run_ids_by_state", "non_armada_allocated_resources", "unschedulable", "node_type", "pool", "resource_usage_by_queue_and_pool")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class AllocatableResourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _generated_pb2_1.Quantity
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_generated_pb2_1.Quantity, _Mapping]] = ...) -> None: ...
    class AvailableResourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _generated_pb2_1.Quantity
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_generated_pb2_1.Quantity, _Mapping]] = ...) -> None: ...
    class TotalResourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _generated_pb2_1.Quantity
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_generated_pb2_1.Quantity, _Mapping]] = ...) -> None: ...
    class RunIdsByStateEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _submit_pb2.JobState
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_submit_pb2.JobState, str]] = ...) -> None: ...
    class NonArmadaAllocatedResourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: ComputeResource
        def __init__(self, key: _Optional[int] = ..., value: _Optional[_Union[ComputeResource, _Mapping]] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    TAINTS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    ALLOCATABLE_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    RUN_IDS_BY_STATE_FIELD_NUMBER: _ClassVar[int]
    NON_ARMADA_ALLOCATED_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    UNSCHEDULABLE_FIELD_NUMBER: _ClassVar[int]
    NODE_TYPE_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_USAGE_BY_QUEUE_AND_POOL_FIELD_NUMBER: _ClassVar[int]
    name: str
    taints: _containers.RepeatedCompositeFieldContainer[_generated_pb2.Taint]
    labels: _containers.ScalarMap[str, str]
    allocatable_resources: _containers.MessageMap[str, _generated_pb2_1.Quantity]
    available_resources: _containers.MessageMap[str, _generated_pb2_1.Quantity]
    total_resources: _containers.MessageMap[str, _generated_pb2_1.Quantity]
    run_ids_by_state: _containers.ScalarMap[str, _submit_pb2.JobState]
    non_armada_allocated_resources: _containers.MessageMap[int, ComputeResource]
    unschedulable: bool
    node_type: str
    pool: str
    resource_usage_by_queue_and_pool: _containers.RepeatedCompositeFieldContainer[PoolQueueResource]
    def __init__(self, name: _Optional[str] = ..., taints: _Optional[_Iterable[_Union[_generated_pb2.Taint, _Mapping]]] = ..., labels: _Optional[_Mapping[str, str]] = ..., allocatable_resources: _Optional[_Mapping[str, _generated_pb2_1.Quantity]] = ..., available_resources: _Optional[_Mapping[str, _generated_pb2_1.Quantity]] = ..., total_resources: _Optional[_Mapping[str, _generated_pb2_1.Quantity]] = ..., run_ids_by_state: _Optional[_Mapping[str, _submit_pb2.JobState]] = ..., non_armada_allocated_resources: _Optional[_Mapping[int, ComputeResource]] = ..., unschedulable: _Optional[bool] = ..., node_type: _Optional[str] = ..., pool: _Optional[str] = ..., resource_usage_by_queue_and_pool: _Optional[_Iterable[_Union[PoolQueueResource, _Mapping]]] = ...) -> None: ...

class ComputeResource(_message.Message):
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

class PoolQueueResource(_message.Message):
    __slots__ = ("pool", "queue", "resources")
    class ResourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _generated_pb2_1.Quantity
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_generated_pb2_1.Quantity, _Mapping]] = ...) -> None: ...
    POOL_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    pool: str
    queue: str
    resources: _containers.MessageMap[str, _generated_pb2_1.Quantity]
    def __init__(self, pool: _Optional[str] = ..., queue: _Optional[str] = ..., resources: _Optional[_Mapping[str, _generated_pb2_1.Quantity]] = ...) -> None: ...

class LeaseStreamMessage(_message.Message):
    __slots__ = ("lease", "cancel_runs", "end", "preempt_runs")
    LEASE_FIELD_NUMBER: _ClassVar[int]
    CANCEL_RUNS_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    PREEMPT_RUNS_FIELD_NUMBER: _ClassVar[int]
    lease: JobRunLease
    cancel_runs: CancelRuns
    end: EndMarker
    preempt_runs: PreemptRuns
    def __init__(self, lease: _Optional[_Union[JobRunLease, _Mapping]] = ..., cancel_runs: _Optional[_Union[CancelRuns, _Mapping]] = ..., end: _Optional[_Union[EndMarker, _Mapping]] = ..., preempt_runs: _Optional[_Union[PreemptRuns, _Mapping]] = ...) -> None: ...

class JobRunLease(_message.Message):
    __slots__ = ("queue", "jobset", "user", "groups", "job", "job_run_id")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    JOBSET_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    JOB_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    queue: str
    jobset: str
    user: str
    groups: _containers.RepeatedScalarFieldContainer[str]
    job: _events_pb2.SubmitJob
    job_run_id: str
    def __init__(self, queue: _Optional[str] = ..., jobset: _Optional[str] = ..., user: _Optional[str] = ..., groups: _Optional[_Iterable[str]] = ..., job: _Optional[_Union[_events_pb2.SubmitJob, _Mapping]] = ..., job_run_id: _Optional[str] = ...) -> None: ...

class CancelRuns(_message.Message):
    __slots__ = ("job_run_ids_to_cancel",)
    JOB_RUN_IDS_TO_CANCEL_FIELD_NUMBER: _ClassVar[int]
    job_run_ids_to_cancel: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, job_run_ids_to_cancel: _Optional[_Iterable[str]] = ...) -> None: ...

class PreemptRuns(_message.Message):
    __slots__ = ("job_run_ids_to_preempt",)
    JOB_RUN_IDS_TO_PREEMPT_FIELD_NUMBER: _ClassVar[int]
    job_run_ids_to_preempt: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, job_run_ids_to_preempt: _Optional[_Iterable[str]] = ...) -> None: ...

class EndMarker(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EventList(_message.Message):
    __slots__ = ("events",)
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[_events_pb2.EventSequence]
    def __init__(self, events: _Optional[_Iterable[_Union[_events_pb2.EventSequence, _Mapping]]] = ...) -> None: ...
