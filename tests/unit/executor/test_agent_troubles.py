"""The agent after a restart, and with pods that make no progress (field cases F034, F075, F093, F103)."""

from typing import Any

import pytest

from armada.executor.cluster import PodDeletion
from armada.executor.holding.runs import Mark, Remembered
from armada.executor.holding.stimuli import (
    Acknowledged,
    Changed,
    Created,
    ExchangeFailed,
    Listed,
)
from armada.executor.pods import ContainerState, StuckLimits
from armada.model.events import RunFailed, RunReturned
from tests.unit.executor.agents import Bench
from tests.unit.executor.builders import (
    created,
    facts,
    gone,
    kinds,
    listing,
    pod,
    seen,
)


class TestRestart:
    """A new agent with what the journal says."""

    def known(self, told: int = 2, *, cancelled: bool = False) -> dict[str, Remembered]:
        known = Remembered(job_id="job-r1", queue="q", job_set="s", told=told, is_cancelled=cancelled)
        return {"r1": known}

    def test_running_pods_are_held_and_not_told_again(self) -> None:
        bench = Bench(self.known())
        bench.step(Listed(listing(pod("r1", "running"))))
        assert bench.last.report == ()
        assert bench.held() == {"r1": "running"}
        assert bench.reply("r1").create == ()

    def test_an_end_from_meanwhile_is_told_once(self) -> None:
        bench = Bench(self.known())
        bench.step(Listed(listing(pod("r1", "failed"))))
        assert kinds(bench.last.report) == ["RunFailed"]

    @pytest.mark.parametrize("cancelled", [False, True])
    def test_an_end_that_was_told_is_not_told_again(self, cancelled: bool) -> None:  # noqa: FBT001 - a table's column
        bench = Bench(self.known(3, cancelled=cancelled))
        bench.step(Listed(listing(pod("r1", "failed"))))
        for _ in range(20):
            assert bench.last.report == ()
            bench.step(after_ms=10_000)
        assert bench.agent.run_ids() == ()

    def test_a_pod_that_vanished_meanwhile_is_told_and_not_started_again(self) -> None:
        bench = Bench(self.known())
        bench.step(Listed(listing()))
        (failed,) = facts(bench.last.report)
        assert isinstance(failed, RunFailed)
        assert failed.failure.subcategory == "externally-deleted"
        assert bench.reply("r1").create == ()
        bench.step(Acknowledged())
        bench.reply(cancel=["r1"])
        assert bench.last.marks[-1] == Mark("f", "r1")

    def test_a_cancelled_pod_that_vanished_meanwhile_is_forgotten(self) -> None:
        bench = Bench(self.known(cancelled=True))
        assert bench.step(Listed(listing())).marks == (Mark("f", "r1"),)
        assert bench.last.report == ()

    def test_a_cancelled_pod_that_is_still_there_is_deleted(self) -> None:
        bench = Bench(self.known(cancelled=True))
        assert bench.step(Listed(listing(pod("r1", "running")))).delete == (PodDeletion("r1", None),)
        assert bench.held() == {"r1": "running"}

    def test_found_pods_go_on_once_the_control_plane_has_said_which_are_over(self) -> None:
        bench = Bench(self.known())
        bench.step(Listed(listing(pod("r1", "pending"), pod("r2", "pending"))))
        assert not bench.last.proceed
        bench.settle_exchange()
        assert not bench.step(ExchangeFailed()).proceed
        assert not bench.agent.is_heard
        assert bench.reply(cancel=["r1"]).delete == (PodDeletion("r1", None),)
        assert bench.last.proceed
        assert not bench.reply().proceed

    def test_a_pod_that_the_journal_does_not_know_is_held(self) -> None:
        bench = Bench()
        bench.step(Listed(listing(pod("r1", "running"))))
        assert kinds(bench.last.report) == ["RunPending", "RunStarted"]
        assert bench.reply(cancel=["r1"]).delete == (PodDeletion("r1", None),)

    def test_a_kept_pod_whose_end_was_forgotten_by_the_server_is_told_again(self) -> None:
        bench = Bench(self.known(3))
        bench.step(Listed(listing(pod("r1", "succeeded"))))
        bench.reply("r1")
        assert bench.last.create == ()
        assert kinds(bench.last.report) == ["RunPending", "RunStarted", "RunSucceeded"]


class TestStuck:
    """Pods that make no progress."""

    limits = StuckLimits(unassigned_ms=20_000, starting_ms=20_000, pulling_ms=60_000)

    def waiting(self, **changes: Any) -> Bench:
        bench = Bench(stuck=self.limits)
        bench.step(Listed(listing()))
        bench.reply("r1")
        bench.step(Created(created("r1")))
        bench.step(Changed(seen(pod("r1", changed_ms=bench.now_ms, created_ms=bench.now_ms, **changes))))
        bench.step(Acknowledged())
        return bench

    def wait(self, bench: Bench, limit_ms: int = 100_000) -> int:
        start = bench.now_ms
        while not bench.last.delete and bench.now_ms - start < limit_ms:
            bench.step(after_ms=1_000)
        return bench.now_ms - start

    def test_no_node_takes_it(self) -> None:
        bench = self.waiting(node_name="")
        assert 20_000 <= self.wait(bench) <= 26_000
        assert bench.last.delete == (PodDeletion("r1", 0, only_pending=True),)
        bench.step(Changed(gone("r1")))
        (returned,) = facts(bench.last.report)
        assert isinstance(returned, RunReturned)
        assert not returned.attempted

    def test_it_does_not_start(self) -> None:
        bench = self.waiting(containers=(ContainerState(name="main", reason="ErrImagePull", message="no such image"),))
        assert 60_000 <= self.wait(bench) <= 66_000
        bench.step(Changed(gone("r1")))
        (returned,) = facts(bench.last.report)
        assert isinstance(returned, RunReturned)
        assert returned.attempted
        assert "ErrImagePull: no such image" in returned.failure.reason

    def test_a_name_that_can_never_work_fails_at_the_next_look(self) -> None:
        bench = self.waiting(containers=(ContainerState(name="main", reason="InvalidImageName"),))
        assert self.wait(bench) <= 6_000
        assert kinds(bench.last.report) == ["RunFailed"]

    def test_an_init_container_takes_its_time(self) -> None:
        first = ContainerState(name="first", is_init=True, started_ms=11_000)
        bench = self.waiting(containers=(first, ContainerState(name="main")))
        self.wait(bench)
        assert bench.last.delete == ()

    def test_it_started_after_all(self) -> None:
        bench = self.waiting()
        self.wait(bench)
        bench.step(Changed(seen(pod("r1", "running"))))
        assert kinds(bench.last.report) == ["RunStarted"]
        bench.step(Acknowledged(), Changed(seen(pod("r1", "succeeded"))))
        assert kinds(bench.last.report) == ["RunSucceeded"]

    def test_a_deadline_that_the_cluster_did_not_keep(self) -> None:
        bench = Bench()
        bench.step(Listed(listing()))
        bench.reply("r1")
        bench.step(Created(created("r1")))
        running = pod("r1", "running", started_ms=bench.now_ms, deadline_ms=20_000, grace_ms=1_000)
        bench.step(Changed(seen(running)))
        bench.step(Acknowledged())
        assert 51_000 <= self.wait(bench) <= 57_000
        (failed,) = facts(bench.last.report)
        assert isinstance(failed, RunFailed)
        assert failed.failure.cause == "deadline_exceeded"
        assert bench.last.delete == (PodDeletion("r1", None),)

    def test_deletion_from_outside_that_does_not_end(self) -> None:
        bench = Bench()
        bench.started("r1")
        bench.step(Changed(seen(pod("r1", "running", deletion_due_ms=bench.now_ms))))
        assert 30_000 <= self.wait(bench) <= 36_000
        assert kinds(bench.last.report) == ["RunFailed"]
