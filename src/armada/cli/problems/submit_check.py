"""Problems that ask for the submit check alone: can each waiting job ever run, and in which pools?"""

from typing import Any

from armada.cli.problems import facts
from armada.cli.problems.reading import ReadProblem
from armada.control.admitting.eligibility import Eligibility, Verdict
from armada.model.events import Entry
from armada.model.jobs import GangSpec, JobShape
from armada.state.ledger import Ledger


def verdicts(read: ReadProblem) -> dict[str, Verdict]:
    """Return the verdict of every job that waits when the problem begins, by id; members of a gang share theirs."""
    problem, policy = read.problem, read.policy
    ledger = Ledger(policy)
    known = tuple(facts.fleet(problem.executors))
    ledger.apply(
        Entry(position=1, batch_id="", time_ms=facts.NOW_MS, epoch=0, queue="", job_set="", events=known),
    )
    eligibility = Eligibility(policy)
    eligibility.refresh(ledger)
    queues = {spec.name: facts.queue(spec) for spec in problem.queues}
    templates = facts.Templates(policy)
    found: dict[str, Verdict] = {}
    gangs: dict[tuple[str, str], dict[str, tuple[JobShape, GangSpec]]] = {}
    for job in problem.jobs:
        if job.run is not None or job.finished is not None:
            continue
        template = templates.template(job)
        if template.gang is None:
            found[job.id] = eligibility.judge(queues[job.queue], template.shape)
        else:
            gangs.setdefault((job.queue, template.gang.id), {})[job.id] = (template.shape, template.gang)
    for (queue, _), members in gangs.items():
        found.update(dict.fromkeys(members, eligibility.judge_members(queues[queue], list(members.values()))))
    return found


def answer(read: ReadProblem) -> dict[str, Any]:
    """Return the verdicts in the form of a problem's `expected`."""
    return {
        "check": {
            job: {"schedulable": verdict.is_possible, "pools": sorted(verdict.pools)}
            for job, verdict in sorted(verdicts(read).items())
        },
    }


def differences(ours: dict[str, Any], expected: Any) -> list[str]:
    """Return every difference between an answer and a recorded one as a sentence."""
    recorded = expected.get("check") if isinstance(expected, dict) else None
    if not isinstance(recorded, dict):
        return ["expected must be an object with a check"]
    return [
        f"{job}: {ours['check'].get(job, 'not looked at')}, expected {theirs}"
        for job, theirs in recorded.items()
        if ours["check"].get(job) != theirs
    ]
