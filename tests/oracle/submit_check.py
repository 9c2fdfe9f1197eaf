"""The submit check (spec section 5): can a job ever run, and in which pools? Nodes count as empty, sick or not."""

from typing import Any

from armada.model.policy import PoolPolicy
from armada.model.resources import exceeds
from tests.oracle.cluster import plus
from tests.oracle.placement import Placer
from tests.oracle.problem import Executor, Job, Problem
from tests.oracle.queues import limits_of
from tests.oracle.setting import Setting


def check(problem: Problem, defects: frozenset[str]) -> dict[str, dict[str, Any]]:
    """Judge every queued job: the pools where it could run."""
    for machine in problem.machines:
        machine.taints = [t for t in machine.taints if t.key != "armadaproject.io/unschedulable"]
        machine.unschedulable = False
    problem.executors = {name: Executor(name, cordoned=False, heartbeat_ago_s=0.0) for name in problem.executors}
    queued = [j for j in problem.jobs if j.state == "queued"]
    for job in problem.jobs:
        job.state = "gone"
    judge = Judge(problem, defects)
    answers: dict[str, dict[str, Any]] = {}
    gangs: dict[tuple[str, str], list[Job]] = {}
    for job in queued:
        if job.gang is None:
            answers[job.id] = judge.answer([job])
        else:
            gangs.setdefault((job.queue, job.gang.id), []).append(job)
    for members in gangs.values():
        answers.update(dict.fromkeys((job.id for job in members), judge.gang(members)))
    return answers


class Judge:
    """Tries jobs on the empty nodes of each pool."""

    def __init__(self, problem: Problem, defects: frozenset[str]) -> None:
        self.problem = problem
        self.defects = defects

    def gang(self, members: list[Job]) -> dict[str, Any]:
        """A gang passes when each member passes alone and all do together."""
        kinds = {job.priority_class.name for job in members}
        gang = members[0].gang
        assert gang is not None
        if len(kinds) > 1 or len(members) > gang.cardinality:
            return {"schedulable": False, "pools": []}
        if any(not self.answer([job])["schedulable"] for job in members):
            return {"schedulable": False, "pools": []}
        return self.answer(members)

    def answer(self, jobs: list[Job]) -> dict[str, Any]:
        if any(job.unknown_resources for job in jobs):
            return {"schedulable": False, "pools": []}
        found: list[str] = []
        pools = self.problem.policy.pools
        for pool in pools:
            if pool.name in found or any(name in found for name in pool.away_pools):
                continue
            if self._fits(pool, jobs):
                group = pool.submission_group or pool.name
                found += [p.name for p in pools if (p.submission_group or p.name) == group and p.name not in found]
        return {"schedulable": bool(found), "pools": sorted(found)}

    def _fits(self, pool: PoolPolicy, jobs: list[Job]) -> bool:
        at = Setting(self.problem, pool, self.defects, tuple(jobs))
        wanted = at.zero
        for job in jobs:
            wanted = plus(wanted, job.request)
        for column, name in enumerate(self.problem.kinds.names):
            floating = any(kind.name == name for kind in self.problem.policy.floating_resources)
            if floating and wanted[column] > at.floating_total[column]:
                return False
        limit = limits_of(self.problem, pool, jobs[0].queue, jobs[0].priority_class.name, at.total)
        if exceeds(tuple(wanted), tuple(limit)):
            return False
        for job in jobs:
            if job.gang is not None:
                job.gang.uniformity = ""
        places = Placer(at).gang(jobs, evicted=False)
        if places is None:
            return False
        return bool(pool.away_pools) or all(place.method != "away" for place in places)
