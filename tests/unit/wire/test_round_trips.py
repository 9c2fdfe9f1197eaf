"""Whatever goes out and comes back is what it was."""

from typing import Any, Final

import msgspec
from armada_client.armada import submit_pb2
from armada_client.k8s.io.api.core.v1 import generated_pb2 as core
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st

from armada._proto import executor_pb2 as executorapi
from armada.model import events as facts
from armada.model.events import JobSetEvents, PodIdentity
from armada.model.fleet import ClassLimit, Node, Queue, QueuePermission, Subject, Taint
from armada.model.leases import HeldRun, LeaseRequest, NodeReport
from armada.wire import agents, queues, reports
from armada.wire.kubernetes import fields
from armada.wire.podspec import from_json, to_json

TEXT: Final = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
NAME: Final = st.text("abcz09-", min_size=1, max_size=6)
QUANTITY: Final = st.sampled_from(["1", "500m", "2Gi", "0", "1e3", "100n", "3k"])
_DEPTH: Final = 5


def _scalars(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    kinds: dict[int, st.SearchStrategy[Any]] = {
        FieldDescriptor.CPPTYPE_STRING: TEXT,
        FieldDescriptor.CPPTYPE_BOOL: st.booleans(),
        FieldDescriptor.CPPTYPE_INT32: st.integers(-(2**31), 2**31 - 1),
        FieldDescriptor.CPPTYPE_INT64: st.integers(-(2**63), 2**63 - 1),
    }
    return st.binary(max_size=3) if field.type == FieldDescriptor.TYPE_BYTES else kinds[field.cpp_type]


@st.composite
def messages(draw: st.DrawFn, kind: Descriptor, depth: int = 0) -> Any:
    """Any message of a kind, with a few of its fields set."""
    message: Any = GetMessageClass(kind)()
    if kind.full_name == fields.QUANTITY:
        message.string = draw(QUANTITY)
        return message
    if kind.full_name == fields.INT_OR_STRING:
        message.type = draw(st.integers(0, 1))
        setattr(message, *draw(st.just(("strVal", "web")) if message.type else st.just(("intVal", 80))))
        return message
    if kind.full_name in fields.TIMES:
        message.seconds = draw(st.integers(1, 2**32))
        return message
    chosen = draw(st.lists(st.sampled_from(list(kind.fields)), max_size=4, unique_by=lambda field: field.number))
    for field in chosen:
        _set(draw, message, field, depth)
    return message


def _set(draw: st.DrawFn, message: Any, field: FieldDescriptor, depth: int) -> None:
    inner = field.message_type
    if inner is not None and (depth >= _DEPTH or inner.full_name == fields.RAW_JSON):
        return
    target = getattr(message, field.name)
    if fields.is_map(field):
        value = fields.value_field(field)
        for key in draw(st.lists(NAME, max_size=2)):
            if value.message_type is None:
                target[key] = draw(_scalars(value))
            else:
                target[key].CopyFrom(draw(messages(value.message_type, depth + 1)))
    elif inner is None:
        if field.is_repeated:
            target.extend(draw(st.lists(_scalars(field), max_size=2)))
        else:
            setattr(message, field.name, draw(_scalars(field)))
    elif field.is_repeated:
        target.extend(draw(st.lists(messages(inner, depth + 1), max_size=2)))
    else:
        target.CopyFrom(draw(messages(inner, depth + 1)))
        target.SetInParent()


@settings(max_examples=150, deadline=None)
@given(messages(core.PodSpec.DESCRIPTOR))
def test_pod_specs_are_the_same_json_again(spec: core.PodSpec) -> None:
    shown = to_json(spec)
    text = msgspec.json.encode(shown)
    again = from_json(msgspec.json.decode(text), core.PodSpec)
    assert to_json(core.PodSpec.FromString(again.SerializeToString())) == shown


TEXTS: Final = st.dictionaries(NAME, TEXT, max_size=2)
QUANTITIES: Final = st.dictionaries(NAME, QUANTITY, max_size=2)


@st.composite
def requests(draw: st.DrawFn) -> LeaseRequest:
    """An executor's report as the model has it."""
    executor_id = draw(NAME)
    held = st.builds(HeldRun, NAME, st.sampled_from(["pending", "running", "succeeded", "failed", "unknown"]))
    held_runs = st.lists(held, max_size=3, unique_by=lambda run: run.run_id)
    nodes = []
    for name in draw(st.lists(NAME, max_size=3, unique=True)):
        node = Node(
            node_id=agents.node_id_of(executor_id, name),
            name=name,
            executor_id=executor_id,
            pool=draw(NAME),
            labels=draw(TEXTS),
            taints=tuple(draw(st.lists(st.builds(Taint, NAME, TEXT, TEXT), max_size=2))),
            total=draw(QUANTITIES),
            unallocatable=draw(st.dictionaries(st.integers(-(2**31), 2**31 - 1), QUANTITIES, max_size=2)),
            unschedulable=draw(st.booleans()),
            node_type=draw(TEXT),
        )
        runs = sorted(draw(held_runs), key=lambda run: run.run_id)
        nodes.append(NodeReport(node, tuple(runs)))
    return LeaseRequest(
        executor_id=executor_id,
        pool=draw(NAME),
        nodes=tuple(nodes),
        unassigned_run_ids=tuple(draw(st.lists(NAME, max_size=2))),
        max_leases=draw(st.integers(0, 2**32 - 1)),
    )


@settings(max_examples=50, deadline=None)
@given(requests())
def test_lease_requests(request: LeaseRequest) -> None:
    encoded = agents.lease_request_message(request).SerializeToString()
    assert agents.ReportedFleet().request(executorapi.LeaseRequest.FromString(encoded)) == request


POD: Final = st.builds(
    PodIdentity, cluster=NAME, namespace=TEXT, name=TEXT, uid=TEXT, node_name=TEXT, number=st.integers(0, 9)
)
RUN: Final[dict[str, Any]] = {"at_ms": st.integers(1, 2**40), "job_id": NAME, "run_id": NAME}
CONTAINER: Final = st.builds(facts.ContainerStatus, name=TEXT, exit_code=st.integers(0, 255), reason=TEXT, message=TEXT)
FAILURE: Final = st.builds(
    facts.Failure,
    reason=TEXT,
    kind=st.just("pod"),
    cause=st.sampled_from(["error", "evicted", "oom", "deadline_exceeded"]),
    category=TEXT,
    subcategory=TEXT,
    debug=TEXT,
    pod=POD,
    containers=st.lists(CONTAINER, max_size=2).map(tuple),
)
FACT: Final = st.one_of(
    st.builds(facts.RunPending, **RUN, pod=POD),
    st.builds(facts.RunStarted, **RUN, pod=POD),
    st.builds(facts.RunSucceeded, **RUN, pod=POD),
    st.builds(facts.RunAddressed, **RUN, pod=POD, addresses=st.dictionaries(st.integers(1, 65_535), TEXT, max_size=2)),
    st.builds(facts.RunUsageReported, **RUN, pod=POD, peak=QUANTITIES, average=QUANTITIES, cumulative=QUANTITIES),
    st.builds(facts.RunFailed, **RUN, failure=FAILURE),
)


@settings(max_examples=50, deadline=None)
@given(st.lists(FACT, min_size=1, max_size=20), st.integers(100, 3_000))
def test_reports_of_any_size(told: list[Any], max_bytes: int) -> None:
    messages_sent = reports.report_messages((JobSetEvents("q", "s", tuple(told)),), max_bytes)
    back: list[Any] = []
    for message in messages_sent:
        received = executorapi.EventList.FromString(message.SerializeToString())
        for sequence in reports.executor_report(received, now_ms=0).sequences:
            assert (sequence.queue, sequence.job_set) == ("q", "s")
            back.extend(sequence.events)
    assert back == told


FRACTIONS: Final = st.dictionaries(NAME, st.floats(-2, 2), max_size=2)
QUEUE: Final = st.builds(
    Queue,
    name=NAME,
    priority_factor=st.floats(1, 1e9),
    permissions=st.lists(
        st.builds(
            QueuePermission,
            st.lists(st.builds(Subject, TEXT, TEXT), max_size=2).map(tuple),
            st.lists(TEXT, max_size=2).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
    limits_by_class=st.dictionaries(
        NAME, st.builds(ClassLimit, FRACTIONS, st.dictionaries(NAME, FRACTIONS, max_size=2)), max_size=2
    ),
    cordoned=st.booleans(),
    labels=TEXTS,
    retry_policies=st.lists(NAME, max_size=2).map(tuple),
)


@settings(max_examples=50, deadline=None)
@given(QUEUE)
def test_queues(queue: Queue) -> None:
    encoded = queues.queue_message(queue).SerializeToString()
    assert queues.queue_request(submit_pb2.Queue.FromString(encoded)).queue == queue
