"""Drawn fleets: up to 30 nodes of a few kinds, on two or three executors that may be sick."""

from typing import Any, Final

from hypothesis import strategies as st

from tests.oracle.drawing.features import Features, often, one_of
from tests.oracle.drawing.rules import FAST_TAINT, GPU_TAINT, SOFT_TAINT, TEAM_TAINT

RACKS: Final = ("r0", "r1", "r2")
ZONES: Final = ("z0", "z1")


def _kind(draw: st.DrawFn, on: Features, pools: tuple[str, ...]) -> dict[str, Any]:
    """What nodes of one kind have in common."""
    kind: dict[str, Any] = {
        "pool": one_of(draw, *pools),
        "labels": {"rack": one_of(draw, *RACKS)},
        "total": {
            "cpu": one_of(draw, "2", "4", "4500m", "8", "1"),
            "memory": one_of(draw, "8Gi", "20Gi", "40Gi"),
            "pods": one_of(draw, "5", "2", "30"),
        },
    }
    if often(draw, "labels" in on):
        kind["labels"] = {"zone": one_of(draw, *ZONES), "generation": one_of(draw, "3", "7", "odd")}
    taints = []
    if often(draw, "away" in on, 3):
        taints.append(one_of(draw, GPU_TAINT, FAST_TAINT, {**GPU_TAINT, "value": "other"}))
    if often(draw, "taints" in on, 3):
        taints.append(one_of(draw, TEAM_TAINT, SOFT_TAINT, GPU_TAINT))
    if taints:
        kind["taints"] = taints
    if often(draw, bool(taints) or "away" in on):
        kind["total"]["gpu"] = one_of(draw, "4", "1")
    return kind


def _node(draw: st.DrawFn, on: Features, kind: dict[str, Any], number: int) -> dict[str, Any]:
    node = {**kind, "id": f"n{number:02d}", "labels": {**kind["labels"], "kubernetes.io/hostname": f"n{number:02d}"}}
    if often(draw, "foreign pods" in on, 4):
        node["unallocatable"] = {
            one_of(draw, "0", "200"): {"cpu": one_of(draw, "500m", "1750m", "5"), "memory": one_of(draw, "1Gi", "9Gi")}
        }
    if often(draw, "unschedulable" in on, 5):
        node["unschedulable"] = True
    return node


def fleet(draw: st.DrawFn, on: Features, pools: tuple[str, ...]) -> list[dict[str, Any]]:
    """Draw executors with their nodes. A third one, if there is one, has no node."""
    nodes: list[dict[str, Any]] = []
    most = one_of(draw, 6, 12, 30)
    for _ in range(draw(st.integers(1, 4))):
        kind = _kind(draw, on, pools)
        nodes += [_node(draw, on, kind, len(nodes) + extra) for extra in range(draw(st.integers(1, most)))]
        nodes = nodes[:most]
    mixed = draw(st.permutations(nodes)) if draw(st.booleans()) else nodes
    cut = draw(st.integers(0, len(mixed)))
    executors: list[dict[str, Any]] = [{"id": "e0", "nodes": mixed[:cut]}, {"id": "e1", "nodes": mixed[cut:]}]
    for executor in executors:
        if often(draw, "sick fleet" in on, 4):
            executor.update(
                one_of(draw, {"cordoned": True}, {"heartbeatSecondsAgo": 601}, {"heartbeatSecondsAgo": 599})
            )
    return executors
