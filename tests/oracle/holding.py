"""Room that a round holds free for the first gang of a queue which has waited long: an option, off by default."""

from tests.oracle.cluster import EVICTED, Node, minus, plus, within
from tests.oracle.problem import Job, Vector
from tests.oracle.queues import Account, fair_order, limits_of
from tests.oracle.setting import Setting


class Holding:
    """What is held, by the first job of the gang it is held for. Every waiting job counts as having waited long."""

    def __init__(self, at: Setting) -> None:
        self.at = at
        self.held: dict[str, list[tuple[Node, Vector]]] = {}
        if at.policy.hold_room_after_ms is None or at.pool.market is not None or not at.pool.home_scheduling:
            return
        for account in at.accounts.values():
            gang = [] if account.away or account.cordoned else self._first_gang(account.queue)
            if gang and self._may_have(account, gang):
                self.held[gang[0].id] = [room for job in gang if (room := self._hold(job)) is not None]

    def give(self, first: Job, sign: int) -> None:
        """Give the room that is held for a gang free (1), or hold it again (-1)."""
        for node, room in self.held.get(first.id, []):
            self._change(node, room, sign)

    def _first_gang(self, queue: str) -> list[Job]:
        waiting = sorted((job for job in self.at.queued if job.queue == queue), key=fair_order)
        if not waiting or waiting[0].gang is None:
            return waiting[:1]
        gang = waiting[0].gang
        members = [job for job in waiting if job.gang is not None and job.gang.id == gang.id]
        return members if len(members) == gang.cardinality and not gang.uniformity else []

    def _may_have(self, account: Account, gang: list[Job]) -> bool:
        at = self.at
        due = account.uncapped if at.pool.protects_uncapped_share else max(account.capped, account.fair_share)
        if at.shares.unweighted(account.allocation(at.zero)) >= due:
            return False
        for name, column in zip(at.problem.kinds.names, range(len(at.zero)), strict=True):
            if name in at.pool.unscheduled_resources and any(job.request[column] > 0 for job in gang):
                return False
        if not all(any(self._could_hold(node, job) for node in at.cluster.nodes) for job in gang):
            return False
        kind = gang[0].priority_class.name
        limit = limits_of(at.problem, at.pool, account.queue, kind, at.total)
        wanted = account.by_class.get(kind, at.zero)
        for job in gang:
            wanted = plus(wanted, job.request)
        return all(amount <= most for amount, most in zip(wanted, limit, strict=True))

    def _hold(self, job: Job) -> tuple[Node, Vector] | None:
        """Hold what the node that is nearest to having room for the job has free of it."""
        best: Node | None = None
        nearest = 0.0
        for node in self.at.cluster.nodes:
            near = self._nearness(node, job)
            if near > nearest:
                best, nearest = node, near
        if best is None:
            return None
        room = [max(0, min(want, free)) for want, free in zip(job.on_node, best.free[EVICTED], strict=True)]
        self._change(best, room, -1)
        return best, room

    def _could_hold(self, node: Node, job: Job) -> bool:
        """Whether the job could be on the node if nothing else was."""
        tolerations = list(self.at.pool.default_tolerations)
        may_run = not node.over_allocated and self.at.cluster.may_run(node, job, tolerations, {})
        return may_run and within(job.on_node, node.allocatable)

    def _nearness(self, node: Node, job: Job) -> float:
        if not self._could_hold(node, job):
            return 0.0
        wanted = zip(job.on_node, node.free[EVICTED], strict=True)
        return min([1.0, *(free / want for want, free in wanted if want > 0)])

    def _change(self, node: Node, room: Vector, sign: int) -> None:
        for bucket in self.at.cluster.buckets:
            node.free[bucket] = plus(node.free[bucket], room) if sign > 0 else minus(node.free[bucket], room)
