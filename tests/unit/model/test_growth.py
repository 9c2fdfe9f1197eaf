"""Memory that grows with retries: never drifting, never more in a pod than was reserved."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armada.model.growth import MAX_FACTOR, MemoryGrowth, grown, grown_further, grown_pod
from armada.model.jobs import JobShape
from armada.model.policy import RetryMutation
from armada.model.resources import parse_quantity


def shape(memory: str = "1000Mi") -> JobShape:
    requests = (("cpu", "1"), ("memory", memory)) if memory else (("cpu", "1"),)
    return JobShape(requests=requests, priority_class="armada-default")


def container(memory: str = "", **more: Any) -> dict[str, Any]:
    amounts = {"cpu": "1"} | ({"memory": memory} if memory else {})
    return {"name": "c", "resources": {"requests": dict(amounts), "limits": dict(amounts)}} | more


def memory_of(spec: dict[str, Any], part: str = "containers") -> list[str]:
    found = []
    for each in spec[part]:
        asked, limit = (each["resources"][kind].get("memory", "") for kind in ("requests", "limits"))
        assert asked == limit
        found.append(asked)
    return found


def after(*mutations: RetryMutation) -> MemoryGrowth | None:
    growth = None
    for mutation in mutations:
        growth = grown_further(growth, mutation)
    return growth


def test_a_factor_compounds() -> None:
    steps = [after(*[RetryMutation(memory_factor=1.5)] * times) for times in range(4)]
    amounts = [dict(grown(shape(), growth).requests)["memory"] for growth in steps]
    assert amounts == ["1000Mi", "1500Mi", "2250Mi", "3375Mi"]


def test_a_factor_means_the_number_that_was_written() -> None:
    growth = after(*[RetryMutation(memory_factor=1.1)] * 2)
    assert growth == MemoryGrowth(factor=1.21)
    assert dict(grown(shape("1000Mi"), growth).requests)["memory"] == "1210Mi"


def test_what_is_reserved_is_rounded_up_to_bytes() -> None:
    assert dict(grown(shape("3"), MemoryGrowth(factor=1.5)).requests)["memory"] == "5"
    assert dict(grown(shape("1G"), MemoryGrowth(factor=1.5)).requests)["memory"] == "1500M"


def test_added_amounts_add_up() -> None:
    growth = after(*[RetryMutation(memory_added="512Mi")] * 3)
    assert dict(grown(shape(), growth).requests)["memory"] == "2536Mi"
    assert dict(grown(shape(""), growth).requests)["memory"] == "1536Mi"


def test_a_job_keeps_its_first_kind_of_growth() -> None:
    factor, added = RetryMutation(memory_factor=2.0), RetryMutation(memory_added="1Gi")
    assert after(factor, added, factor) == MemoryGrowth(factor=4.0)
    assert after(added, factor, added) == MemoryGrowth(added="2Gi")
    assert after(RetryMutation(avoid_same_node=True)) is None


def test_growth_has_an_end() -> None:
    assert after(*[RetryMutation(memory_factor=1e300)] * 3) == MemoryGrowth(factor=float(MAX_FACTOR))
    endless = after(*[RetryMutation(memory_added="8Ei")] * 3)
    assert parse_quantity(dict(grown(shape("8Ei"), endless).requests)["memory"]) < 2**63 * 10**9


def test_nothing_grows_from_nothing_by_a_factor() -> None:
    assert grown(shape(""), MemoryGrowth(factor=2.0)) == shape("")
    assert grown(shape(), None) == shape()


def test_a_factor_multiplies_each_container() -> None:
    spec = {"containers": [container("3"), container(), container("1Gi")], "initContainers": [container("2Gi")]}
    changed = grown_pod(spec, MemoryGrowth(factor=1.5))
    assert memory_of(changed) == ["4", "", "1536Mi"]
    assert memory_of(changed, "initContainers") == ["3Gi"]
    assert memory_of(spec) == ["3", "", "1Gi"]


def test_an_added_amount_is_spread_in_proportion() -> None:
    spec = {
        "containers": [container("1Gi"), container("2Gi")],
        "initContainers": [container("1Gi"), container("1Gi", restartPolicy="Always"), container("1Gi")],
    }
    changed = grown_pod(spec, MemoryGrowth(added="4Gi"))
    assert memory_of(changed) == ["2Gi", "4Gi"]
    assert memory_of(changed, "initContainers") == ["5Gi", "2Gi", "4Gi"]


def test_where_nobody_asks_the_first_gets_all() -> None:
    assert memory_of(grown_pod({"containers": [container(), container()]}, MemoryGrowth(added="1Gi"))) == ["1Gi", ""]
    assert grown_pod({"containers": []}, MemoryGrowth(added="1Gi")) == {"containers": []}


amounts = st.integers(1, 10**12).map(str)
growths = st.one_of(
    st.floats(1.001, 1_000).map(lambda factor: MemoryGrowth(factor=factor)),
    amounts.map(lambda added: MemoryGrowth(added=added)),
)


@given(main=st.lists(amounts, min_size=1, max_size=4), inits=st.lists(amounts, max_size=3), growth=growths)
def test_a_pod_never_gets_more_than_is_reserved(main: list[str], inits: list[str], growth: MemoryGrowth) -> None:
    spec = {"containers": [container(each) for each in main], "initContainers": [container(each) for each in inits]}

    def whole(pod: dict[str, Any]) -> int:
        together = sum(map(parse_quantity, memory_of(pod)))
        return max([together, *map(parse_quantity, memory_of(pod, "initContainers"))])

    reserved = dict(grown(shape(str(Fraction(whole(spec), 10**9))), growth).requests)["memory"]
    assert whole(spec) < whole(grown_pod(spec, growth)) + 10**9
    assert whole(grown_pod(spec, growth)) <= parse_quantity(reserved)


@pytest.mark.parametrize("growth", [MemoryGrowth(factor=2.0), MemoryGrowth(added="1Gi")])
def test_a_pod_without_resources_is_no_fault(growth: MemoryGrowth) -> None:
    changed = grown_pod({"containers": [{"name": "c"}]}, growth)
    expected = {"requests": {"memory": "1Gi"}, "limits": {"memory": "1Gi"}}
    assert changed["containers"][0].get("resources", {}) == (expected if growth.added else {})
