"""Placing one gang in a round (spec sections 9.3 and 12): home, away, preempting by fairness or urgency."""

from dataclasses import dataclass, field
from typing import Any

from armada.model.jobs import Toleration
from armada.model.resources import parse_quantity, whole_units
from tests.oracle.cluster import EVICTED, Node, plus, within
from tests.oracle.problem import Job, Vector
from tests.oracle.setting import Setting


@dataclass(eq=False)
class Place:
    """Where a job went and how."""

    node: Node
    priority: int
    method: str
    preempted_at: int
    victims: list[Job] = field(default_factory=list)
    over_lower: bool = False


class Placer:
    """Places jobs of one pool; holds what is evicted, in the order in which it is expected back."""

    def __init__(self, at: Setting) -> None:
        self.at = at
        self.problem = at.problem
        self.pool = at.pool
        self.cluster = at.cluster
        self.evicted: list[Job] = []
        self.lost_to: dict[str, str] = {}

    def gang(self, jobs: list[Job], *, evicted: bool) -> list[Place] | None:
        """Place all or none. Uniform gangs try each value of their label."""
        gang = jobs[0].gang
        if evicted or gang is None or not gang.uniformity:
            return self._try(jobs, evicted=evicted, selector={})
        label = gang.uniformity
        values = sorted({n.machine.labels[label] for n in self.cluster.nodes if label in n.machine.labels})
        best: tuple[float, str] | None = None
        for value in values:
            saved = self.save()
            places = self._try(jobs, evicted=False, selector={label: value})
            if places is None:
                continue
            mean = sum(place.preempted_at for place in places) / len(places)
            if mean == EVICTED:
                return places
            self.restore(saved)
            if best is None or mean < best[0]:
                best = (mean, value)
        return None if best is None else self._try(jobs, evicted=False, selector={label: best[1]})

    def save(self) -> Any:
        return self.cluster.save(), list(self.evicted), dict(self.lost_to)

    def restore(self, saved: Any) -> None:
        self.cluster.restore(saved[0])
        self.evicted, self.lost_to = list(saved[1]), dict(saved[2])

    def _try(self, jobs: list[Job], *, evicted: bool, selector: dict[str, str]) -> list[Place] | None:
        saved = self.save() if len(jobs) > 1 else None
        places = []
        for job in jobs:
            place = self._pinned(job) if evicted else self._free(job, selector, in_gang=len(jobs) > 1)
            if place is None:
                if saved is not None:
                    self.restore(saved)
                return None
            places.append(place)
        return places

    def _pinned(self, job: Job) -> Place | None:
        """An evicted job returns to its own node or nowhere."""
        if job.id in self.lost_to:
            return None
        node, priority = self.at.home_node[job.id], self.at.run_priority[job.id]
        bucket = self.at.bucket_of(job, priority)
        keeps_room = node.over_allocated or not job.priority_class.preemptible
        if not keeps_room and not within(job.on_node, node.free[bucket]):
            return None
        self.cluster.bind(node, job, bucket)
        self.evicted = [other for other in self.evicted if other is not job]
        return Place(node, priority, "rescheduled", EVICTED)

    def _free(self, job: Job, selector: dict[str, str], *, in_gang: bool) -> Place | None:
        names = self.problem.kinds.names
        for name, amount in zip(names, job.request, strict=True):
            if amount > 0 and name in self.pool.unscheduled_resources:
                return None
        tolerations = list(self.pool.default_tolerations)
        if self.pool.home_scheduling:
            place = self._attempt(job, job.priority_class.priority, tolerations, selector)
            if place is not None:
                return place
        if not self.pool.away_scheduling or (in_gang and not self.pool.gang_away_scheduling):
            return None
        for entry in job.priority_class.away_node_types:
            added = self._away_tolerations(job, entry)
            if added:
                place = self._attempt(job, entry.priority, tolerations + added, selector)
                if place is not None:
                    place.method = "away"
                    return place
        return None

    def _away_tolerations(self, job: Job, entry: Any) -> list[Toleration]:
        types = {kind.name: kind for kind in self.problem.policy.well_known_node_types}
        added = []
        for reference in entry.node_types:
            if all(self._condition_holds(job, condition) for condition in self._conditions(reference)):
                for taint in types[reference.name].taints:
                    if taint.value == "*":
                        added.append(Toleration(taint.key, "Exists", "", taint.effect))
                    else:
                        added.append(Toleration(taint.key, "Equal", taint.value, taint.effect))
        return added

    def _conditions(self, reference: Any) -> Any:
        return reference.conditions[:1] if "27.2" in self.cluster.defects else reference.conditions

    def _condition_holds(self, job: Job, condition: Any) -> bool:
        kinds = self.problem.kinds
        amount = 0
        if condition.resource in kinds.names:
            column = kinds.names.index(condition.resource)
            amount = job.request[column] * 10 ** kinds.exponents[column]
        limit = parse_quantity(condition.value)
        if "27.2" in self.cluster.defects:
            amount, limit = whole_units(amount), whole_units(limit)
        if condition.operator == ">":
            return amount > limit
        return amount < limit if condition.operator == "<" else amount == limit

    def _attempt(
        self, job: Job, priority: int, tolerations: list[Toleration], selector: dict[str, str]
    ) -> Place | None:
        cluster = self.cluster
        node = cluster.search(job, EVICTED, tolerations, selector)
        if node is not None:
            return self._take(job, node, priority, "no-preemption", EVICTED)
        if cluster.search(job, priority, tolerations, selector) is None:
            return None
        if self.pool.fairshare_preemption:
            place = self._displace(job, priority, tolerations, selector)
            if place is not None:
                return place
        if self.pool.urgency_preemption:
            for bucket in cluster.buckets:
                if EVICTED < bucket <= priority:
                    node = cluster.search(job, bucket, tolerations, selector)
                    if node is not None:
                        place = self._take(job, node, priority, "urgency", bucket)
                        place.over_lower = True
                        return place
        return None

    def _take(self, job: Job, node: Node, priority: int, method: str, preempted_at: int) -> Place:
        self.cluster.bind(node, job, priority)
        return Place(node, priority, method, preempted_at)

    def _displace(
        self, job: Job, priority: int, tolerations: list[Toleration], selector: dict[str, str]
    ) -> Place | None:
        """Fair-share preemption: the last expected back are the cheapest victims."""
        gathered: dict[str, list[Job]] = {}
        for victim in reversed(self.evicted):
            if self.at.run_priority[victim.id] > priority or not victim.priority_class.preemptible:
                continue
            node = self.at.home_node[victim.id]
            if not self.cluster.may_run(node, job, tolerations, selector):
                continue
            victims = gathered.setdefault(node.machine.id, [])
            victims.append(victim)
            room: Vector = node.free[EVICTED]
            for one in victims:
                room = plus(room, one.on_node)
            if within(job.on_node, room):
                lost = list(victims)
                for one in victims:
                    lost += [s for s in self.siblings(one) if s not in lost]
                highest = max(self.at.run_priority[one.id] for one in victims)
                for one in lost:
                    self.cluster.drop(self.at.home_node[one.id], one)
                    self.lost_to[one.id] = job.id
                self.evicted = [other for other in self.evicted if other not in lost]
                place = self._take(job, node, priority, "fairshare", highest)
                place.victims = lost
                return place
        return None

    def siblings(self, job: Job) -> list[Job]:
        if job.gang is None:
            return []
        return [
            other
            for other in self.evicted
            if other.gang is not None and other is not job and other.queue == job.queue and other.gang.id == job.gang.id
        ]
