import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from armada_client.k8s.io.api.core.v1 import generated_pb2 as _generated_pb2
from armada_client.k8s.io.api.networking.v1 import generated_pb2 as _generated_pb2_1
from armada_client.k8s.io.apimachinery.pkg.api.resource import generated_pb2 as _generated_pb2_1_1
from armada._proto import scheduler_pb2 as _scheduler_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUEUED: _ClassVar[JobState]
    PENDING: _ClassVar[JobState]
    RUNNING: _ClassVar[JobState]

class KubernetesReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AppError: _ClassVar[KubernetesReason]
    Evicted: _ClassVar[KubernetesReason]
    OOM: _ClassVar[KubernetesReason]
    DeadlineExceeded: _ClassVar[KubernetesReason]
QUEUED: JobState
PENDING: JobState
RUNNING: JobState
AppError: KubernetesReason
Evicted: KubernetesReason
OOM: KubernetesReason
DeadlineExceeded: KubernetesReason

class EventSequence(_message.Message):
    __slots__ = ("queue", "job_set_name", "user_id", "groups", "events")
    class Event(_message.Message):
        __slots__ = ("submitJob", "reprioritiseJob", "reprioritiseJobSet", "reprioritisedJob", "cancelJob", "cancelJobSet", "cancelledJob", "jobSucceeded", "jobErrors", "jobRunLeased", "jobRunAssigned", "jobRunRunning", "jobRunSucceeded", "jobRunErrors", "standaloneIngressInfo", "resourceUtilisation", "jobRunPreempted", "partitionMarker", "jobRunPreemptionRequested", "jobRequeued", "jobPreemptionRequested", "jobRunCancelled", "jobValidated", "jobRunTerminatedDebugInfo", "created")
        SUBMITJOB_FIELD_NUMBER: _ClassVar[int]
        REPRIORITISEJOB_FIELD_NUMBER: _ClassVar[int]
        REPRIORITISEJOBSET_FIELD_NUMBER: _ClassVar[int]
        REPRIORITISEDJOB_FIELD_NUMBER: _ClassVar[int]
        CANCELJOB_FIELD_NUMBER: _ClassVar[int]
        CANCELJOBSET_FIELD_NUMBER: _ClassVar[int]
        CANCELLEDJOB_FIELD_NUMBER: _ClassVar[int]
        JOBSUCCEEDED_FIELD_NUMBER: _ClassVar[int]
        JOBERRORS_FIELD_NUMBER: _ClassVar[int]
        JOBRUNLEASED_FIELD_NUMBER: _ClassVar[int]
        JOBRUNASSIGNED_FIELD_NUMBER: _ClassVar[int]
        JOBRUNRUNNING_FIELD_NUMBER: _ClassVar[int]
        JOBRUNSUCCEEDED_FIELD_NUMBER: _ClassVar[int]
        JOBRUNERRORS_FIELD_NUMBER: _ClassVar[int]
        STANDALONEINGRESSINFO_FIELD_NUMBER: _ClassVar[int]
        RESOURCEUTILISATION_FIELD_NUMBER: _ClassVar[int]
        JOBRUNPREEMPTED_FIELD_NUMBER: _ClassVar[int]
        PARTITIONMARKER_FIELD_NUMBER: _ClassVar[int]
        JOBRUNPREEMPTIONREQUESTED_FIELD_NUMBER: _ClassVar[int]
        JOBREQUEUED_FIELD_NUMBER: _ClassVar[int]
        JOBPREEMPTIONREQUESTED_FIELD_NUMBER: _ClassVar[int]
        JOBRUNCANCELLED_FIELD_NUMBER: _ClassVar[int]
        JOBVALIDATED_FIELD_NUMBER: _ClassVar[int]
        JOBRUNTERMINATEDDEBUGINFO_FIELD_NUMBER: _ClassVar[int]
        CREATED_FIELD_NUMBER: _ClassVar[int]
        submitJob: SubmitJob
        reprioritiseJob: ReprioritiseJob
        reprioritiseJobSet: ReprioritiseJobSet
        reprioritisedJob: ReprioritisedJob
        cancelJob: CancelJob
        cancelJobSet: CancelJobSet
        cancelledJob: CancelledJob
        jobSucceeded: JobSucceeded
        jobErrors: JobErrors
        jobRunLeased: JobRunLeased
        jobRunAssigned: JobRunAssigned
        jobRunRunning: JobRunRunning
        jobRunSucceeded: JobRunSucceeded
        jobRunErrors: JobRunErrors
        standaloneIngressInfo: StandaloneIngressInfo
        resourceUtilisation: ResourceUtilisation
        jobRunPreempted: JobRunPreempted
        partitionMarker: PartitionMarker
        jobRunPreemptionRequested: JobRunPreemptionRequested
        jobRequeued: JobRequeued
        jobPreemptionRequested: JobPreemptionRequested
        jobRunCancelled: JobRunCancelled
        jobValidated: JobValidated
        jobRunTerminatedDebugInfo: JobRunTerminatedDebugInfo
        created: _timestamp_pb2.Timestamp
        def __init__(self, submitJob: _Optional[_Union[SubmitJob, _Mapping]] = ..., reprioritiseJob: _Optional[_Union[ReprioritiseJob, _Mapping]] = ..., reprioritiseJobSet: _Optional[_Union[ReprioritiseJobSet, _Mapping]] = ..., reprioritisedJob: _Optional[_Union[ReprioritisedJob, _Mapping]] = ..., cancelJob: _Optional[_Union[CancelJob, _Mapping]] = ..., cancelJobSet: _Optional[_Union[CancelJobSet, _Mapping]] = ..., cancelledJob: _Optional[_Union[CancelledJob, _Mapping]] = ..., jobSucceeded: _Optional[_Union[JobSucceeded, _Mapping]] = ..., jobErrors: _Optional[_Union[JobErrors, _Mapping]] = ..., jobRunLeased: _Optional[_Union[JobRunLeased, _Mapping]] = ..., jobRunAssigned: _Optional[_Union[JobRunAssigned, _Mapping]] = ..., jobRunRunning: _Optional[_Union[JobRunRunning, _Mapping]] = ..., jobRunSucceeded: _Optional[_Union[JobRunSucceeded, _Mapping]] = ..., jobRunErrors: _Optional[_Union[JobRunErrors, _Mapping]] = ..., standaloneIngressInfo: _Optional[_Union[StandaloneIngressInfo, _Mapping]] = ..., resourceUtilisation: _Optional[_Union[ResourceUtilisation, _Mapping]] = ..., jobRunPreempted: _Optional[_Union[JobRunPreempted, _Mapping]] = ..., partitionMarker: _Optional[_Union[PartitionMarker, _Mapping]] = ..., jobRunPreemptionRequested: _Optional[_Union[JobRunPreemptionRequested, _Mapping]] = ..., jobRequeued: _Optional[_Union[JobRequeued, _Mapping]] = ..., jobPreemptionRequested: _Optional[_Union[JobPreemptionRequested, _Mapping]] = ..., jobRunCancelled: _Optional[_Union[JobRunCancelled, _Mapping]] = ..., jobValidated: _Optional[_Union[JobValidated, _Mapping]] = ..., jobRunTerminatedDebugInfo: _Optional[_Union[JobRunTerminatedDebugInfo, _Mapping]] = ..., created: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    JOB_SET_NAME_FIELD_NUMBER: _ClassVar[int]
    USER_ID_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    queue: str
    job_set_name: str
    user_id: str
    groups: _containers.RepeatedScalarFieldContainer[str]
    events: _containers.RepeatedCompositeFieldContainer[EventSequence.Event]
    def __init__(self, queue: _Optional[str] = ..., job_set_name: _Optional[str] = ..., user_id: _Optional[str] = ..., groups: _Optional[_Iterable[str]] = ..., events: _Optional[_Iterable[_Union[EventSequence.Event, _Mapping]]] = ...) -> None: ...

class ObjectMeta(_message.Message):
    __slots__ = ("executor_id", "namespace", "name", "kubernetes_id", "annotations", "labels")
    class AnnotationsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    EXECUTOR_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    KUBERNETES_ID_FIELD_NUMBER: _ClassVar[int]
    ANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    executor_id: str
    namespace: str
    name: str
    kubernetes_id: str
    annotations: _containers.ScalarMap[str, str]
    labels: _containers.ScalarMap[str, str]
    def __init__(self, executor_id: _Optional[str] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ..., kubernetes_id: _Optional[str] = ..., annotations: _Optional[_Mapping[str, str]] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class PodSpecWithAvoidList(_message.Message):
    __slots__ = ("pod_spec", "node_avoidlist")
    POD_SPEC_FIELD_NUMBER: _ClassVar[int]
    NODE_AVOIDLIST_FIELD_NUMBER: _ClassVar[int]
    pod_spec: _generated_pb2.PodSpec
    node_avoidlist: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, pod_spec: _Optional[_Union[_generated_pb2.PodSpec, _Mapping]] = ..., node_avoidlist: _Optional[_Iterable[str]] = ...) -> None: ...

class KubernetesMainObject(_message.Message):
    __slots__ = ("objectMeta", "pod_spec")
    OBJECTMETA_FIELD_NUMBER: _ClassVar[int]
    POD_SPEC_FIELD_NUMBER: _ClassVar[int]
    objectMeta: ObjectMeta
    pod_spec: PodSpecWithAvoidList
    def __init__(self, objectMeta: _Optional[_Union[ObjectMeta, _Mapping]] = ..., pod_spec: _Optional[_Union[PodSpecWithAvoidList, _Mapping]] = ...) -> None: ...

class KubernetesObject(_message.Message):
    __slots__ = ("objectMeta", "pod_spec", "ingress", "service", "configMap")
    OBJECTMETA_FIELD_NUMBER: _ClassVar[int]
    POD_SPEC_FIELD_NUMBER: _ClassVar[int]
    INGRESS_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    CONFIGMAP_FIELD_NUMBER: _ClassVar[int]
    objectMeta: ObjectMeta
    pod_spec: PodSpecWithAvoidList
    ingress: _generated_pb2_1.IngressSpec
    service: _generated_pb2.ServiceSpec
    configMap: _generated_pb2.ConfigMap
    def __init__(self, objectMeta: _Optional[_Union[ObjectMeta, _Mapping]] = ..., pod_spec: _Optional[_Union[PodSpecWithAvoidList, _Mapping]] = ..., ingress: _Optional[_Union[_generated_pb2_1.IngressSpec, _Mapping]] = ..., service: _Optional[_Union[_generated_pb2.ServiceSpec, _Mapping]] = ..., configMap: _Optional[_Union[_generated_pb2.ConfigMap, _Mapping]] = ...) -> None: ...

class SubmitJob(_message.Message):
    __slots__ = ("deduplication_id", "priority", "objectMeta", "mainObject", "objects", "lifetime", "atMostOnce", "preemptible", "concurrencySafe", "scheduler", "isDuplicate", "job_id", "external_job_uri")
    DEDUPLICATION_ID_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    OBJECTMETA_FIELD_NUMBER: _ClassVar[int]
    MAINOBJECT_FIELD_NUMBER: _ClassVar[int]
    OBJECTS_FIELD_NUMBER: _ClassVar[int]
    LIFETIME_FIELD_NUMBER: _ClassVar[int]
    ATMOSTONCE_FIELD_NUMBER: _ClassVar[int]
    PREEMPTIBLE_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCYSAFE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULER_FIELD_NUMBER: _ClassVar[int]
    ISDUPLICATE_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_JOB_URI_FIELD_NUMBER: _ClassVar[int]
    deduplication_id: str
    priority: int
    objectMeta: ObjectMeta
    mainObject: KubernetesMainObject
    objects: _containers.RepeatedCompositeFieldContainer[KubernetesObject]
    lifetime: int
    atMostOnce: bool
    preemptible: bool
    concurrencySafe: bool
    scheduler: str
    isDuplicate: bool
    job_id: str
    external_job_uri: str
    def __init__(self, deduplication_id: _Optional[str] = ..., priority: _Optional[int] = ..., objectMeta: _Optional[_Union[ObjectMeta, _Mapping]] = ..., mainObject: _Optional[_Union[KubernetesMainObject, _Mapping]] = ..., objects: _Optional[_Iterable[_Union[KubernetesObject, _Mapping]]] = ..., lifetime: _Optional[int] = ..., atMostOnce: _Optional[bool] = ..., preemptible: _Optional[bool] = ..., concurrencySafe: _Optional[bool] = ..., scheduler: _Optional[str] = ..., isDuplicate: _Optional[bool] = ..., job_id: _Optional[str] = ..., external_job_uri: _Optional[str] = ...) -> None: ...

class ReprioritiseJob(_message.Message):
    __slots__ = ("priority", "job_id")
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    priority: int
    job_id: str
    def __init__(self, priority: _Optional[int] = ..., job_id: _Optional[str] = ...) -> None: ...

class ReprioritiseJobSet(_message.Message):
    __slots__ = ("priority",)
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    priority: int
    def __init__(self, priority: _Optional[int] = ...) -> None: ...

class ReprioritisedJob(_message.Message):
    __slots__ = ("priority", "job_id", "requestor")
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    REQUESTOR_FIELD_NUMBER: _ClassVar[int]
    priority: int
    job_id: str
    requestor: str
    def __init__(self, priority: _Optional[int] = ..., job_id: _Optional[str] = ..., requestor: _Optional[str] = ...) -> None: ...

class CancelJob(_message.Message):
    __slots__ = ("reason", "job_id")
    REASON_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    reason: str
    job_id: str
    def __init__(self, reason: _Optional[str] = ..., job_id: _Optional[str] = ...) -> None: ...

class CancelJobSet(_message.Message):
    __slots__ = ("states", "reason")
    STATES_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedScalarFieldContainer[JobState]
    reason: str
    def __init__(self, states: _Optional[_Iterable[_Union[JobState, str]]] = ..., reason: _Optional[str] = ...) -> None: ...

class CancelledJob(_message.Message):
    __slots__ = ("reason", "job_id", "requestor")
    REASON_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    REQUESTOR_FIELD_NUMBER: _ClassVar[int]
    reason: str
    job_id: str
    requestor: str
    def __init__(self, reason: _Optional[str] = ..., job_id: _Optional[str] = ..., requestor: _Optional[str] = ...) -> None: ...

class JobSucceeded(_message.Message):
    __slots__ = ("resourceInfos", "job_id")
    RESOURCEINFOS_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    resourceInfos: _containers.RepeatedCompositeFieldContainer[KubernetesResourceInfo]
    job_id: str
    def __init__(self, resourceInfos: _Optional[_Iterable[_Union[KubernetesResourceInfo, _Mapping]]] = ..., job_id: _Optional[str] = ...) -> None: ...

class JobErrors(_message.Message):
    __slots__ = ("errors", "job_id")
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    errors: _containers.RepeatedCompositeFieldContainer[Error]
    job_id: str
    def __init__(self, errors: _Optional[_Iterable[_Union[Error, _Mapping]]] = ..., job_id: _Optional[str] = ...) -> None: ...

class JobRunLeased(_message.Message):
    __slots__ = ("executor_id", "node_id", "update_sequence_number", "has_scheduled_at_priority", "scheduled_at_priority", "pod_requirements_overlay", "job_id", "run_id", "pool")
    EXECUTOR_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    UPDATE_SEQUENCE_NUMBER_FIELD_NUMBER: _ClassVar[int]
    HAS_SCHEDULED_AT_PRIORITY_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_AT_PRIORITY_FIELD_NUMBER: _ClassVar[int]
    POD_REQUIREMENTS_OVERLAY_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    executor_id: str
    node_id: str
    update_sequence_number: int
    has_scheduled_at_priority: bool
    scheduled_at_priority: int
    pod_requirements_overlay: _scheduler_pb2.PodRequirements
    job_id: str
    run_id: str
    pool: str
    def __init__(self, executor_id: _Optional[str] = ..., node_id: _Optional[str] = ..., update_sequence_number: _Optional[int] = ..., has_scheduled_at_priority: _Optional[bool] = ..., scheduled_at_priority: _Optional[int] = ..., pod_requirements_overlay: _Optional[_Union[_scheduler_pb2.PodRequirements, _Mapping]] = ..., job_id: _Optional[str] = ..., run_id: _Optional[str] = ..., pool: _Optional[str] = ...) -> None: ...

class JobRunAssigned(_message.Message):
    __slots__ = ("resourceInfos", "job_id", "run_id", "pool")
    RESOURCEINFOS_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    resourceInfos: _containers.RepeatedCompositeFieldContainer[KubernetesResourceInfo]
    job_id: str
    run_id: str
    pool: str
    def __init__(self, resourceInfos: _Optional[_Iterable[_Union[KubernetesResourceInfo, _Mapping]]] = ..., job_id: _Optional[str] = ..., run_id: _Optional[str] = ..., pool: _Optional[str] = ...) -> None: ...

class JobRunRunning(_message.Message):
    __slots__ = ("resourceInfos", "job_id", "run_id", "pool")
    RESOURCEINFOS_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    resourceInfos: _containers.RepeatedCompositeFieldContainer[KubernetesResourceInfo]
    job_id: str
    run_id: str
    pool: str
    def __init__(self, resourceInfos: _Optional[_Iterable[_Union[KubernetesResourceInfo, _Mapping]]] = ..., job_id: _Optional[str] = ..., run_id: _Optional[str] = ..., pool: _Optional[str] = ...) -> None: ...

class JobRunSucceeded(_message.Message):
    __slots__ = ("resourceInfos", "job_id", "run_id")
    RESOURCEINFOS_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    resourceInfos: _containers.RepeatedCompositeFieldContainer[KubernetesResourceInfo]
    job_id: str
    run_id: str
    def __init__(self, resourceInfos: _Optional[_Iterable[_Union[KubernetesResourceInfo, _Mapping]]] = ..., job_id: _Optional[str] = ..., run_id: _Optional[str] = ...) -> None: ...

class JobRunErrors(_message.Message):
    __slots__ = ("errors", "job_id", "run_id")
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    errors: _containers.RepeatedCompositeFieldContainer[Error]
    job_id: str
    run_id: str
    def __init__(self, errors: _Optional[_Iterable[_Union[Error, _Mapping]]] = ..., job_id: _Optional[str] = ..., run_id: _Optional[str] = ...) -> None: ...

class KubernetesResourceInfo(_message.Message):
    __slots__ = ("objectMeta", "podInfo", "ingressInfo")
    OBJECTMETA_FIELD_NUMBER: _ClassVar[int]
    PODINFO_FIELD_NUMBER: _ClassVar[int]
    INGRESSINFO_FIELD_NUMBER: _ClassVar[int]
    objectMeta: ObjectMeta
    podInfo: PodInfo
    ingressInfo: IngressInfo
    def __init__(self, objectMeta: _Optional[_Union[ObjectMeta, _Mapping]] = ..., podInfo: _Optional[_Union[PodInfo, _Mapping]] = ..., ingressInfo: _Optional[_Union[IngressInfo, _Mapping]] = ...) -> None: ...

class PodInfo(_message.Message):
    __slots__ = ("node_name", "pod_number")
    NODE_NAME_FIELD_NUMBER: _ClassVar[int]
    POD_NUMBER_FIELD_NUMBER: _ClassVar[int]
    node_name: str
    pod_number: int
    def __init__(self, node_name: _Optional[str] = ..., pod_number: _Optional[int] = ...) -> None: ...

class IngressInfo(_message.Message):
    __slots__ = ("node_name", "ingress_addresses")
    class IngressAddressesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: str
        def __init__(self, key: _Optional[int] = ..., value: _Optional[str] = ...) -> None: ...
    NODE_NAME_FIELD_NUMBER: _ClassVar[int]
    INGRESS_ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    node_name: str
    ingress_addresses: _containers.ScalarMap[int, str]
    def __init__(self, node_name: _Optional[str] = ..., ingress_addresses: _Optional[_Mapping[int, str]] = ...) -> None: ...

class StandaloneIngressInfo(_message.Message):
    __slots__ = ("objectMeta", "ingress_addresses", "node_name", "pod_number", "pod_name", "pod_namespace", "job_id", "run_id")
    class IngressAddressesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: str
        def __init__(self, key: _Optional[int] = ..., value: _Optional[str] = ...) -> None: ...
    OBJECTMETA_FIELD_NUMBER: _ClassVar[int]
    INGRESS_ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    NODE_NAME_FIELD_NUMBER: _ClassVar[int]
    POD_NUMBER_FIELD_NUMBER: _ClassVar[int]
    POD_NAME_FIELD_NUMBER: _ClassVar[int]
    POD_NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    objectMeta: ObjectMeta
    ingress_addresses: _containers.ScalarMap[int, str]
    node_name: str
    pod_number: int
    pod_name: str
    pod_namespace: str
    job_id: str
    run_id: str
    def __init__(self, objectMeta: _Optional[_Union[ObjectMeta, _Mapping]] = ..., ingress_addresses: _Optional[_Mapping[int, str]] = ..., node_name: _Optional[str] = ..., pod_number: _Optional[int] = ..., pod_name: _Optional[str] = ..., pod_namespace: _Optional[str] = ..., job_id: _Optional[str] = ..., run_id: _Optional[str] = ...) -> None: ...

class ResourceUtilisation(_message.Message):
    __slots__ = ("resource_info", "max_resources_for_period", "total_cumulative_usage", "job_id", "run_id", "avg_resources_for_period")
    class MaxResourcesForPeriodEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _generated_pb2_1_1.Quantity
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_generated_pb2_1_1.Quantity, _Mapping]] = ...) -> None: ...
    class TotalCumulativeUsageEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _generated_pb2_1_1.Quantity
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_generated_pb2_1_1.Quantity, _Mapping]] = ...) -> None: ...
    class AvgResourcesForPeriodEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _generated_pb2_1_1.Quantity
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_generated_pb2_1_1.Quantity, _Mapping]] = ...) -> None: ...
    RESOURCE_INFO_FIELD_NUMBER: _ClassVar[int]
    MAX_RESOURCES_FOR_PERIOD_FIELD_NUMBER: _ClassVar[int]
    TOTAL_CUMULATIVE_USAGE_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    AVG_RESOURCES_FOR_PERIOD_FIELD_NUMBER: _ClassVar[int]
    resource_info: KubernetesResourceInfo
    max_resources_for_period: _containers.MessageMap[str, _generated_pb2_1_1.Quantity]
    total_cumulative_usage: _containers.MessageMap[str, _generated_pb2_1_1.Quantity]
    job_id: str
    run_id: str
    avg_resources_for_period: _containers.MessageMap[str, _generated_pb2_1_1.Quantity]
    def __init__(self, resource_info: _Optional[_Union[KubernetesResourceInfo, _Mapping]] = ..., max_resources_for_period: _Optional[_Mapping[str, _generated_pb2_1_1.Quantity]] = ..., total_cumulative_usage: _Optional[_Mapping[str, _generated_pb2_1_1.Quantity]] = ..., job_id: _Optional[str] = ..., run_id: _Optional[str] = ..., avg_resources_for_period: _Optional[_Mapping[str, _generated_pb2_1_1.Quantity]] = ...) -> None: ...

class JobRunPreempted(_message.Message):
    __slots__ = ("preempted_job_id", "preempted_run_id", "reason", "preempting_job_id", "requestor")
    PREEMPTED_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    PREEMPTED_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    PREEMPTING_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    REQUESTOR_FIELD_NUMBER: _ClassVar[int]
    preempted_job_id: str
    preempted_run_id: str
    reason: str
    preempting_job_id: str
    requestor: str
    def __init__(self, preempted_job_id: _Optional[str] = ..., preempted_run_id: _Optional[str] = ..., reason: _Optional[str] = ..., preempting_job_id: _Optional[str] = ..., requestor: _Optional[str] = ...) -> None: ...

class JobRunPreemptionRequested(_message.Message):
    __slots__ = ("job_id", "run_id")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    run_id: str
    def __init__(self, job_id: _Optional[str] = ..., run_id: _Optional[str] = ...) -> None: ...

class JobPreemptionRequested(_message.Message):
    __slots__ = ("job_id", "reason")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    reason: str
    def __init__(self, job_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class JobRunCancelled(_message.Message):
    __slots__ = ("job_id", "run_id", "reason", "requestor")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REQUESTOR_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    run_id: str
    reason: str
    requestor: str
    def __init__(self, job_id: _Optional[str] = ..., run_id: _Optional[str] = ..., reason: _Optional[str] = ..., requestor: _Optional[str] = ...) -> None: ...

class JobRequeued(_message.Message):
    __slots__ = ("scheduling_info", "update_sequence_number", "job_id")
    SCHEDULING_INFO_FIELD_NUMBER: _ClassVar[int]
    UPDATE_SEQUENCE_NUMBER_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    scheduling_info: _scheduler_pb2.JobSchedulingInfo
    update_sequence_number: int
    job_id: str
    def __init__(self, scheduling_info: _Optional[_Union[_scheduler_pb2.JobSchedulingInfo, _Mapping]] = ..., update_sequence_number: _Optional[int] = ..., job_id: _Optional[str] = ...) -> None: ...

class JobValidated(_message.Message):
    __slots__ = ("pools", "job_id")
    POOLS_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    pools: _containers.RepeatedScalarFieldContainer[str]
    job_id: str
    def __init__(self, pools: _Optional[_Iterable[str]] = ..., job_id: _Optional[str] = ...) -> None: ...

class PartitionMarker(_message.Message):
    __slots__ = ("partition", "group_id")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    partition: int
    group_id: str
    def __init__(self, partition: _Optional[int] = ..., group_id: _Optional[str] = ...) -> None: ...

class JobRunTerminatedDebugInfo(_message.Message):
    __slots__ = ("job_id", "run_id", "debugMessage")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    DEBUGMESSAGE_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    run_id: str
    debugMessage: str
    def __init__(self, job_id: _Optional[str] = ..., run_id: _Optional[str] = ..., debugMessage: _Optional[str] = ...) -> None: ...

class Error(_message.Message):
    __slots__ = ("terminal", "kubernetesError", "containerError", "executorError", "leaseExpired", "maxRunsExceeded", "podError", "podLeaseReturned", "jobRunPreemptedError", "gangJobUnschedulable", "jobRejected", "reconciliationError", "failure_category", "failure_subcategory", "retry_policy_name")
    TERMINAL_FIELD_NUMBER: _ClassVar[int]
    KUBERNETESERROR_FIELD_NUMBER: _ClassVar[int]
    CONTAINERERROR_FIELD_NUMBER: _ClassVar[int]
    EXECUTORERROR_FIELD_NUMBER: _ClassVar[int]
    LEASEEXPIRED_FIELD_NUMBER: _ClassVar[int]
    MAXRUNSEXCEEDED_FIELD_NUMBER: _ClassVar[int]
    PODERROR_FIELD_NUMBER: _ClassVar[int]
    PODLEASERETURNED_FIELD_NUMBER: _ClassVar[int]
    JOBRUNPREEMPTEDERROR_FIELD_NUMBER: _ClassVar[int]
    GANGJOBUNSCHEDULABLE_FIELD_NUMBER: _ClassVar[int]
    JOBREJECTED_FIELD_NUMBER: _ClassVar[int]
    RECONCILIATIONERROR_FIELD_NUMBER: _ClassVar[int]
    FAILURE_CATEGORY_FIELD_NUMBER: _ClassVar[int]
    FAILURE_SUBCATEGORY_FIELD_NUMBER: _ClassVar[int]
    RETRY_POLICY_NAME_FIELD_NUMBER: _ClassVar[int]
    terminal: bool
    kubernetesError: KubernetesError
    containerError: ContainerError
    executorError: ExecutorError
    leaseExpired: LeaseExpired
    maxRunsExceeded: MaxRunsExceeded
    podError: PodError
    podLeaseReturned: PodLeaseReturned
    jobRunPreemptedError: JobRunPreemptedError
    gangJobUnschedulable: GangJobUnschedulable
    jobRejected: JobRejected
    reconciliationError: ReconciliationError
    failure_category: str
    failure_subcategory: str
    retry_policy_name: str
    def __init__(self, terminal: _Optional[bool] = ..., kubernetesError: _Optional[_Union[KubernetesError, _Mapping]] = ..., containerError: _Optional[_Union[ContainerError, _Mapping]] = ..., executorError: _Optional[_Union[ExecutorError, _Mapping]] = ..., leaseExpired: _Optional[_Union[LeaseExpired, _Mapping]] = ..., maxRunsExceeded: _Optional[_Union[MaxRunsExceeded, _Mapping]] = ..., podError: _Optional[_Union[PodError, _Mapping]] = ..., podLeaseReturned: _Optional[_Union[PodLeaseReturned, _Mapping]] = ..., jobRunPreemptedError: _Optional[_Union[JobRunPreemptedError, _Mapping]] = ..., gangJobUnschedulable: _Optional[_Union[GangJobUnschedulable, _Mapping]] = ..., jobRejected: _Optional[_Union[JobRejected, _Mapping]] = ..., reconciliationError: _Optional[_Union[ReconciliationError, _Mapping]] = ..., failure_category: _Optional[str] = ..., failure_subcategory: _Optional[str] = ..., retry_policy_name: _Optional[str] = ...) -> None: ...

class KubernetesError(_message.Message):
    __slots__ = ("resourceType",)
    RESOURCETYPE_FIELD_NUMBER: _ClassVar[int]
    resourceType: str
    def __init__(self, resourceType: _Optional[str] = ...) -> None: ...

class ContainerError(_message.Message):
    __slots__ = ("objectMeta", "exit_code", "message", "reason", "kubernetes_reason")
    OBJECTMETA_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    KUBERNETES_REASON_FIELD_NUMBER: _ClassVar[int]
    objectMeta: ObjectMeta
    exit_code: int
    message: str
    reason: str
    kubernetes_reason: KubernetesReason
    def __init__(self, objectMeta: _Optional[_Union[ObjectMeta, _Mapping]] = ..., exit_code: _Optional[int] = ..., message: _Optional[str] = ..., reason: _Optional[str] = ..., kubernetes_reason: _Optional[_Union[KubernetesReason, str]] = ...) -> None: ...

class ExecutorError(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LeaseExpired(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MaxRunsExceeded(_message.Message):
    __slots__ = ("message",)
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    message: str
    def __init__(self, message: _Optional[str] = ...) -> None: ...

class PodError(_message.Message):
    __slots__ = ("objectMeta", "message", "node_name", "pod_number", "containerErrors", "kubernetes_reason", "debugMessage")
    OBJECTMETA_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    NODE_NAME_FIELD_NUMBER: _ClassVar[int]
    POD_NUMBER_FIELD_NUMBER: _ClassVar[int]
    CONTAINERERRORS_FIELD_NUMBER: _ClassVar[int]
    KUBERNETES_REASON_FIELD_NUMBER: _ClassVar[int]
    DEBUGMESSAGE_FIELD_NUMBER: _ClassVar[int]
    objectMeta: ObjectMeta
    message: str
    node_name: str
    pod_number: int
    containerErrors: _containers.RepeatedCompositeFieldContainer[ContainerError]
    kubernetes_reason: KubernetesReason
    debugMessage: str
    def __init__(self, objectMeta: _Optional[_Union[ObjectMeta, _Mapping]] = ..., message: _Optional[str] = ..., node_name: _Optional[str] = ..., pod_number: _Optional[int] = ..., containerErrors: _Optional[_Iterable[_Union[ContainerError, _Mapping]]] = ..., kubernetes_reason: _Optional[_Union[KubernetesReason, str]] = ..., debugMessage: _Optional[str] = ...) -> None: ...

class PodLeaseReturned(_message.Message):
    __slots__ = ("objectMeta", "message", "pod_number", "run_attempted", "debugMessage")
    OBJECTMETA_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    POD_NUMBER_FIELD_NUMBER: _ClassVar[int]
    RUN_ATTEMPTED_FIELD_NUMBER: _ClassVar[int]
    DEBUGMESSAGE_FIELD_NUMBER: _ClassVar[int]
    objectMeta: ObjectMeta
    message: str
    pod_number: int
    run_attempted: bool
    debugMessage: str
    def __init__(self, objectMeta: _Optional[_Union[ObjectMeta, _Mapping]] = ..., message: _Optional[str] = ..., pod_number: _Optional[int] = ..., run_attempted: _Optional[bool] = ..., debugMessage: _Optional[str] = ...) -> None: ...

class JobRunPreemptedError(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class GangJobUnschedulable(_message.Message):
    __slots__ = ("message",)
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    message: str
    def __init__(self, message: _Optional[str] = ...) -> None: ...

class JobRejected(_message.Message):
    __slots__ = ("message",)
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    message: str
    def __init__(self, message: _Optional[str] = ...) -> None: ...

class ReconciliationError(_message.Message):
    __slots__ = ("message",)
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    message: str
    def __init__(self, message: _Optional[str] = ...) -> None: ...
