from google.protobuf import empty_pb2 as _empty_pb2
from armada_client.google.api import annotations_pb2 as _annotations_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class NodePreemptRequest(_message.Message):
    __slots__ = ("name", "executor", "queues", "priorityClasses")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EXECUTOR_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    PRIORITYCLASSES_FIELD_NUMBER: _ClassVar[int]
    name: str
    executor: str
    queues: _containers.RepeatedScalarFieldContainer[str]
    priorityClasses: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., executor: _Optional[str] = ..., queues: _Optional[_Iterable[str]] = ..., priorityClasses: _Optional[_Iterable[str]] = ...) -> None: ...

class NodeCancelRequest(_message.Message):
    __slots__ = ("name", "executor", "queues", "priorityClasses")
    NAME_FIELD_NUMBER: _ClassVar[int]
    EXECUTOR_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    PRIORITYCLASSES_FIELD_NUMBER: _ClassVar[int]
    name: str
    executor: str
    queues: _containers.RepeatedScalarFieldContainer[str]
    priorityClasses: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., executor: _Optional[str] = ..., queues: _Optional[_Iterable[str]] = ..., priorityClasses: _Optional[_Iterable[str]] = ...) -> None: ...

class ExecutorSettingsUpsertRequest(_message.Message):
    __slots__ = ("name", "cordoned", "cordonReason")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CORDONED_FIELD_NUMBER: _ClassVar[int]
    CORDONREASON_FIELD_NUMBER: _ClassVar[int]
    name: str
    cordoned: bool
    cordonReason: str
    def __init__(self, name: _Optional[str] = ..., cordoned: _Optional[bool] = ..., cordonReason: _Optional[str] = ...) -> None: ...

class ExecutorSettingsDeleteRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ExecutorPreemptRequest(_message.Message):
    __slots__ = ("name", "queues", "priorityClasses", "pools")
    NAME_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    PRIORITYCLASSES_FIELD_NUMBER: _ClassVar[int]
    POOLS_FIELD_NUMBER: _ClassVar[int]
    name: str
    queues: _containers.RepeatedScalarFieldContainer[str]
    priorityClasses: _containers.RepeatedScalarFieldContainer[str]
    pools: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., queues: _Optional[_Iterable[str]] = ..., priorityClasses: _Optional[_Iterable[str]] = ..., pools: _Optional[_Iterable[str]] = ...) -> None: ...

class ExecutorCancelRequest(_message.Message):
    __slots__ = ("name", "queues", "priorityClasses", "pools")
    NAME_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    PRIORITYCLASSES_FIELD_NUMBER: _ClassVar[int]
    POOLS_FIELD_NUMBER: _ClassVar[int]
    name: str
    queues: _containers.RepeatedScalarFieldContainer[str]
    priorityClasses: _containers.RepeatedScalarFieldContainer[str]
    pools: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., queues: _Optional[_Iterable[str]] = ..., priorityClasses: _Optional[_Iterable[str]] = ..., pools: _Optional[_Iterable[str]] = ...) -> None: ...

class ExecutorDeleteRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...
