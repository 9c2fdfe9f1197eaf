"""What is filled in where a job says nothing, and the objects that it is exposed by."""

import math

import msgspec
import pytest

from armada.control.commands.submission.defaults import clamped_priority, template_of
from armada.control.commands.submission.exposure import Owner, exposed
from armada.control.commands.submission.gangs import gang_claim
from armada.control.commands.submission.requests import combined_requests
from armada.model.jobs import JobTemplate, KubernetesObject, SelectorRequirement
from armada.model.submission import IngressRequest, ServiceRequest, SubmissionPolicy, SubmittedItem
from tests.unit.control.world import gang_item, item, pod, resources

POLICY = SubmissionPolicy()
OWNER = Owner("qa", "set", "alice")


def made(of: SubmittedItem, policy: SubmissionPolicy = POLICY) -> tuple[JobTemplate, KubernetesObject]:
    claim, fault = gang_claim(of, policy)
    assert fault == ""
    template = template_of(of, claim, OWNER, policy)
    return template, msgspec.json.decode(template.pod_spec)


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (-5, 0),
        (math.nan, 0),
        (-math.inf, 0),
        (0, 0),
        (0.4, 0),
        (0.5, 1),
        (2.5, 3),
        (3.6, 4),
        (5e9, 2**32 - 1),
        (math.inf, 2**32 - 1),
        (2**32 - 1, 2**32 - 1),
        (2**32 - 2, 2**32 - 2),
    ],
)
def test_priorities_are_rounded_and_held_in_range(asked: float, given: int) -> None:
    assert clamped_priority(asked) == given


def test_a_plain_job_gets_all_defaults() -> None:
    template, spec = made(item())
    assert spec["activeDeadlineSeconds"] == 259_200
    assert spec["priorityClassName"] == "armada-default"
    assert spec["terminationGracePeriodSeconds"] == 1
    assert spec["containers"][0]["resources"]["requests"] == {
        "cpu": "1",
        "memory": "64Mi",
        "ephemeral-storage": "8Gi",
    }
    assert [toleration["key"] for toleration in spec["tolerations"]] == [
        "armadaproject.io/armada",
        "armadaproject.io/pc-armada-default",
    ]
    assert template.shape.requests == (("cpu", "1"), ("ephemeral-storage", "8Gi"), ("memory", "64Mi"))
    assert template.shape.affinity is None
    assert template.gang is None
    assert not template.fail_fast


def test_what_a_job_says_stands() -> None:
    own = pod(activeDeadlineSeconds=0, terminationGracePeriodSeconds=9, nodeSelector={"zone": "b", "kind": "a"})
    template, spec = made(item(own))
    assert (spec["activeDeadlineSeconds"], spec["terminationGracePeriodSeconds"]) == (0, 9)
    assert template.shape.node_selector == (("kind", "a"), ("zone", "b"))


def test_the_submitted_spec_is_not_touched() -> None:
    submitted = pod()
    before = msgspec.json.encode(submitted)
    made(item(submitted))
    assert msgspec.json.encode(submitted) == before


def test_a_gpu_means_a_longer_deadline_and_a_toleration() -> None:
    spec = {"containers": [{"name": "main", "resources": resources(**{"cpu": "1", "nvidia.com/gpu": "1"})}]}
    _, filled = made(item(spec))
    assert filled["activeDeadlineSeconds"] == 1_209_600
    assert "armadaproject.io/gpu" in [toleration["key"] for toleration in filled["tolerations"]]
    spec["containers"][0]["resources"] = resources(**{"cpu": "1", "nvidia.com/gpu": "0"})
    _, filled = made(item(spec))
    assert filled["activeDeadlineSeconds"] == 259_200


def test_members_of_gangs_get_their_annotations() -> None:
    template, _ = made(gang_item("g", 2))
    assert template.annotations["armadaproject.io/failFast"] == "true"
    assert template.annotations["armadaproject.io/gangNodeUniformityLabel"] == ""
    assert template.fail_fast
    assert template.gang is not None
    labelled, _ = made(gang_item("g", 2), SubmissionPolicy(add_gang_id_label=True))
    assert labelled.labels == {"armadaproject.io/gangId": "g"}


def test_price_band_and_uri_come_from_annotations() -> None:
    annotated = {"armadaproject.io/priceBand": "b", "armadaproject.io/externalJobUri": "ext://1"}
    template, _ = made(item(annotations=annotated))
    assert (template.price_band, template.external_job_uri) == (2, "ext://1")
    template, _ = made(item(annotations=annotated, external_job_uri="ext://2"))
    assert template.external_job_uri == "ext://2"


def test_affinity_becomes_terms() -> None:
    expression = {"key": "zone", "operator": "In", "values": ["a"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}, {}]}
    template, _ = made(
        item(pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}))
    )
    assert template.shape.affinity == ((SelectorRequirement("zone", "In", ("a",)),), ())


def test_requests_of_a_pod_are_combined_as_kubernetes_does() -> None:
    spec = {
        "containers": [
            {"name": "a", "resources": resources(cpu="1", memory="1Gi")},
            {"name": "b", "resources": resources(cpu="500m", memory="1Gi")},
        ],
        "initContainers": [
            {"name": "first", "resources": resources(cpu="900m", memory="10Gi")},
            {"name": "side", "restartPolicy": "Always", "resources": resources(cpu="200m", memory="1Gi")},
            {"name": "second", "resources": resources(cpu="3500m", memory="1Mi")},
        ],
    }
    assert combined_requests(spec) == (("cpu", "3700m"), ("memory", "10Gi"))
    assert combined_requests(spec, "limits") == combined_requests(spec)


@pytest.mark.parametrize(
    ("main", "inits", "overhead", "needed"),
    [
        # The sum of what runs together.
        (("1", "2", "500m"), (), "0", "3500m"),
        # Each init container runs alone: the largest of them counts, if it is more than the sum.
        (("1", "1"), ("500m", "1500m"), "0", "2"),
        (("1", "1"), ("3", "2"), "0", "3"),
        # A sidecar runs beside the main containers ...
        (("2",), ("+1",), "0", "3"),
        (("2",), ("+1", "+2", "+3"), "0", "8"),
        # ... and beside the init containers that come after it, not beside those before.
        (("1",), ("10", "+5"), "0", "10"),
        (("1",), ("+5", "10"), "0", "15"),
        (("1",), ("+5", "10", "+7", "9"), "0", "21"),
        (("1",), ("+5", "20", "+7", "9"), "0", "25"),
        # Sidecars that start one after another: all run at the end.
        (("0",), ("+5", "+7"), "0", "12"),
        # Overhead comes on top of whichever is larger.
        (("1",), (), "250m", "1250m"),
        (("1",), ("10",), "250m", "10250m"),
        (("1",), ("+5", "10"), "250m", "15250m"),
    ],
)
def test_what_runs_at_the_same_time_is_what_a_pod_needs(
    main: tuple[str, ...], inits: tuple[str, ...], overhead: str, needed: str
) -> None:
    """The rule of Kubernetes' page on sidecar containers; `+` marks a sidecar."""

    def container(number: int, text: str) -> KubernetesObject:
        policy = {"restartPolicy": "Always"} if text.startswith("+") else {}
        return {"name": f"c{number}", "resources": resources(cpu=text.removeprefix("+")), **policy}

    spec: KubernetesObject = {
        "containers": [container(number, text) for number, text in enumerate(main)],
        "initContainers": [container(number, text) for number, text in enumerate(inits, len(main))],
        "overhead": {"cpu": overhead},
    }
    assert combined_requests(spec) == (("cpu", needed),)
    shape = template_of(item(spec), None, Owner("qa", "s", "alice"), SubmissionPolicy()).shape
    assert dict(shape.requests)["cpu"] == needed


def test_resources_are_combined_one_by_one() -> None:
    """The largest init container may differ from resource to resource, and what only one of them asks for counts."""
    spec: KubernetesObject = {
        "containers": [{"name": "a", "resources": resources(cpu="1", memory="1Gi")}],
        "initContainers": [
            {"name": "b", "resources": resources(cpu="3", memory="512Mi")},
            {"name": "c", "resources": resources(cpu="1", memory="4Gi", **{"nvidia.com/gpu": "1"})},
        ],
    }
    assert combined_requests(spec) == (("cpu", "3"), ("memory", "4Gi"), ("nvidia.com/gpu", "1"))


@pytest.mark.parametrize(
    ("amounts", "total"),
    [
        (("1Gi", "1Gi"), "2Gi"),
        (("1Ki", "1"), "1025"),
        (("1500m", "500m"), "2"),
        (("1e3", "1e3"), "2e3"),
        (("7E", "1"), "7000000000000000001"),
        (("0", "0"), "0"),
    ],
)
def test_sums_keep_the_form_of_their_first_text(amounts: tuple[str, ...], total: str) -> None:
    spec = {"containers": [{"name": str(n), "resources": resources(memory=text)} for n, text in enumerate(amounts)]}
    assert combined_requests(spec) == (("memory", total),)


def web(*ports: int, **port: int) -> KubernetesObject:
    spec = pod()
    spec["containers"][0]["ports"] = [{"containerPort": number, **port} for number in ports]
    return spec


def test_services_and_ingresses_are_expanded() -> None:
    submitted = item(
        web(8080, 9090),
        services=(ServiceRequest("Headless", (9090,)),),
        ingresses=(IngressRequest((8080,), {"k": "v"}, tls_enabled=True),),
    )
    services, ingresses = exposed(submitted, OWNER, POLICY)
    assert [service["metadata"]["name"] for service in services] == [
        "armada-{JobId}-0-service-0",
        "armada-{JobId}-0-service-1",
    ]
    assert [service["spec"].get("clusterIP") for service in services] == ["None", "None"]
    (ingress,) = ingresses
    assert ingress["metadata"]["annotations"] == {"k": "v", "armada_jobset_id": "set", "armada_owner": "alice"}
    assert ingress["spec"]["rules"][0]["host"] == "main-8080-armada-{JobId}-0.ns."
    assert ingress["spec"]["tls"] == [{"hosts": ["main-8080-armada-{JobId}-0.ns."], "secretName": "ns-"}]


def test_an_ingress_uses_a_service_that_has_its_ports() -> None:
    submitted = item(
        web(8080, 9090), services=(ServiceRequest("NodePort", (8080, 9090)),), ingresses=(IngressRequest((8080,)),)
    )
    services, ingresses = exposed(submitted, OWNER, POLICY)
    assert len(services) == 1
    assert services[0]["spec"]["type"] == "NodePort"
    backend = ingresses[0]["spec"]["rules"][0]["http"]["paths"][0]["backend"]
    assert backend["service"] == {"name": "armada-{JobId}-0-service-0", "port": {"number": 8080}}


def test_ports_that_nothing_exposes_make_nothing() -> None:
    unexposed = item(web(80), services=(ServiceRequest("NodePort", (81,)), ServiceRequest("NodePort")))
    assert exposed(unexposed, OWNER, POLICY) == ((), ())
    on_host = item(web(80, hostPort=80), ingresses=(IngressRequest((80,)),))
    assert exposed(on_host, OWNER, POLICY) == ((), ())


def test_custom_service_names_need_leave() -> None:
    submitted = item(web(80), services=(ServiceRequest("NodePort", (80,), "mine"),))
    services, _ = exposed(submitted, OWNER, POLICY)
    assert services[0]["metadata"]["name"] == "armada-{JobId}-0-service-0"
    services, _ = exposed(submitted, OWNER, SubmissionPolicy(allow_custom_service_names=True))
    assert services[0]["metadata"]["name"] == "mine"
