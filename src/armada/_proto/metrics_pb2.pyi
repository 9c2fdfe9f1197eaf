import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from armada_client.k8s.io.apimachinery.pkg.api.resource import generated_pb2 as _generated_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Event(_message.Message):
    __slots__ = ("created", "cycle_metrics")
    CREATED_FIELD_NUMBER: _ClassVar[int]
    CYCLE_METRICS_FIELD_NUMBER: _ClassVar[int]
    created: _timestamp_pb2.Timestamp
    cycle_metrics: CycleMetrics
    def __init__(self, created: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., cycle_metrics: _Optional[_Union[CycleMetrics, _Mapping]] = ...) -> None: ...

class CycleMetrics(_message.Message):
    __slots__ = ("pool", "queue_metrics", "allocatable_resources", "spot_price", "cycle_time")
    class QueueMetricsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: QueueMetrics
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[QueueMetrics, _Mapping]] = ...) -> None: ...
    class AllocatableResourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _generated_pb2.Quantity
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_generated_pb2.Quantity, _Mapping]] = ...) -> None: ...
    POOL_FIELD_NUMBER: _ClassVar[int]
    QUEUE_METRICS_FIELD_NUMBER: _ClassVar[int]
    ALLOCATABLE_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    SPOT_PRICE_FIELD_NUMBER: _ClassVar[int]
    CYCLE_TIME_FIELD_NUMBER: _ClassVar[int]
    pool: str
    queue_metrics: _containers.MessageMap[str, QueueMetrics]
    allocatable_resources: _containers.MessageMap[str, _generated_pb2.Quantity]
    spot_price: float
    cycle_time: _timestamp_pb2.Timestamp
    def __init__(self, pool: _Optional[str] = ..., queue_metrics: _Optional[_Mapping[str, QueueMetrics]] = ..., allocatable_resources: _Optional[_Mapping[str, _generated_pb2.Quantity]] = ..., spot_price: _Optional[float] = ..., cycle_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class QueueMetrics(_message.Message):
    __slots__ = ("actual_share", "demand", "constrained_demand", "demand_by_resource_type", "constrained_demand_by_resource_type", "short_job_penalty", "billable_allocation_by_resource_type", "billable_price_override")
    class DemandByResourceTypeEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _generated_pb2.Quantity
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_generated_pb2.Quantity, _Mapping]] = ...) -> None: ...
    class ConstrainedDemandByResourceTypeEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _generated_pb2.Quantity
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_generated_pb2.Quantity, _Mapping]] = ...) -> None: ...
    class BillableAllocationByResourceTypeEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _generated_pb2.Quantity
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_generated_pb2.Quantity, _Mapping]] = ...) -> None: ...
    ACTUAL_SHARE_FIELD_NUMBER: _ClassVar[int]
    DEMAND_FIELD_NUMBER: _ClassVar[int]
    CONSTRAINED_DEMAND_FIELD_NUMBER: _ClassVar[int]
    DEMAND_BY_RESOURCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    CONSTRAINED_DEMAND_BY_RESOURCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    SHORT_JOB_PENALTY_FIELD_NUMBER: _ClassVar[int]
    BILLABLE_ALLOCATION_BY_RESOURCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    BILLABLE_PRICE_OVERRIDE_FIELD_NUMBER: _ClassVar[int]
    actual_share: float
    demand: float
    constrained_demand: float
    demand_by_resource_type: _containers.MessageMap[str, _generated_pb2.Quantity]
    constrained_demand_by_resource_type: _containers.MessageMap[str, _generated_pb2.Quantity]
    short_job_penalty: float
    billable_allocation_by_resource_type: _containers.MessageMap[str, _generated_pb2.Quantity]
    billable_price_override: float
    def __init__(self, actual_share: _Optional[float] = ..., demand: _Optional[float] = ..., constrained_demand: _Optional[float] = ..., demand_by_resource_type: _Optional[_Mapping[str, _generated_pb2.Quantity]] = ..., constrained_demand_by_resource_type: _Optional[_Mapping[str, _generated_pb2.Quantity]] = ..., short_job_penalty: _Optional[float] = ..., billable_allocation_by_resource_type: _Optional[_Mapping[str, _generated_pb2.Quantity]] = ..., billable_price_override: _Optional[float] = ...) -> None: ...
