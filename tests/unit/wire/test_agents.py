"""Lease exchanges, read and written."""

from typing import Any

import msgspec
import pytest

from armada._proto import executor_pb2 as executorapi
from armada.model.errors import InvalidRequest
from armada.model.fleet import Node, Taint
from armada.model.jobs import GangSpec, Toleration
from armada.model.leases import HeldRun, LeaseReply, LeaseRequest, NodeReport, NodeUsage, RunLease
from armada.wire import agents
from armada.wire.podspec import from_json
from tests.unit.wire.builders import POD, template

NODE = Node(
    node_id="c1-n1",
    name="n1",
    executor_id="c1",
    pool="gpu",
    labels={"kubernetes.io/hostname": "n1", "zone": "a"},
    taints=(Taint("gpu", "true"), Taint("armadaproject.io/reservation", "team-a")),
    total={"cpu": "8", "memory": "16Gi"},
    unallocatable={-5: {"memory": "1Gi"}, 1000: {"cpu": "500m"}},
    unschedulable=True,
    node_type="t1",
    reservation="team-a",
)
REQUEST = LeaseRequest(
    executor_id="c1",
    pool="default",
    nodes=(
        NodeReport(
            NODE,
            (
                HeldRun("r1", "pending"),
                HeldRun("r2", "running"),
                HeldRun("r3", "succeeded"),
                HeldRun("r4", "failed"),
                HeldRun("r5", "unknown"),
            ),
        ),
    ),
    unassigned_run_ids=("r6",),
    max_leases=7,
)


def lease(**changes: Any) -> RunLease:
    """A lease as an executor would read it."""
    values: dict[str, Any] = {
        "run_id": "r1",
        "job_id": "j1",
        "queue": "vision",
        "job_set": "nightly",
        "owner": "dana",
        "groups": ("everyone", "imaging"),
        "template": template(shape=template().shape.__class__((), "armada-default"), labels={"l": "v"}),
        "node_name": "n1",
        "pool": "default",
        "preemptible": True,
    }
    return RunLease(**(values | changes))


def sent(message: Any) -> Any:
    """The message as the other side gets it."""
    return type(message).FromString(message.SerializeToString())


def read(reply: LeaseReply) -> tuple[LeaseReply, agents.LeaseReplyReader]:
    """What an executor reads of a reply."""
    reader = agents.LeaseReplyReader()
    answers = [reader.feed(sent(message)) for message in agents.lease_reply_messages(reply)]
    assert answers[:-1] == [None] * (len(answers) - 1)
    assert answers[-1] is not None
    return answers[-1], reader


def test_a_request_goes_both_ways() -> None:
    assert agents.ReportedFleet().request(sent(agents.lease_request_message(REQUEST))) == REQUEST


def test_what_has_not_changed_is_the_same_object() -> None:
    fleet = agents.ReportedFleet()
    first = fleet.request(sent(agents.lease_request_message(REQUEST)))
    again = fleet.request(sent(agents.lease_request_message(REQUEST)))
    assert again.nodes[0] is first.nodes[0]
    moved = msgspec.structs.replace(REQUEST, nodes=(NodeReport(NODE, (HeldRun("r9", "running"),)),))
    later = fleet.request(sent(agents.lease_request_message(moved)))
    assert later.nodes[0].runs == (HeldRun("r9", "running"),)
    assert later.nodes[0].node is first.nodes[0].node


def test_equal_nodes_of_two_executors_are_two_nodes() -> None:
    fleet = agents.ReportedFleet()
    message = agents.lease_request_message(REQUEST)
    fleet.request(sent(message))
    message.executor_id = "c2"
    assert fleet.request(sent(message)).nodes[0].node.node_id == "c2-n1"


def test_a_node_without_pool_is_in_the_executors_pool() -> None:
    message = executorapi.LeaseRequest(executor_id="c1", pool="default")
    message.nodes.add(name="n1").taints.add(key="armadaproject.io/reservation")
    node = agents.ReportedFleet().request(message).nodes[0].node
    assert (node.pool, node.reservation) == ("default", "unspecified")


def test_use_of_resources_is_read_and_changes_no_node() -> None:
    message = agents.lease_request_message(LeaseRequest(executor_id="east", pool="p", nodes=(NodeReport(NODE),)))
    fleet = agents.ReportedFleet()
    before = fleet.request(executorapi.LeaseRequest.FromString(message.SerializeToString()))
    used = message.nodes[0].resource_usage_by_queue_and_pool.add(pool="p", queue="qa")
    used.resources["cpu"].string = "1500m"
    used.resources["memory"].string = "nonsense"
    after = fleet.request(message)
    assert after.usage == (NodeUsage(NODE.name, "p", "qa", (("cpu", 1.5),)),)
    assert (before.usage, after.nodes[0] is before.nodes[0]) == ((), True)


def test_an_empty_request_is_one() -> None:
    expected = LeaseRequest(executor_id="", pool="", nodes=(), max_leases=0)
    assert agents.ReportedFleet().request(executorapi.LeaseRequest()) == expected


def test_a_bad_quantity_names_the_node() -> None:
    message = agents.lease_request_message(REQUEST)
    message.nodes[0].total_resources["cpu"].string = "many"
    with pytest.raises(InvalidRequest, match=r"^node 'n1': totalResources\.cpu: "):
        agents.ReportedFleet().request(message)


def test_a_reply_goes_both_ways() -> None:
    reply = LeaseReply(
        cancel_run_ids=("r8", "r9"), leases=(lease(), lease(run_id="r2", job_id="j2", preemptible=False))
    )
    back, reader = read(reply)
    assert back == reply
    assert reader.refused == []
    assert back.leases[0].template.pod_spec is back.leases[1].template.pod_spec


def test_a_reply_is_in_protocol_order() -> None:
    kinds = [
        message.WhichOneof("event")
        for message in agents.lease_reply_messages(LeaseReply(cancel_run_ids=("r",), leases=(lease(),)))
    ]
    assert kinds == ["cancel_runs", "lease", "end"]
    assert [message.WhichOneof("event") for message in agents.lease_reply_messages(LeaseReply())] == ["end"]


def test_a_lease_is_pinned_marked_and_fitted_to_the_cluster() -> None:
    pod = {
        **POD,
        "priorityClassName": "armada-preemptible",
        "initContainers": [{"name": "i", "resources": {"requests": {"licence": "1"}, "limits": {"licence": "1"}}}],
    }
    shown = template(
        pod_spec=msgspec.json.encode(pod), labels={"t": "{JobId}"}, annotations={"a": "{{JobId}}"}, external_job_uri="u"
    )
    reply = LeaseReply(
        leases=(
            lease(
                template=shown,
                tolerations=(Toleration("away", "Equal", "yes", "NoSchedule"),),
                overlay={"armadaproject.io/gangNodeUniformityLabelValue": "rack-1"},
            ),
        )
    )
    rules = agents.LeaseRules(node_id_label="node-id", known_resources=frozenset({"cpu", "memory"}))
    message = next(agents.lease_reply_messages(reply, rules)).lease
    spec = message.job.mainObject.pod_spec.pod_spec
    metadata = message.job.objectMeta
    assert dict(spec.nodeSelector) == {"node-id": "n1"}
    assert [(toleration.key, toleration.value) for toleration in spec.tolerations] == [("away", "yes")]
    assert spec.priorityClassName == "armada-default"
    assert dict(spec.initContainers[0].resources.requests) == {}
    assert spec.containers[0].resources.requests["cpu"].string == "1"
    assert dict(metadata.labels) == {"t": "j1", "armada_preemptible": "true"}
    assert dict(metadata.annotations) == {
        "a": "JobId",
        "armadaproject.io/pool": "default",
        "armadaproject.io/gangNodeUniformityLabelValue": "rack-1",
    }
    assert (metadata.namespace, message.user, list(message.groups)) == ("lab", "dana", ["everyone", "imaging"])
    assert (message.job.job_id, message.job_run_id, message.job.external_job_uri) == ("j1", "r1", "u")


def test_leases_of_one_template_do_not_disturb_each_other() -> None:
    shared = template()
    reply = LeaseReply(leases=(lease(template=shared, node_name="n1"), lease(template=shared, node_name="")))
    rules = agents.LeaseRules(priority_class_override="")
    first, second = (message.lease for message in list(agents.lease_reply_messages(reply, rules))[:2])
    assert first.job.mainObject.pod_spec.pod_spec.nodeSelector["kubernetes.io/hostname"] == "n1"
    assert dict(second.job.mainObject.pod_spec.pod_spec.nodeSelector) == {}


def test_objects_of_a_job_come_along() -> None:
    service = {
        "metadata": {"name": "armada-{JobId}-0-service-0", "namespace": "lab", "labels": {"armada_job_id": "{JobId}"}},
        "spec": {"type": "NodePort", "ports": [{"name": "main-80", "protocol": "TCP", "port": 80}]},
    }
    ingress = {"metadata": {"name": "i", "annotations": {"k": "v"}}, "spec": {"rules": [{"host": "h."}]}}
    back, _ = read(LeaseReply(leases=(lease(template=template(services=(service,), ingresses=(ingress,))),)))
    assert back.leases[0].template.services[0]["metadata"] == {
        "name": "armada-j1-0-service-0",
        "namespace": "lab",
        "labels": {"armada_job_id": "j1"},
    }
    assert back.leases[0].template.services[0]["spec"]["ports"][0]["port"] == 80
    assert back.leases[0].template.ingresses == (ingress,)


@pytest.mark.parametrize(
    ("annotations", "gang"),
    [
        ({"armadaproject.io/gangId": "g", "armadaproject.io/gangCardinality": "2"}, GangSpec("g", 2)),
        ({"armadaproject.io/gangId": "g", "armadaproject.io/gangCardinality": "1"}, None),
        ({"armadaproject.io/gangId": "", "armadaproject.io/gangCardinality": "2"}, None),
        ({"armadaproject.io/gangId": "g", "armadaproject.io/gangCardinality": "²"}, None),
        ({}, None),
    ],
)
def test_a_gang_is_read_from_its_annotations(annotations: dict[str, str], gang: GangSpec | None) -> None:
    back, _ = read(LeaseReply(leases=(lease(template=template(annotations=annotations)),)))
    assert back.leases[0].template.gang == gang


def test_a_lease_that_can_not_be_carried_out_is_kept_apart() -> None:
    reader = agents.LeaseReplyReader()
    broken = executorapi.LeaseStreamMessage()
    broken.lease.job_run_id = "r1"
    broken.lease.job.job_id = "j1"
    reader.feed(broken)
    broken.lease.queue = "q"
    broken.lease.jobset = "s"
    reader.feed(broken)
    end = executorapi.LeaseStreamMessage(end=executorapi.EndMarker())
    assert reader.feed(end) == LeaseReply()
    assert [(refused.run_id, refused.queue) for refused in reader.refused] == [("r1", ""), ("r1", "q")]
    assert "pod spec" in reader.refused[1].reason


def test_runs_to_preempt_end_like_cancelled_ones() -> None:
    reader = agents.LeaseReplyReader()
    preempt = executorapi.PreemptRuns(job_run_ids_to_preempt=["r1"])
    reader.feed(executorapi.LeaseStreamMessage(preempt_runs=preempt))
    reply = reader.feed(executorapi.LeaseStreamMessage(end=executorapi.EndMarker()))
    assert reply == LeaseReply(cancel_run_ids=("r1",))


def test_unknown_states_of_runs_are_unknown() -> None:
    value = {"nodes": [{"name": "n", "runIdsByState": {"r": "LEASED"}}]}
    message = from_json(value, executorapi.LeaseRequest)
    assert agents.ReportedFleet().request(message).nodes[0].runs == (HeldRun("r", "unknown"),)
