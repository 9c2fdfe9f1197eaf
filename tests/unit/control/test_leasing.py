"""Exchanges with executors: what is told, how often, and when room is free again (F032)."""

from armada.control.leasing import Roster, lease_of, still_to_start
from armada.control.outcome import run_id_of
from armada.model.events import ExecutorReported, JobsSubmitted, RunsReleased
from armada.model.fleet import Node
from armada.model.leases import HeldRun, LeaseRequest, NodeReport
from tests.unit.control.world import World, item, kinds, node


class Executor:
    """An executor as the server sees it: `held` runs on its one node, `unassigned` ones without a node."""

    def __init__(self, world: World, *nodes: Node, executor_id: str = "east") -> None:
        self.world = world
        self.roster = Roster()
        self.nodes = list(nodes) or [node("n1", executor_id)]
        self.executor_id = executor_id
        self.held: list[str] = []
        self.unassigned: list[str] = []
        self.max_leases = 100

    def request(self) -> LeaseRequest:
        held = tuple(HeldRun(run_id, "running") for run_id in self.held)
        reports = [NodeReport(each, held if index == 0 else ()) for index, each in enumerate(self.nodes)]
        return LeaseRequest(
            executor_id=self.executor_id,
            pool="default",
            nodes=tuple(reports),
            unassigned_run_ids=tuple(self.unassigned),
            max_leases=self.max_leases,
        )

    def exchange(self) -> tuple[list[str], tuple[str, ...], list[str]]:
        """Kinds of the facts, runs to cancel, runs to start; the facts are stored."""
        request = self.request()
        sequences = self.roster.receive(self.world.ledger, request, self.world.now_ms)
        if sequences:
            self.world.store(*sequences)
        answer = self.roster.answer(self.world.ledger, request)
        return kinds(sequences), answer.cancel_run_ids, [run.run_id for run in answer.runs]


def test_nodes_are_logged_when_they_change_and_never_else() -> None:
    world = World()
    executor = Executor(world, node("n1"), node("n2"))
    assert executor.exchange() == (["ExecutorReported"], (), [])
    assert executor.exchange() == ([], (), [])
    executor.nodes = [node("n1"), node("n2")]
    assert executor.exchange()[0] == []
    executor.nodes = [node("n1", cpu="4"), node("n3")]
    sequences = executor.roster.receive(world.ledger, executor.request(), world.now_ms)
    (reported,) = sequences[0].events
    assert isinstance(reported, ExecutorReported)
    assert [each.name for each in reported.nodes] == ["n1", "n3"]
    assert reported.gone == ("n2",)


def test_first_contact_is_logged_though_there_are_no_nodes() -> None:
    world = World()
    executor = Executor(world)
    executor.nodes = []
    assert executor.exchange()[0] == ["ExecutorReported"]
    assert executor.exchange()[0] == []
    assert world.ledger.executor_ids() == ("east",)


def test_nodes_without_a_name_are_passed_over() -> None:
    world = World()
    executor = Executor(world, node(""), node("n1"))
    executor.exchange()
    record = world.ledger.executor("east")
    assert record is not None
    assert [each.name for each in record.nodes] == ["n1"]


def test_a_restarted_server_logs_no_node_again() -> None:
    world = World()
    executor = Executor(world)
    executor.exchange()
    executor.roster = Roster()
    assert executor.exchange() == ([], (), [])


def test_leases_are_repeated_until_their_runs_are_reported() -> None:
    world = World()
    executor = Executor(world)
    executor.exchange()
    (job_id,) = world.submit(item())
    run_id = world.lease(job_id)
    assert executor.exchange() == ([], (), [run_id])
    assert executor.exchange() == ([], (), [run_id])
    executor.unassigned = [run_id]
    assert executor.exchange() == ([], (), [])
    executor.unassigned, executor.held = [], [run_id]
    assert executor.exchange() == ([], (), [])


def test_runs_that_an_executor_has_lost_are_leased_again() -> None:
    world = World()
    executor = Executor(world)
    executor.exchange()
    running, pending, other = (world.start(job_id) for job_id in world.submit(item(), item(), item()))
    executor.held = [running, pending, other]
    assert executor.exchange() == ([], (), [])
    executor.held = [other]
    assert executor.exchange() == ([], (), [running, pending])
    executor.unassigned = [running]
    assert executor.exchange() == ([], (), [pending])
    executor.unassigned = [running, pending]
    assert executor.exchange() == ([], (), [])


def test_lost_runs_are_leased_again_by_a_server_that_just_started() -> None:
    world = World()
    world.report_nodes(node("n1"))
    (job_id,) = world.submit(item())
    run_id = world.start(job_id)
    executor = Executor(world)
    assert executor.exchange()[2] == [run_id]
    world.cancel(job_id)
    assert executor.exchange() == (["RunsReleased"], (), [])


def test_leases_are_bounded_oldest_first() -> None:
    """F110."""
    world = World()
    executor = Executor(world)
    executor.exchange()
    run_ids = [world.lease(job_id) for job_id in world.submit(*[item() for _ in range(5)])]
    executor.max_leases = 2
    assert executor.exchange()[2] == run_ids[:2]
    executor.held = run_ids[:2]
    assert executor.exchange()[2] == run_ids[2:4]
    executor.unassigned = run_ids[2:4]
    assert executor.exchange()[2] == run_ids[4:]
    executor.max_leases = 0
    assert executor.exchange()[2] == []


def test_leases_go_only_to_their_executor() -> None:
    world = World()
    east, west = Executor(world), Executor(world, executor_id="west")
    east.exchange()
    west.exchange()
    (job_id,) = world.submit(item())
    run_id = world.lease(job_id)
    assert west.exchange()[2] == []
    west.held = [run_id]
    assert west.exchange()[1] == (run_id,)
    assert east.exchange()[2] == [run_id]


def test_unknown_runs_are_cancelled_each_time() -> None:
    executor = Executor(World())
    executor.unassigned = ["nobody-knows"]
    assert executor.exchange()[1] == ("nobody-knows",)
    assert executor.exchange()[1] == ("nobody-knows",)
    executor.unassigned = []
    assert executor.exchange()[1] == ()


def test_an_ended_run_is_told_until_it_is_gone_and_then_its_room_is_free() -> None:
    world = World()
    executor = Executor(world)
    executor.exchange()
    (job_id,) = world.submit(item())
    run_id = world.start(job_id)
    executor.held = [run_id]
    executor.exchange()
    world.cancel(job_id)
    assert world.ledger.runs_to_end("east") == (run_id,)
    assert executor.exchange() == ([], (run_id,), [])
    assert executor.exchange() == ([], (run_id,), [])
    executor.held = []
    assert executor.exchange() == (["RunsReleased"], (), [])
    assert world.ledger.runs_to_end("east") == ()
    assert world.ledger.run_count == 0


def test_a_job_cancelled_before_it_was_picked_up_never_starts() -> None:
    world = World()
    executor = Executor(world)
    executor.exchange()
    (job_id,) = world.submit(item())
    run_id = world.lease(job_id)
    assert still_to_start(world.ledger, run_id)
    world.cancel(job_id)
    assert not still_to_start(world.ledger, run_id)
    facts, cancelled, leased = executor.exchange()
    assert (facts, cancelled, leased) == (["RunsReleased"], (), [])
    assert executor.exchange() == ([], (), [])


def test_releases_come_in_pieces() -> None:
    world = World()
    executor = Executor(world, node("n1", cpu="9000"))
    executor.exchange()
    shared = item()
    for job_id in world.submit(*[shared for _ in range(5_001)]):
        world.lease(job_id)
        world.cancel(job_id)
    sequences = executor.roster.receive(world.ledger, executor.request(), world.now_ms)
    released = [event for part in sequences for event in part.events if isinstance(event, RunsReleased)]
    assert [len(event.run_ids) for event in released] == [5_000, 1]


def test_the_roster_knows_when_it_last_heard_somebody() -> None:
    world = World()
    executor = Executor(world)
    assert executor.roster.heard_ms("east") == 0
    executor.exchange()
    assert executor.roster.heartbeats() == {"east": world.now_ms}


def test_a_lease_carries_what_the_executor_needs() -> None:
    world = World()
    world.report_nodes(node("n1"))
    (job_id,) = world.submit(item())
    run_id = world.lease(job_id)
    run, job = world.ledger.run(run_id), world.ledger.job(job_id)
    assert run is not None
    assert job is not None
    submitted = next(event for entry in world.entries for event in entry.events if isinstance(event, JobsSubmitted))
    lease = lease_of(run, job, submitted.template, world.policy)
    assert (lease.run_id, lease.job_id, lease.queue, lease.job_set) == (run_id, job_id, "qa", "s")
    assert (lease.owner, lease.node_name, lease.pool, lease.preemptible) == ("alice", "n1", "default", False)


def test_run_ids_follow_from_job_and_attempt() -> None:
    assert run_id_of("a", 0) == run_id_of("a", 0)
    assert len({run_id_of("a", 0), run_id_of("a", 1), run_id_of("b", 0)}) == 3
    assert [len(part) for part in run_id_of("a", 0).split("-")] == [8, 4, 4, 4, 12]
