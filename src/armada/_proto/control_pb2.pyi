import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ActiveJobState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNKNOWN: _ClassVar[ActiveJobState]
    QUEUED: _ClassVar[ActiveJobState]
    LEASED: _ClassVar[ActiveJobState]
    PENDING: _ClassVar[ActiveJobState]
    RUNNING: _ClassVar[ActiveJobState]
UNKNOWN: ActiveJobState
QUEUED: ActiveJobState
LEASED: ActiveJobState
PENDING: ActiveJobState
RUNNING: ActiveJobState

class Event(_message.Message):
    __slots__ = ("created", "executorSettingsUpsert", "executorSettingsDelete", "preemptOnExecutor", "cancelOnExecutor", "preemptOnQueue", "cancelOnQueue", "preemptOnNode", "cancelOnNode", "executorDelete")
    CREATED_FIELD_NUMBER: _ClassVar[int]
    EXECUTORSETTINGSUPSERT_FIELD_NUMBER: _ClassVar[int]
    EXECUTORSETTINGSDELETE_FIELD_NUMBER: _ClassVar[int]
    PREEMPTONEXECUTOR_FIELD_NUMBER: _ClassVar[int]
    CANCELONEXECUTOR_FIELD_NUMBER: _ClassVar[int]
    PREEMPTONQUEUE_FIELD_NUMBER: _ClassVar[int]
    CANCELONQUEUE_FIELD_NUMBER: _ClassVar[int]
    PREEMPTONNODE_FIELD_NUMBER: _ClassVar[int]
    CANCELONNODE_FIELD_NUMBER: _ClassVar[int]
    EXECUTORDELETE_FIELD_NUMBER: _ClassVar[int]
    created: _timestamp_pb2.Timestamp
    executorSettingsUpsert: ExecutorSettingsUpsert
    executorSettingsDelete: ExecutorSettingsDelete
    preemptOnExecutor: PreemptOnExecutor
    cancelOnExecutor: CancelOnExecutor
    preemptOnQueue: PreemptOnQueue
    cancelOnQueue: CancelOnQueue
    preemptOnNode: PreemptOnNode
    cancelOnNode: CancelOnNode
    executorDelete: ExecutorDelete
    def __init__(self, created: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., executorSettingsUpsert: _Optional[_Union[ExecutorSettingsUpsert, _Mapping]] = ..., executorSettingsDelete: _Optional[_Union[ExecutorSettingsDelete, _Mapping]] = ..., preemptOnExecutor: _Optional[_Union[PreemptOnExecutor, _Mapping]] = ..., cancelOnExecutor: _Optional[_Union[CancelOnExecutor, _Mapping]] = ..., preemptOnQueue: _Optional[_Union[PreemptOnQueue, _Mapping]] = ..., cancelOnQueue: _Optional[_Union[CancelOnQueue, _Mapping]] = ..., preemptOnNode: _Optional[_Union[PreemptOnNode, _Mapping]] = ..., cancelOnNode: _Optional[_Union[CancelOnNode, _Mapping]] = ..., executorDelete: _Optional[_Union[ExecutorDelete, _Mapping]] = ...) -> None: ...

class ExecutorSettingsUpsert(_message.Message):
    __slots__ = ("name", "cordoned", "cordonReason", "setByUser")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CORDONED_FIELD_NUMBER: _ClassVar[int]
    CORDONREASON_FIELD_NUMBER: _ClassVar[int]
    SETBYUSER_FIELD_NUMBER: _ClassVar[int]
    name: str
    cordoned: bool
    cordonReason: str
    setByUser: str
    def __init__(self, name: _Optional[str] = ..., cordoned: _Optional[bool] = ..., cordonReason: _Optional[str] = ..., setByUser: _Optional[str] = ...) -> None: ...

class ExecutorSettingsDelete(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class PreemptOnExecutor(_message.Message):
    __slots__ = ("name", "queues", "priorityClasses", "pools", "requestor")
    NAME_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    PRIORITYCLASSES_FIELD_NUMBER: _ClassVar[int]
    POOLS_FIELD_NUMBER: _ClassVar[int]
    REQUESTOR_FIELD_NUMBER: _ClassVar[int]
    name: str
    queues: _containers.RepeatedScalarFieldContainer[str]
    priorityClasses: _containers.RepeatedScalarFieldContainer[str]
    pools: _containers.RepeatedScalarFieldContainer[str]
    requestor: str
    def __init__(self, name: _Optional[str] = ..., queues: _Optional[_Iterable[str]] = ..., priorityClasses: _Optional[_Iterable[str]] = ..., pools: _Optional[_Iterable[str]] = ..., requestor: _Optional[str] = ...) -> None: ...

class CancelOnExecutor(_message.Message):
    __slots__ = ("name", "queues", "priorityClasses", "pools", "requestor")
    NAME_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    PRIORITYCLASSES_FIELD_NUMBER: _ClassVar[int]
    POOLS_FIELD_NUMBER: _ClassVar[int]
    REQUESTOR_FIELD_NUMBER: _ClassVar[int]
    name: str
    queues: _containers.RepeatedScalarFieldContainer[str]
    priorityClasses: _containers.RepeatedScalarFieldContainer[str]
    pools: _containers.RepeatedScalarFieldContainer[str]
    requestor: str
    def __init__(self, name: _Optional[str] = ..., queues: _Optional[_Iterable[str]] = ..., priorityClasses: _Optional[_Iterable[str]] = ..., pools: _Optional[_Iterable[str]] = ..., requestor: _Optional[str] = ...) -> None: ...

class PreemptOnQueue(_message.Message):
    __slots__ = ("name", "priorityClasses", "pools", "requestor")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PRIORITYCLASSES_FIELD_NUMBER: _ClassVar[int]
    POOLS_FIELD_NUMBER: _ClassVar[int]
    REQUESTOR_FIELD_NUMBER: _ClassVar[int]
    name: str
    priorityClasses: _containers.RepeatedScalarFieldContainer[str]
    pools: _containers.RepeatedScalarFieldContainer[str]
    requestor: str
    def __init__(self, name: _Optional[str] = ..., priorityClasses: _Optional[_Iterable[str]] = ..., pools: _Optional[_Iterable[str]] = ..., requestor: _Optional[str] = ...) -> None: ...

class CancelOnQueue(_message.Message):
    __slots__ = ("name", "priorityClasses", "jobStates", "pools", "requestor")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PRIORITYCLASSES_FIELD_NUMBER: _ClassVar[int]
    JOBSTATES_FIELD_NUMBER: _ClassVar[int]
    POOLS_FIELD_NUMBER: _ClassVar[int]
    REQUESTOR_FIELD_NUMBER: _ClassVar[int]
    name: str
    priorityClasses: _containers.RepeatedScalarFieldContainer[str]
    jobStates: _containers.RepeatedScalarFieldContainer[ActiveJobState]
    pools: _containers.RepeatedScalarFieldContainer[str]
    requestor: str
    def __init__(self, name: _Optional[str] = ..., priorityClasses: _Optional[_Iterable[str]] = ..., jobStates: _Optional[_Iterable[_Union[ActiveJobState, str]]] = ..., pools: _Optional[_Iterable[str]] = ..., requestor: _Optional[str] = ...) -> None: ...

class PreemptOnNode(_message.Message):
    __slots__ = ("name", "executor", "queues", "priorityClasses", "requestor")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EXECUTOR_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    PRIORITYCLASSES_FIELD_NUMBER: _ClassVar[int]
    REQUESTOR_FIELD_NUMBER: _ClassVar[int]
    name: str
    executor: str
    queues: _containers.RepeatedScalarFieldContainer[str]
    priorityClasses: _containers.RepeatedScalarFieldContainer[str]
    requestor: str
    def __init__(self, name: _Optional[str] = ..., executor: _Optional[str] = ..., queues: _Optional[_Iterable[str]] = ..., priorityClasses: _Optional[_Iterable[str]] = ..., requestor: _Optional[str] = ...) -> None: ...

class CancelOnNode(_message.Message):
    __slots__ = ("name", "executor", "queues", "priorityClasses", "requestor")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EXECUTOR_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    PRIORITYCLASSES_FIELD_NUMBER: _ClassVar[int]
    REQUESTOR_FIELD_NUMBER: _ClassVar[int]
    name: str
    executor: str
    queues: _containers.RepeatedScalarFieldContainer[str]
    priorityClasses: _containers.RepeatedScalarFieldContainer[str]
    requestor: str
    def __init__(self, name: _Optional[str] = ..., executor: _Optional[str] = ..., queues: _Optional[_Iterable[str]] = ..., priorityClasses: _Optional[_Iterable[str]] = ..., requestor: _Optional[str] = ...) -> None: ...

class ExecutorDelete(_message.Message):
    __slots__ = ("name", "requestor")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REQUESTOR_FIELD_NUMBER: _ClassVar[int]
    name: str
    requestor: str
    def __init__(self, name: _Optional[str] = ..., requestor: _Optional[str] = ...) -> None: ...
