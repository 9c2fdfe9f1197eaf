"""Strict reading of Kubernetes JSON."""

from typing import Any

import pytest
from armada_client.armada import submit_pb2 as api
from armada_client.k8s.io.api.core.v1 import generated_pb2 as core

from armada.model.errors import InvalidRequest
from armada.wire.kubernetes.reading import STRICT, Reading, from_json
from tests.unit.wire.builders import POD

COERCING = Reading(coerce=True)


def refusal(value: Any, how: Reading = STRICT) -> str:
    with pytest.raises(InvalidRequest) as refused:
        from_json(value, api.JobSubmitRequest, path="request", how=how)
    return str(refused.value)


def item(**changes: Any) -> dict[str, Any]:
    return {"queue": "q", "jobRequestItems": [{"namespace": "lab", "podSpec": POD, **changes}]}


def test_an_api_message_reads_by_its_json_names() -> None:
    value = item(priority=3.5, services=[{"type": "Headless", "ports": [80]}], ingress=[{"useClusterIP": True}])
    request = from_json(value, api.JobSubmitRequest)
    row = request.job_request_items[0]
    assert (row.priority, row.services[0].type, row.services[0].ports[:]) == (3.5, api.ServiceType.Headless, [80])
    assert row.ingress[0].use_clusterIP
    assert row.pod_spec.containers[0].resources.limits["memory"].string == "1Gi"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([], "request: an object is wanted, not a list"),
        (
            item(podSpec={"containers": [{}, {"imagee": "x"}]}),
            "request.jobRequestItems[0].podSpec.containers[1].imagee",
        ),
        (item(podSpec={"containers": [{"imagee": "x"}]}), "did you mean image?"),
        (item(podSpec={"containers": {}}), "podSpec.containers: a list is wanted, not an object"),
        (item(podSpec={"containers": [{"args": [1]}]}), "args[0]: text is wanted, not a number"),
        (item(podSpec={"hostNetwork": "yes"}), "hostNetwork: true or false is wanted, not text"),
        (item(podSpec={"priority": 1.5}), "priority: a whole number is wanted, not 1.5"),
        (item(podSpec={"priority": 2**31}), "is outside"),
        (item(podSpec={"priority": True}), "priority: a number is wanted, not a boolean"),
        (item(podSpec={"overhead": {"cpu": "lots"}}), "overhead.cpu: 'lots' is no Kubernetes quantity"),
        (item(podSpec={"overhead": {"cpu": []}}), "overhead.cpu: a quantity is wanted, not a list"),
        (item(podSpec={"nodeSelector": []}), "nodeSelector: an object is wanted, not a list"),
        (item(labels={"a": None}), "labels.a: text is wanted, not nothing"),
        (item(labels={1: "x"}), "labels.1: a key must be text"),
        (item(labels={"a": "x\0"}), "labels.a: text with a NUL byte"),
        (item(namespace="\ud800"), "namespace: can't be taken"),
        (item(services=[{"type": "LoadBalancer"}]), "type: one of NodePort, Headless is wanted"),
        (item(services=[{"type": 7}]), "type: one of"),
        (item(services=[{"ports": [-1]}]), "ports[0]: -1 is outside 0 to 4294967295"),
        (item(pod_spec={}), "pod_spec: unknown field, did you mean podSpec?"),
        (
            item(podSpec={"containers": [{"livenessProbe": {"httpGet": {"port": 1.5}}}]}),
            "port: a number or a name is wanted, not a number",
        ),
        (item(podSpec={"tolerations": [{"tolerationSeconds": float("inf")}]}), "a whole number is wanted, not inf"),
    ],
)
def test_refusals_name_the_place(value: Any, text: str) -> None:
    assert text in refusal(value)


def test_a_bad_time_or_base64_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"^metadata.creationTimestamp: a time such as"):
        from_json({"metadata": {"creationTimestamp": "yesterday"}}, core.Pod)
    with pytest.raises(InvalidRequest, match=r"^binaryData.a: base64 text is wanted"):
        from_json({"binaryData": {"a": "%"}}, core.ConfigMap)


def test_numbers_become_text_where_asked() -> None:
    labels = {"a": 1, "b": True, "c": 1.5, "d": 2.0, "e": "x"}
    request = from_json(item(labels=labels), api.JobSubmitRequest, how=COERCING)
    assert dict(request.job_request_items[0].labels) == {"a": "1", "b": "true", "c": "1.5", "d": "2", "e": "x"}
    assert "labels.a: text is wanted, not a list" in refusal(item(labels={"a": [1]}), COERCING)


def test_quantities_may_be_numbers() -> None:
    spec = from_json({"overhead": {"cpu": 2, "memory": 0.5}}, core.PodSpec)
    assert (spec.overhead["cpu"].string, spec.overhead["memory"].string) == ("2", "500m")


def test_nothing_stands_for_absence_and_unknown_keys_can_be_passed_over() -> None:
    spec = from_json({"affinity": None, "novelty": 1}, core.PodSpec, how=Reading(ignore_unknown=True))
    assert spec == core.PodSpec()
