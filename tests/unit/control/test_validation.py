"""What a submitted job must meet: each rule with what is refused and what is not (F064, F084, F090)."""

from typing import Any

import pytest

from armada.control.commands.submission.gangs import gang_claim
from armada.control.commands.submission.validation import item_fault
from armada.model.jobs import KubernetesObject
from armada.model.submission import IngressRequest, SubmissionPolicy, SubmittedItem, SubmittedPod
from tests.unit.control.world import gang_item, item, pod, resources

POLICY = SubmissionPolicy()


def with_container(**container: Any) -> KubernetesObject:
    return {"containers": [{"name": "main", "image": "x", **container}]}


def with_init(**container: Any) -> KubernetesObject:
    return pod(initContainers=[{"name": "prepare", "image": "x", **container}])


def node_affinity(*expressions: KubernetesObject) -> KubernetesObject:
    required = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    return pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})


def test_a_plain_job_is_right() -> None:
    assert item_fault(item(), POLICY) == ""


def test_a_pod_without_containers_is_right() -> None:
    assert item_fault(item({}), POLICY) == ""


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (item(namespace=""), "namespace"),
        (item(namespace="n" * 254), "namespace"),
        (item(namespace="a\0b"), "NUL"),
        (SubmittedItem(namespace="ns"), "pod spec"),
        (SubmittedItem(namespace="ns", pods=(SubmittedPod(pod(), 1),), both_pod_fields=True), "both"),
        (SubmittedItem(namespace="ns", pods=(SubmittedPod(pod(), 1), SubmittedPod(pod(), 1))), "2 entries"),
        (SubmittedItem(namespace="ns", pods=(SubmittedPod(pod(), 65_536),)), "65536 bytes"),
        (item(pod(priorityClassName="gold")), "'gold'"),
        (item(pod(priorityClassName="Armada-Default")), "'Armada-Default'"),
        (item(pod(terminationGracePeriodSeconds=301)), "301"),
        (item(pod(terminationGracePeriodSeconds=-1)), "-1"),
        (item(pod(activeDeadlineSeconds=-1)), "activeDeadlineSeconds (-1)"),
        (item(ingresses=(IngressRequest(),)), "no ports"),
        (item(ingresses=(IngressRequest(ports=(80,)), IngressRequest(ports=(80,)))), "port 80"),
        (item(annotations={"armadaproject.io/priceBand": "z"}), "priceBand"),
        (item(annotations={"armadaproject.io/priceBand": ""}), "priceBand"),
        (item(labels={"a": "\0"}), "NUL"),
        (item(labels={"a": "\ud800"}), "surrogate"),
        (item(annotations={"a": "x" * 262_145}), "262145"),
        (item(pod(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}})), "preferred"),
        (item(with_container(resources=resources(cpu="1"), ports=[{"containerPort": 70_000}])), "70000"),
        (item({"containers": "no list"}), "can't be read"),
    ],
)
def test_what_is_refused_is_named(bad: SubmittedItem, named: str) -> None:
    assert named in item_fault(bad, POLICY)


def test_a_port_counts_once_whatever_its_protocol() -> None:
    spec = pod()
    spec["containers"][0]["ports"] = [{"containerPort": 80, "protocol": "TCP"}]
    spec["containers"].append(
        {"name": "side", "resources": resources(cpu="1"), "ports": [{"containerPort": 80, "protocol": "UDP"}]}
    )
    assert "port 80 is exposed by container main and again by container side" in item_fault(item(spec), POLICY)


@pytest.mark.parametrize("where", ["container", "init container"])
@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({}, "no resources"),
        ({"requests": {"cpu": "1"}}, "requests.cpu is set, but limits.cpu is not"),
        ({"limits": {"cpu": "1"}}, "limits.cpu is set, but requests.cpu is not"),
        ({"requests": {"cpu": "500m"}, "limits": {"memory": "64Mi"}}, "requests.cpu is set"),
        ({"requests": {"cpu": "500m"}, "limits": {"cpu": "400m"}}, "below requests.cpu"),
        ({"requests": {"cpu": "500m"}, "limits": {"cpu": "900m"}}, "above 1 x requests.cpu"),
        ({"requests": {"cpu": "-1"}, "limits": {"cpu": "-1"}}, "negative"),
        ({"requests": {"memory": "1"}, "limits": {"memory": "1"}}, "below the minimum (1Mi)"),
        ({"requests": {"memory": "0"}, "limits": {"memory": "0"}}, "below the minimum"),
        ({"requests": {"cpu": "abc"}, "limits": {"cpu": "abc"}}, "'abc'"),
        ({"requests": {"cpu": "NaN"}, "limits": {"cpu": "NaN"}}, "'NaN'"),
        ({"requests": {"cpu": ""}, "limits": {"cpu": ""}}, "empty"),
        ({"requests": {"memory": "1e30"}, "limits": {"memory": "1e30"}}, "above the largest possible amount"),
        ({"requests": {"x.io/card": "500m"}, "limits": {"x.io/card": "500m"}}, "whole number"),
    ],
)
def test_resources_are_checked_in_every_container(asked: KubernetesObject, named: str, where: str) -> None:
    spec = with_container(resources=asked) if where == "container" else with_init(resources=asked)
    fault = item_fault(item(spec), POLICY)
    assert fault.startswith(f"{where} ")
    assert named in fault


@pytest.mark.parametrize("cpu", ["0", "1n", "0.0001", "1e3", "100000"])
def test_odd_amounts_of_cpu_are_right(cpu: str) -> None:
    assert item_fault(item(pod(cpu=cpu)), POLICY) == ""


def test_sums_beyond_all_amounts_are_refused() -> None:
    huge = resources(**{"x.io/card": "9223372036854775807"})
    spec = {"containers": [{"name": name, "resources": huge} for name in ("a", "b")]}
    assert "add up to more than" in item_fault(item(spec), POLICY)


def test_limits_may_exceed_requests_where_the_policy_says_so() -> None:
    policy = SubmissionPolicy(max_oversubscription_by_resource_request={"cpu": 2.0})
    double = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    assert item_fault(item(with_container(resources=double)), policy) == ""
    triple = {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}}
    assert "above 2 x requests.cpu" in item_fault(item(with_container(resources=triple)), policy)


@pytest.mark.parametrize(("cpu", "is_right"), [("1", False), ("2", False), ("900m", True), ("0", True)])
def test_init_containers_ask_for_fractions_of_a_core(cpu: str, *, is_right: bool) -> None:
    fault = item_fault(item(with_init(resources=resources(cpu=cpu))), POLICY)
    assert (fault == "") is is_right
    whole = SubmissionPolicy(assert_init_containers_request_fractional_cpu=False)
    assert item_fault(item(with_init(resources=resources(cpu=cpu))), whole) == ""


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ({"key": "zone", "operator": "Like", "values": ["a"]}, "'Like'"),
        ({"key": "zone", "operator": "In"}, "at least one value"),
        ({"key": "zone", "operator": "Exists", "values": ["a"]}, "takes no values"),
        ({"key": "zone", "operator": "Gt", "values": ["1", "2"]}, "exactly one value"),
        ({"key": "zone", "operator": "Lt", "values": ["x"]}, "whole number"),
        ({"key": "bad key", "operator": "Exists"}, "label key 'bad key'"),
        ({"key": "UPPER/x", "operator": "Exists"}, "prefix"),
        ({"key": "zone", "operator": "In", "values": ["a b"]}, "label value 'a b'"),
    ],
)
def test_required_affinity_must_make_sense(expression: KubernetesObject, named: str) -> None:
    """F106."""
    fault = item_fault(item(node_affinity({"key": "ok", "operator": "Exists"}, expression)), POLICY)
    assert "nodeSelectorTerms[0].matchExpressions[1]" in fault
    assert named in fault


def test_restricted_tolerations_are_refused() -> None:
    policy = SubmissionPolicy(restricted_toleration_keys=("reserved",))
    assert "'reserved'" in item_fault(item(pod(tolerations=[{"key": "reserved"}])), policy)
    assert item_fault(item(pod(tolerations=[{"key": "open"}])), policy) == ""


@pytest.mark.parametrize(
    ("gang_id", "cardinality", "named"),
    [
        ("", "2", "gangId"),
        ("g", "", "no whole number"),
        ("g", "0", "at least 1"),
        ("g", "-2", "at least 1"),
        ("g", "2.0", "no whole number"),
        ("g", " 2", "no whole number"),
        ("g", "abc", "no whole number"),
        ("g", "999999999999", "above"),
        ("g", "9" * 5_000, "above"),
    ],
)
def test_bad_gang_annotations_are_named(gang_id: str, cardinality: str, named: str) -> None:
    claim, fault = gang_claim(gang_item(gang_id, cardinality), POLICY)
    assert claim is None
    assert named in fault


def test_a_gang_without_cardinality_is_refused() -> None:
    _, fault = gang_claim(item(annotations={"armadaproject.io/gangId": "g"}), POLICY)
    assert "gangCardinality is missing" in fault


def test_a_gang_of_one_is_a_plain_job() -> None:
    assert gang_claim(gang_item("g", "1"), POLICY) == (None, "")


def test_members_of_gangs_fail_fast() -> None:
    _, fault = gang_claim(gang_item("g", "2", failFast="false"), POLICY)
    assert "failFast" in fault
    claim, fault = gang_claim(gang_item("g", "2", failFast="true"), POLICY)
    assert claim is not None
    assert fault == ""
