"""A pool that is left alone: round after round without new work, until a round decides nothing."""

import copy
from dataclasses import dataclass, field
from typing import Any

from armada.cli.problems.answers import answers
from tests.property.agreement import read

Problem = dict[str, Any]


@dataclass
class Course:
    """What the rounds of a pool that is left alone did: how many placed or preempted, and how often each job lost."""

    is_quiet: bool = False
    placing: int = 0
    preempting: int = 0
    losses: dict[str, int] = field(default_factory=dict)


def left_alone(problem: Problem) -> Problem:
    """The problem as it is once everything has arrived and nothing leaves: one round of it, with the clock at rest."""
    still = copy.deepcopy({**problem, "rounds": 1, "secondsPerRound": 0})
    for job in still["jobs"]:
        job.pop("arrives", None)
        job.pop("leaves", None)
    return still


def course(problem: Problem, *, requeues: bool, rounds: int) -> Course:
    """Decide round after round, each on what the last one left. Preempted jobs wait again, or are gone."""
    still = left_alone(problem)
    jobs = {job["id"]: job for job in still["jobs"]}
    done = Course()
    for _ in range(rounds):
        still["jobs"] = list(jobs.values())
        (decided,) = answers(read(still))
        for job in (job for job in jobs.values() if "run" in job):
            job["run"]["leasedSecondsAgo"] = job["run"].get("leasedSecondsAgo", 0) + 1
        lost = [name for answer in decided.values() for name in answer["preempted"]]
        won = [name for answer in decided.values() for name in answer["scheduled"]]
        # Pool by pool: what one placed on a borrowed node, the next one may take away again.
        for pool, answer in decided.items():
            for name in answer["preempted"]:
                done.losses[name] = done.losses.get(name, 0) + 1
                del jobs[name]["run"]
                if not requeues:
                    del jobs[name]
            for name, place in answer["scheduled"].items():
                jobs[name]["run"] = {"node": place["node"], "pool": pool, "scheduledAtPriority": place["priority"]}
        done.preempting += bool(lost)
        done.placing += bool(won)
        if not lost and not won:
            done.is_quiet = True
            break
    return done


def unrest_where_jobs_fail(problem: Problem) -> list[str]:
    """Every round that decides anything leases a job for its only time or preempts one for good."""
    count = len(problem["jobs"])
    done = course(problem, requeues=False, rounds=2 * count + 2)
    return [] if done.is_quiet and done.preempting <= count else [f"{count} jobs that fail never rest: {done}"]


def unrest_where_jobs_wait_again(problem: Problem) -> list[str]:
    """No more rounds preempt than there are jobs, and as many may place without preempting (rates, limits)."""
    count = len(problem["jobs"])
    done = course(problem, requeues=True, rounds=3 * count + 3)
    return [] if done.is_quiet and done.preempting <= count else [f"{count} jobs that wait again never rest: {done}"]
