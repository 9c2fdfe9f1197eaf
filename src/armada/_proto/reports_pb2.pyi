from armada_client.google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MostRecentForQueue(_message.Message):
    __slots__ = ("queue_name",)
    QUEUE_NAME_FIELD_NUMBER: _ClassVar[int]
    queue_name: str
    def __init__(self, queue_name: _Optional[str] = ...) -> None: ...

class MostRecentForJob(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class SchedulingReportRequest(_message.Message):
    __slots__ = ("most_recent_for_queue", "most_recent_for_job", "verbosity")
    MOST_RECENT_FOR_QUEUE_FIELD_NUMBER: _ClassVar[int]
    MOST_RECENT_FOR_JOB_FIELD_NUMBER: _ClassVar[int]
    VERBOSITY_FIELD_NUMBER: _ClassVar[int]
    most_recent_for_queue: MostRecentForQueue
    most_recent_for_job: MostRecentForJob
    verbosity: int
    def __init__(self, most_recent_for_queue: _Optional[_Union[MostRecentForQueue, _Mapping]] = ..., most_recent_for_job: _Optional[_Union[MostRecentForJob, _Mapping]] = ..., verbosity: _Optional[int] = ...) -> None: ...

class SchedulingReport(_message.Message):
    __slots__ = ("report",)
    REPORT_FIELD_NUMBER: _ClassVar[int]
    report: str
    def __init__(self, report: _Optional[str] = ...) -> None: ...

class QueueReportRequest(_message.Message):
    __slots__ = ("queue_name", "verbosity")
    QUEUE_NAME_FIELD_NUMBER: _ClassVar[int]
    VERBOSITY_FIELD_NUMBER: _ClassVar[int]
    queue_name: str
    verbosity: int
    def __init__(self, queue_name: _Optional[str] = ..., verbosity: _Optional[int] = ...) -> None: ...

class QueueReport(_message.Message):
    __slots__ = ("report",)
    REPORT_FIELD_NUMBER: _ClassVar[int]
    report: str
    def __init__(self, report: _Optional[str] = ...) -> None: ...

class JobReportRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class JobReport(_message.Message):
    __slots__ = ("report",)
    REPORT_FIELD_NUMBER: _ClassVar[int]
    report: str
    def __init__(self, report: _Optional[str] = ...) -> None: ...
