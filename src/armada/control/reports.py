"""Reports of executors about runs: what may enter the log, and what follows from it.

An executor speaks only about its own runs, in the order that `model.lifecycle` allows. Everything else is dropped and
counted, so that no report can revive a job that has ended or reach a job set that has nothing to do with it.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from armada.control.retries import CanRun, Retries
from armada.control.sequences import merged_sequences
from armada.model.events import (
    ContainerStatus,
    Failure,
    JobSetEvents,
    JobSucceeded,
    RunAddressed,
    RunFailed,
    RunPending,
    RunPreempted,
    RunReturned,
    RunStarted,
    RunSucceeded,
    RunUsageReported,
)
from armada.model.lifecycle import RUN_TRANSITIONS, RunState
from armada.model.policy import SchedulingPolicy
from armada.state.ledger import Ledger

MAX_REASON_CHARS: Final = 8_192
MAX_DEBUG_CHARS: Final = 32_768
MAX_CONTAINERS: Final = 100

_ALREADY: Final[Mapping[type, tuple[RunState, ...]]] = {
    RunPending: (RunState.PENDING, RunState.RUNNING),
    RunStarted: (RunState.RUNNING,),
}

RunReport = RunPending | RunStarted | RunAddressed | RunUsageReported | RunSucceeded | RunFailed | RunReturned
_REPORTS: Final = (RunPending, RunStarted, RunAddressed, RunUsageReported, RunSucceeded, RunFailed, RunReturned)


class Dropped(msgspec.Struct, frozen=True):
    """A reported fact that did not enter the log, and why.

    `is_repeat`: it says what is known already. `is_late`: its run has ended, as happens when a cancel crosses a report.
    """

    event: str
    job_id: str
    run_id: str
    why: str
    is_repeat: bool = False
    is_late: bool = False


class Accepted(msgspec.Struct, frozen=True):
    """Facts to append, with what follows from them, and what was dropped."""

    sequences: tuple[JobSetEvents, ...] = ()
    dropped: tuple[Dropped, ...] = ()


class Reports:
    """Sorts reported facts into what is appended and what is dropped."""

    def __init__(self, policy: SchedulingPolicy, can_run: CanRun) -> None:
        self._retries = Retries(policy, can_run)

    def accept(self, ledger: Ledger, executor_id: str, sequences: Iterable[JobSetEvents], now_ms: int) -> Accepted:
        """Return what to append of an executor's report.

        Where `executor_id` is empty (a foreign executor whose connection does not say who it is), the cluster that a
        fact names counts as its author.
        """
        kept: list[JobSetEvents] = []
        dropped: list[Dropped] = []
        # Later facts of one report meet the state that earlier ones lead to, not the ledger's.
        states: dict[str, RunState] = {}
        for sequence in sequences:
            for event in sequence.events:
                if not isinstance(event, _REPORTS):
                    dropped.append(Dropped(type(event).__name__, "", "", "is no fact about a run"))
                    continue
                why = _objection(ledger, executor_id, sequence, event, states)
                if why:
                    dropped.append(_dropped(ledger, executor_id, event, why))
                    continue
                fact = _cleaned(event, now_ms)
                kept.append(JobSetEvents(sequence.queue, sequence.job_set, (fact,)))
                follows = self._consequences(ledger, sequence, fact)
                kept.extend(follows)
                # A gang that is tried again as a whole ends the runs of its other members too.
                for ended in (each for part in follows for each in part.events if isinstance(each, RunPreempted)):
                    states[ended.run_id] = RunState.PREEMPTED
        return Accepted(merged_sequences(kept), tuple(dropped))

    def _consequences(self, ledger: Ledger, sequence: JobSetEvents, fact: RunReport) -> tuple[JobSetEvents, ...]:
        if isinstance(fact, RunSucceeded):
            ended = JobSucceeded(at_ms=fact.at_ms, job_id=fact.job_id)
            return (JobSetEvents(sequence.queue, sequence.job_set, (ended,)),)
        return self._retries.after(ledger, fact) if isinstance(fact, RunFailed | RunReturned) else ()


def _objection(
    ledger: Ledger, executor_id: str, sequence: JobSetEvents, event: RunReport, states: dict[str, RunState]
) -> str:
    """Say why a fact can't be true; empty when it can. Then `states` has moved on by it."""
    head = ledger.run_head(event.run_id)
    if head is None:
        return "names a run that does not exist or has long ended"
    author = executor_id or _cluster_of(event)
    if author and author != head.executor_id:
        return f"is about a run of executor {head.executor_id}"
    if event.job_id != head.job_id:
        return f"is about a run of job {head.job_id}"
    if (sequence.queue, sequence.job_set) != (head.queue, head.job_set):
        return f"names queue {sequence.queue!r} and job set {sequence.job_set!r}, which are not the job's"
    state = states.get(event.run_id, head.state)
    may_meet, leads_to = RUN_TRANSITIONS[type(event).__name__]
    if not head.is_current or state not in may_meet:
        return f"comes when the run is {state.name.lower() if head.is_current else 'over'}"
    if leads_to is not None:
        states[event.run_id] = leads_to
    return ""


def _dropped(ledger: Ledger, executor_id: str, event: RunReport, why: str) -> Dropped:
    """Tell repeats and late words about a run of one's own from what should not happen."""
    head = ledger.run_head(event.run_id)
    own = head is not None and (executor_id or _cluster_of(event)) in {"", head.executor_id}
    return Dropped(
        event=type(event).__name__,
        job_id=event.job_id,
        run_id=event.run_id,
        why=why,
        is_repeat=own and head is not None and head.state in _ALREADY.get(type(event), ()),
        is_late=own and head is not None and head.state.is_terminal,
    )


def _cluster_of(event: RunReport) -> str:
    pod = event.failure.pod if isinstance(event, RunFailed | RunReturned) else event.pod
    return pod.cluster if pod is not None else ""


def _cleaned(event: RunReport, now_ms: int) -> RunReport:
    """Cut what an executor says to sizes that every reader can hold, and its clock to ours."""
    at_ms = min(event.at_ms, now_ms) if event.at_ms > 0 else now_ms
    if isinstance(event, RunFailed | RunReturned):
        return msgspec.structs.replace(event, at_ms=at_ms, failure=cleaned_failure(event.failure))
    return event if event.at_ms == at_ms else msgspec.structs.replace(event, at_ms=at_ms)


def cleaned_failure(failure: Failure) -> Failure:
    """Return a failure whose texts are valid and of bounded length."""
    containers = tuple(
        ContainerStatus(
            name=cleaned_text(each.name, MAX_REASON_CHARS),
            exit_code=each.exit_code,
            reason=cleaned_text(each.reason, MAX_REASON_CHARS),
            message=cleaned_text(each.message, MAX_REASON_CHARS),
        )
        for each in failure.containers[:MAX_CONTAINERS]
    )
    return msgspec.structs.replace(
        failure,
        reason=cleaned_text(failure.reason, MAX_REASON_CHARS),
        debug=cleaned_text(failure.debug, MAX_DEBUG_CHARS),
        category=cleaned_text(failure.category, MAX_REASON_CHARS),
        subcategory=cleaned_text(failure.subcategory, MAX_REASON_CHARS),
        containers=containers,
    )


def cleaned_text(text: str, max_chars: int) -> str:
    """Return a text without NUL characters and lone surrogates, cut to a length."""
    cut = text if len(text) <= max_chars else f"{text[: max_chars - 3]}..."
    if cut.isascii():
        return cut.replace("\0", "\ufffd")
    return cut.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
