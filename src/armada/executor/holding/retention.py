"""Finished pods that stay for a while so that their logs can be read; how long, how many, and which go first. Pure."""

from typing import Final

import msgspec

from armada.executor.pods import FAILED, Pod

ASK_AGAIN_MS: Final = 60_000
"""A deletion that was asked for and didn't happen is asked for again after this long."""


class RetentionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long finished pods stay, and how many at most; with a `pod_count` of 0 none stays."""

    succeeded_ms: int = 180_000
    failed_ms: int = 600_000
    pod_count: int = 1_000

    @property
    def keeps_any(self) -> bool:
        """False when finished pods are deleted at once."""
        return self.pod_count > 0


class Retained:
    """Pods whose runs are over and forgotten by the control plane, oldest first."""

    def __init__(self, limits: RetentionLimits) -> None:
        self._limits = limits
        self._pods: dict[str, Pod] = {}
        self._asked_ms: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def add(self, pod: Pod) -> None:
        """Keep a pod."""
        self._pods[pod.run_id] = pod

    def update(self, pod: Pod) -> bool:
        """A kept pod changed; False when it is not kept here."""
        if pod.run_id not in self._pods:
            return False
        self._pods[pod.run_id] = pod
        return True

    def pod(self, run_id: str) -> Pod | None:
        """The kept pod of a run."""
        return self._pods.get(run_id)

    def drop(self, run_id: str) -> bool:
        """The pod is gone; False when it was not kept here."""
        self._asked_ms.pop(run_id, None)
        return self._pods.pop(run_id, None) is not None

    def ask(self, run_id: str, now_ms: int) -> None:
        """Its deletion was asked for."""
        if run_id in self._pods:
            self._asked_ms[run_id] = now_ms

    def run_ids(self) -> tuple[str, ...]:
        """Runs of all kept pods."""
        return tuple(self._pods)

    def due(self, now_ms: int) -> list[str]:
        """Runs whose pods should be deleted now.

        Those past their time, then the oldest of whichever queue keeps most until the number is in bounds, so that one
        busy queue doesn't cost the others their logs; and those asked for long ago that are still there.
        """
        if not self._pods:
            return []
        limits = self._limits
        result: list[str] = []
        kept: dict[str, list[str]] = {}
        for run_id, pod in self._pods.items():
            asked_ms = self._asked_ms.get(run_id)
            if asked_ms is not None:
                if now_ms - asked_ms > ASK_AGAIN_MS:
                    result.append(run_id)
                continue
            stay_ms = limits.failed_ms if pod.phase == FAILED else limits.succeeded_ms
            if now_ms - (pod.finished_ms or pod.changed_ms) > stay_ms:
                result.append(run_id)
            else:
                kept.setdefault(pod.queue, []).append(run_id)
        excess = sum(len(run_ids) for run_ids in kept.values()) - limits.pod_count
        first = dict.fromkeys(kept, 0)
        for _ in range(excess):
            queue = max(kept, key=lambda name: (len(kept[name]) - first[name], name))
            result.append(kept[queue][first[queue]])
            first[queue] += 1
        return result
