"""Kubernetes messages as JSON and back."""

import pytest
from armada_client.k8s.io.api.core.v1 import generated_pb2 as core
from armada_client.k8s.io.api.networking.v1 import generated_pb2 as networking

from armada.model.errors import InvalidRequest
from armada.wire.podspec import (
    ByteCache,
    from_json,
    pod_spec_json,
    pod_spec_message,
    submitted_pod,
    to_json,
)
from tests.unit.wire.builders import POD, pod_message


def test_a_plain_pod_reads_as_kubernetes_writes_it() -> None:
    assert to_json(pod_message()) == POD


def test_quantities_come_out_canonical() -> None:
    spec = pod_message()
    spec.containers[0].resources.limits["memory"].string = "1024Mi"
    spec.containers[0].resources.limits["cpu"].string = "0.5"
    assert to_json(spec)["containers"][0]["resources"]["limits"] == {"cpu": "500m", "memory": "1Gi"}


@pytest.mark.parametrize("text", ["one", "", "1e", "NaN", "--1"])
def test_a_bad_quantity_is_refused_with_its_place(text: str) -> None:
    spec = pod_message()
    spec.containers[0].resources.limits["cpu"].string = text
    with pytest.raises(InvalidRequest, match=r"^containers\[0\]\.resources\.limits\.cpu: "):
        to_json(spec)


def test_a_nul_byte_is_refused_with_its_place() -> None:
    spec = pod_message()
    spec.containers[0].env.add(name="A", value="x\0y")
    with pytest.raises(InvalidRequest, match=r"containers\[0\]\.env\[0\]\.value: .*NUL"):
        to_json(spec)


def test_text_that_is_not_utf8_is_refused() -> None:
    spec = core.PodSpec.FromString(b"\x1a\x04\xff\xfe\xfd\xfc")  # field 3, restartPolicy
    with pytest.raises(InvalidRequest, match="UTF-8"):
        to_json(spec)


def test_what_go_always_writes_is_left_out() -> None:
    spec = pod_message()
    spec.restartPolicy = ""
    spec.hostNetwork = False
    spec.containers[0].stdin = False
    spec.containers[0].workingDir = ""
    assert to_json(spec) == POD


def test_zeros_that_are_meant_stay() -> None:
    spec = core.PodSpec(terminationGracePeriodSeconds=0, automountServiceAccountToken=False)
    spec.securityContext.runAsUser = 0
    spec.volumes.add(name="scratch").volumeSource.emptyDir.SetInParent()
    assert to_json(spec) == {
        "volumes": [{"name": "scratch", "emptyDir": {}}],
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "securityContext": {"runAsUser": 0},
    }


def full_pod() -> dict[str, object]:
    """One of everything that JSON writes otherwise than protobuf."""
    return {
        "volumes": [
            {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}},
            {"name": "settings", "configMap": {"name": "settings", "defaultMode": 0}},
            {"name": "mix", "projected": {"sources": [{"secret": {"name": "keys", "optional": False}}]}},
        ],
        "containers": [
            {
                "name": "main",
                "env": [
                    {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "a"}}},
                    {"name": "B", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "b", "optional": True}}},
                ],
                "livenessProbe": {"httpGet": {"path": "/", "port": "web"}, "periodSeconds": 5},
                "readinessProbe": {"tcpSocket": {"port": 8080}},
            },
        ],
        "ephemeralContainers": [{"name": "probe", "image": "probe:1", "targetContainerName": "main"}],
        "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 0}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]},
                    ],
                },
            },
        },
        "overhead": {"cpu": "10m"},
    }


def test_flattened_members_and_scalars_go_both_ways() -> None:
    spec = from_json(full_pod(), core.PodSpec)
    assert spec.volumes[0].volumeSource.emptyDir.sizeLimit.string == "1Gi"
    assert spec.volumes[1].volumeSource.configMap.localObjectReference.name == "settings"
    assert spec.containers[0].livenessProbe.handler.httpGet.port.strVal == "web"
    assert spec.containers[0].readinessProbe.handler.tcpSocket.port.intVal == 8080
    assert spec.ephemeralContainers[0].ephemeralContainerCommon.name == "probe"
    assert to_json(core.PodSpec.FromString(spec.SerializeToString())) == full_pod()


def test_an_ingress_goes_both_ways() -> None:
    ingress = {
        "metadata": {
            "name": "i",
            "namespace": "lab",
            "labels": {"a": "b"},
            "deletionTimestamp": "2026-01-31T12:00:00Z",
        },
        "spec": {"rules": [{"host": "h", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {}}]}}]},
    }
    message = from_json(ingress, networking.Ingress)
    assert message.spec.rules[0].ingressRuleValue.http.paths[0].path == "/"
    assert message.metadata.deletionTimestamp.seconds == 1_769_860_800
    assert to_json(message) == ingress


def test_managed_fields_stay_json() -> None:
    metadata = {"managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}}]}
    pod = from_json({"metadata": metadata, "spec": {}}, core.Pod)
    assert to_json(pod)["metadata"] == metadata


def test_fields_of_a_newer_kubernetes_are_dropped() -> None:
    spec = core.PodSpec.FromString(pod_message().SerializeToString() + b"\xfa\x3f\x01x")  # field 1023
    assert to_json(spec) == POD


def test_equal_specs_are_converted_once() -> None:
    first, second = submitted_pod(pod_message()), submitted_pod(pod_message())
    assert first is second
    assert first.size_bytes == pod_message().ByteSize()
    assert pod_spec_json(pod_message()) is pod_spec_json(pod_message())
    assert pod_spec_message(pod_spec_json(pod_message())) is pod_spec_message(bytes(pod_spec_json(pod_message())))
    assert pod_spec_message(pod_spec_json(pod_message())) == pod_message()


@pytest.mark.parametrize("text", [b"{", b"[]", b'"x"', b'{"containers": 1}', b'{"containrs": []}'])
def test_what_is_no_pod_spec_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidRequest):
        pod_spec_message(text)


def test_a_cache_is_bounded_and_drops_what_was_used_longest_ago() -> None:
    cache: ByteCache[str] = ByteCache(limit_bytes=3)
    for key in (b"a", b"b", b"c"):
        cache.put(key, key.decode())
    assert cache.get(b"a") == "a"
    cache.put(b"d", "d")
    assert [cache.get(key) for key in (b"a", b"b", b"c", b"d")] == ["a", None, "c", "d"]
    assert cache.put(b"too long", "x") == "x"
    assert cache.get(b"too long") is None


def test_putting_a_key_again_does_not_count_it_twice() -> None:
    cache: ByteCache[str] = ByteCache(limit_bytes=3)
    for value in ("1", "2", "3"):
        cache.put(b"ab", value)
    cache.put(b"c", "c")
    assert (cache.get(b"ab"), cache.get(b"c")) == ("3", "c")
