"""The ledger's rules once more, slow and obvious: dictionaries, no columns. What the real one is compared with."""

from typing import Any

from armada.model import events as facts
from armada.model.events import Entry, Event
from armada.model.lifecycle import RUN_TRANSITIONS, TRANSITIONS, JobState, RunState

WHOLE = (-1, -1)


class PlainJob:
    """One job. `runs` are its runs that still hold room, newest last."""

    def __init__(self, place: tuple[str, str], template: Any, priority: int) -> None:
        self.place = place
        self.template = template
        self.priority = priority
        self.state = JobState.QUEUED
        self.runs: list[str] = []
        self.counters = [0, 0, 0]
        self.avoids: list[str] = []
        self.growth: Any = None
        self.requests = [False, False]


class PlainRun:
    """One run."""

    def __init__(self, job_id: str, event: facts.RunLeased) -> None:
        self.job_id = job_id
        self.lease = event
        self.state = RunState.LEASED
        self.last_ms = event.at_ms
        self.ended_ms = 0


class PlainLedger:
    """A fold of entries; `voids` are (position, event, row)."""

    def __init__(self) -> None:
        self.jobs: dict[str, PlainJob] = {}
        self.runs: dict[str, PlainRun] = {}
        self.gangs: dict[tuple[str, str], tuple[Any, int]] = {}
        self.clients: dict[tuple[str, str], str] = {}
        self.queues: set[str] = set()
        self.policies: dict[str, Any] = {}
        self.nodes: dict[str, str] = {}
        self.executors: set[str] = set()
        self.epoch = 0
        self.position = 0
        self.batches: set[str] = set()
        self.last_batch = ("", 0)
        self.voids: set[tuple[int, int, int]] = set()

    def apply(self, entry: Entry) -> None:
        if entry.position <= self.position:
            return
        self.position = entry.position
        if entry.batch_id:
            if self.last_batch != (entry.batch_id, entry.ordinal - 1):
                if entry.batch_id in self.batches:
                    self.voids.add((entry.position, *WHOLE))
                    return
                self.batches.add(entry.batch_id)
            self.last_batch = (entry.batch_id, entry.ordinal)
        claims = [event.epoch for event in entry.events if isinstance(event, facts.LeadershipClaimed)]
        if entry.epoch not in (0, self.epoch) and not (entry.epoch == self.epoch + 1 and entry.epoch in claims):
            self.voids.add((entry.position, *WHOLE))
            return
        for index, event in enumerate(entry.events):
            if isinstance(event, facts.JobsSubmitted):
                self._submitted(entry, index, event)
            elif not self._fits(entry, event):
                self.voids.add((entry.position, index, -1))

    def _submitted(self, entry: Entry, index: int, event: facts.JobsSubmitted) -> None:
        template = event.template
        for row, new in enumerate(event.jobs):
            key = (entry.queue, new.client_id)
            fits = entry.queue and new.job_id not in self.jobs and not (new.client_id and key in self.clients)
            if fits and template.gang:
                gang_key = (entry.queue, template.gang.id)
                expected = (template.gang, template.shape.priority_class)
                known, count = self.gangs.get(gang_key, (expected, 0))
                fits = known == expected and count < template.gang.cardinality
                if fits:
                    self.gangs[gang_key] = (known, count + 1)
            if not fits:
                self.voids.add((entry.position, index, row))
                continue
            if new.client_id:
                self.clients[key] = new.job_id
            self.jobs[new.job_id] = PlainJob((entry.queue, entry.job_set), template, new.priority)

    def _fits(self, entry: Entry, event: Event) -> bool:
        kind = type(event).__name__
        if kind in TRANSITIONS:
            return self._job_fact(entry, event, kind)
        if isinstance(event, facts.QueueCreated | facts.QueueUpdated | facts.QueueCordoned | facts.QueueDeleted):
            return self._queue_fact(event)
        if isinstance(event, facts.RetryPolicySet):
            self.policies[event.policy.name] = event.policy
            return True
        if isinstance(event, facts.RetryPolicyDeleted):
            return self.policies.pop(event.name, None) is not None
        return self._fleet_fact(entry, event)

    def _queue_fact(self, event: Any) -> bool:
        name = event.name if isinstance(event, facts.QueueCordoned | facts.QueueDeleted) else event.queue.name
        known = name in self.queues
        if isinstance(event, facts.QueueCreated):
            self.queues.add(name)
            return True
        if isinstance(event, facts.QueueDeleted):
            self.queues.discard(name)
        return known

    def _fleet_fact(self, entry: Entry, event: Event) -> bool:
        match event:
            case facts.RunsReleased():
                return sum(self._release(run_id) for run_id in event.run_ids) > 0
            case facts.ExecutorReported():
                self.executors.add(event.executor_id)
                gone = [node for node, owner in self.nodes.items() if owner == event.executor_id and node in event.gone]
                self._lose(gone)
                self.nodes.update((node.node_id, event.executor_id) for node in event.nodes)
                return True
            case facts.ExecutorSettingsChanged():
                self.executors.add(event.settings.executor_id)
                return True
            case facts.ExecutorDeleted():
                known = event.executor_id in self.executors
                self.executors.discard(event.executor_id)
                self._lose([node for node, owner in self.nodes.items() if owner == event.executor_id])
                return known
            case facts.LeadershipClaimed():
                fits = event.epoch == self.epoch + 1 == entry.epoch
                self.epoch += fits
                return fits
            case _:
                raise AssertionError(event)

    def _lose(self, nodes: list[str]) -> None:
        for node in nodes:
            del self.nodes[node]
        for run_id in [run_id for run_id, run in self.runs.items() if run.lease.node_id in nodes]:
            self._release(run_id)

    def _job_fact(self, entry: Entry, event: Any, kind: str) -> bool:
        job = self.jobs.get(event.job_id)
        meets, leads_to = TRANSITIONS[kind]
        if job is None or job.place != (entry.queue, entry.job_set) or job.state not in meets:
            return False
        run = self.runs[job.runs[-1]] if job.runs else None
        if kind == "RunLeased":
            if event.run_id in self.runs:
                return False
            self.runs[event.run_id] = PlainRun(event.job_id, event)
            job.runs.append(event.run_id)
            job.counters[0] += 1
        elif kind in RUN_TRANSITIONS:
            run_meets, run_leads_to = RUN_TRANSITIONS[kind]
            if run is None or event.run_id != job.runs[-1] or run.state not in run_meets:
                return False
            if run_leads_to is not None:
                self._move_run(run, run_leads_to, event.at_ms)
            reached = kind in ("RunFailed", "RunLeaseExpired") or (kind == "RunReturned" and event.attempted)
            job.counters[1] += reached
            job.counters[2] += kind in ("RunFailed", "RunLeaseExpired")
        elif not self._moves_job(job, run, event, kind):
            return False
        if leads_to is not None:
            job.state = leads_to
            self._settle(event.job_id, job)
        return True

    def _moves_job(self, job: PlainJob, run: PlainRun | None, event: Any, kind: str) -> bool:
        live = run is not None and not run.state.is_terminal and job.state.is_active
        if kind == "JobSucceeded" and (run is None or run.state != RunState.SUCCEEDED):
            return False
        if kind == "JobRequeued" and (run is None or live or run.state == RunState.SUCCEEDED):
            return False
        if kind == "JobPreempted" and (run is None or not (live or run.state == RunState.PREEMPTED)):
            return False
        ends = {
            "JobCancelled": RunState.CANCELLED,
            "JobFailed": RunState.FAILED,
            "JobPreempted": RunState.PREEMPTED,
        }
        if kind in ends and live and run is not None:
            self._move_run(run, ends[kind], event.at_ms)
        if kind == "JobReprioritised":
            job.priority = event.priority
        if kind == "JobRequeued":
            job.avoids.extend(node for node in dict.fromkeys(event.avoid_nodes) if node not in job.avoids)
            job.growth = event.growth or job.growth
            job.requests[1] = False
        job.requests[0] |= kind == "JobCancelRequested"
        job.requests[1] |= kind == "JobPreemptRequested"
        return True

    def _move_run(self, run: PlainRun, state: RunState, at_ms: int) -> None:
        run.state = state
        run.last_ms = max(run.last_ms, at_ms)
        if state.is_terminal:
            run.ended_ms = run.last_ms

    def _settle(self, job_id: str, job: PlainJob) -> None:
        if not job.state.is_active:
            for run_id in list(job.runs):
                if self.runs[run_id].lease.node_id not in self.nodes:
                    self._release(run_id)
        self._leave(job_id)

    def _release(self, run_id: str) -> bool:
        run = self.runs.get(run_id)
        if run is None or not run.state.is_terminal:
            return False
        job = self.jobs[run.job_id]
        if job.state.is_active and job.runs[-1] == run_id:
            return False
        job.runs.remove(run_id)
        del self.runs[run_id]
        self._leave(run.job_id)
        return True

    def _leave(self, job_id: str) -> None:
        job = self.jobs.get(job_id)
        if job is None or not job.state.is_terminal or job.runs:
            return
        del self.jobs[job_id]
        gang = job.template.gang
        if gang:
            queue = job.place[0]
            others = [one for one in self.jobs.values() if one.template.gang and one.place[0] == queue]
            if all(one.template.gang.id != gang.id for one in others):
                del self.gangs[(queue, gang.id)]
