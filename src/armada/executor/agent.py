"""The agent: what an executor does next, as a pure function of what reached it.

`Agent.step(now_ms, stimuli)` takes what happened (the cluster changed, the control plane answered, an order was carried
out) and returns instructions for the shell (create, delete, report, exchange leases). The rules:

- a run has at most one pod: redelivered leases are no news, and a run whose pod vanished is reported lost, not started
  again (the journal remembers it over a restart);
- every run's end is reported until it is acknowledged; facts of one run stay in order;
- pods from before a restart start no more containers until the control plane has said which of them are over;
- the control plane decides when a run is over: what it doesn't name as cancelled stays held, what it cancels is deleted
  with its grace time and held until nothing of it executes any more;
- only one exchange, one report and one creation are under way at a time: a slow partner makes larger batches.
"""

from collections.abc import Mapping, Sequence
from typing import Final, assert_never

from armada.executor.cluster import Changes, Creation, Listing, Outcome, PodDeletion, PodGone
from armada.executor.holding.exchange import Exchange
from armada.executor.holding.facts import Facts
from armada.executor.holding.orders import OrderQueue
from armada.executor.holding.retention import Retained
from armada.executor.holding.runs import TOLD_END, Mark, NodeBook, Remembered, RunEntry, Stage
from armada.executor.holding.stimuli import (
    Acknowledged,
    AgentSettings,
    Changed,
    ClusterStimulus,
    ControlStimulus,
    Created,
    DeletionFailed,
    Draining,
    ExchangeFailed,
    Figures,
    Instructions,
    Listed,
    Replied,
    ReportFailed,
    Stimulus,
)
from armada.executor.pods import RUNNING, Pod, Problem, order_for, problem_of
from armada.model.leases import LeaseReply, LeaseRequest, RunLease

NAME_PATIENCE_MS: Final = 120_000
"""How long a run waits for the name of its pod to become free before its lease is given back."""
NAME_RETRY_MS: Final = 1_000


class Agent:
    """One executor's state. `remembered` is what the journal says of runs from before a restart."""

    def __init__(self, settings: AgentSettings, remembered: Mapping[str, Remembered] | None = None) -> None:
        self._settings = settings
        self._remembered = dict(remembered or {})
        self._runs: dict[str, RunEntry] = {}
        self._book = NodeBook()
        self._facts = Facts(settings)
        self._exchange = Exchange(settings)
        self._kept = Retained(settings.retention)
        self._is_listed = False
        self._is_heard = False
        self._may_proceed = False
        self._is_draining = False
        self._now_ms = 0
        self._sweep_due_ms = 0
        self._unstarted = 0
        self._orders = OrderQueue(settings.create_batch)
        self._marks: list[Mark] = []
        self._deletions: dict[str, PodDeletion] = {}
        self._failed_deletions: dict[str, PodDeletion] = {}
        self._warnings: list[str] = []

    # -- what the shell calls

    def step(self, now_ms: int, stimuli: Sequence[Stimulus]) -> Instructions:
        """Take in what happened, in order, and say what to do."""
        self._now_ms = now_ms
        for stimulus in stimuli:
            if isinstance(stimulus, ClusterStimulus):
                self._from_cluster(stimulus)
            else:
                self._from_control_plane(stimulus)
        if self._is_listed and now_ms >= self._sweep_due_ms:
            self._sweep()
        return self._instruct()

    def figures(self) -> Figures:
        """Counts as they are now."""
        held = {stage.name.lower(): 0 for stage in Stage}
        for entry in self._runs.values():
            held[entry.stage.name.lower()] += 1
        return Figures(
            held=held,
            facts_waiting=len(self._facts),
            pods_kept=len(self._kept),
            facts_dropped=self._facts.dropped,
            nodes=self._book.node_count,
        )

    @property
    def is_heard(self) -> bool:
        """True once the control plane has answered an exchange."""
        return self._is_heard

    @property
    def has_facts(self) -> bool:
        """True while facts are not acknowledged."""
        return len(self._facts) > 0

    def run_ids(self) -> tuple[str, ...]:
        """Runs held now."""
        return tuple(self._runs)

    # -- stimuli

    def _from_cluster(self, stimulus: ClusterStimulus) -> None:
        match stimulus:
            case Changed(changes):
                self._on_changes(changes)
            case Created(creations):
                self._orders.answered()
                for creation in creations:
                    self._on_creation(creation)
            case DeletionFailed(deletions):
                self._failed_deletions.update((deletion.run_id, deletion) for deletion in deletions)
            case Listed(listing):
                self._on_listing(listing)
            case _:
                assert_never(stimulus)

    def _from_control_plane(self, stimulus: ControlStimulus) -> None:
        match stimulus:
            case Replied(reply):
                self._on_reply(reply)
            case Acknowledged():
                for entry, level in self._facts.acknowledged(self._now_ms):
                    self._mark("t", entry.run_id, level)
            case ReportFailed(was_refused):
                warning = self._facts.failed(self._now_ms, was_refused=was_refused)
                if warning is not None:
                    self._warnings.append(warning)
            case ExchangeFailed(was_abandoned):
                self._exchange.failed(self._now_ms, was_abandoned=was_abandoned)
            case Draining():
                self._is_draining = True
                self._exchange.has_news = True
            case _:
                assert_never(stimulus)

    def _on_changes(self, changes: Changes) -> None:
        for node in changes.nodes:
            self._exchange.has_news |= self._book.set_node(node)
        for name in changes.nodes_gone:
            self._exchange.has_news |= self._book.drop_node(name)
        for pod in changes.pods:
            self._on_pod(pod)
        for gone in changes.gone:
            self._on_gone(gone)

    def _on_listing(self, listing: Listing) -> None:
        names = {node.name for node in listing.nodes}
        gone_names = tuple(name for name in self._book.node_names() if name not in names)
        there = {pod.run_id for pod in listing.pods}
        vanished = [PodGone(run_id) for run_id in self._kept.run_ids() if run_id not in there]
        vanished += [
            PodGone(run_id)
            for run_id, entry in self._runs.items()
            if entry.stage == Stage.SEEN and entry.pod is not None and run_id not in there
        ]
        pods = sorted(listing.pods, key=lambda pod: (pod.finished_ms or pod.created_ms, pod.run_id))
        self._on_changes(Changes(nodes=listing.nodes, nodes_gone=gone_names, pods=tuple(pods), gone=tuple(vanished)))
        if not self._is_listed:
            self._is_listed = True
            self._sweep_due_ms = self._now_ms + self._settings.sweep_ms
            self._tell_lost_runs()

    def _tell_lost_runs(self) -> None:
        """Runs that the journal knows and the cluster didn't show: their pods were removed while we were away."""
        for run_id, known in self._remembered.items():
            if known.is_cancelled or known.told >= TOLD_END:
                self._mark("f", run_id)
                continue
            entry = RunEntry(run_id, known.job_id, known.queue, known.job_set, self._now_ms)
            entry.stage = Stage.PODLESS
            entry.told = known.told
            self._hold(entry)
            self._facts.fail(
                entry, "the pod was deleted while its executor was away", "externally-deleted", self._now_ms
            )
        self._remembered.clear()

    def _on_pod(self, pod: Pod) -> None:
        entry = self._runs.get(pod.run_id)
        if entry is None:
            if self._kept.update(pod):
                return
            entry = self._adopt(pod)
            if entry is None:
                return
        elif entry.stage != Stage.SEEN:
            if entry.stage == Stage.PODLESS:
                self._delete(entry, 0)
            self._set_stage(entry, Stage.SEEN)
        before = entry.pod
        entry.pod = pod
        if before is None or before.phase != pod.phase or before.node_name != pod.node_name:
            self._book.hold(pod.run_id, pod.node_name, pod.phase)
        if entry.is_cancelled:
            self._end_cancelled(entry, pod)
            return
        if entry.problem is not None and entry.problem.retryable and pod.phase == RUNNING:
            # It started after all, and the deletion was for a pending pod only.
            entry.problem = None
            entry.deletion_asked_ms = 0
        self._facts.tell(entry, pod)

    def _end_cancelled(self, entry: RunEntry, pod: Pod) -> None:
        if pod.has_ended:
            self._forget(entry)
        elif not entry.deletion_asked_ms:
            self._delete(entry, None)

    def _adopt(self, pod: Pod) -> RunEntry | None:
        """A pod of an earlier life of this agent: hold its run, or only keep the pod when its end was delivered."""
        known = self._remembered.pop(pod.run_id, None)
        if known is not None and pod.has_ended and (known.told >= TOLD_END or known.is_cancelled):
            self._keep(pod)
            return None
        entry = RunEntry(pod.run_id, pod.job_id, pod.queue, pod.job_set, self._now_ms)
        entry.stage = Stage.SEEN
        if known is None:
            self._mark_created(entry)
        else:
            entry.told = known.told
            entry.is_cancelled = known.is_cancelled
        self._hold(entry)
        return entry

    def _on_gone(self, gone: PodGone) -> None:
        entry = self._runs.get(gone.run_id)
        if entry is None:
            if self._kept.drop(gone.run_id):
                self._mark("f", gone.run_id)
            return
        if entry.stage not in (Stage.CREATING, Stage.CREATED, Stage.SEEN):
            return
        pod, entry.pod = entry.pod, None
        self._set_stage(entry, Stage.PODLESS)
        if entry.is_cancelled:
            self._forget(entry)
            return
        self._book.hold(entry.run_id)
        if entry.told >= TOLD_END:
            return
        if entry.problem is not None:
            self._facts.tell_problem(entry, entry.problem, self._now_ms)
            return
        where = f" on node {pod.node_name}" if pod is not None and pod.node_name else ""
        reason = gone.reason or f"the pod{where} was deleted by someone else"
        self._facts.fail(entry, reason, "externally-deleted", self._now_ms)

    def _on_creation(self, creation: Creation) -> None:
        entry = self._runs.get(creation.run_id)
        if entry is None:
            return
        outcome = creation.outcome
        if outcome in (Outcome.CREATED, Outcome.ALREADY_THERE):
            self._mark_created(entry)
            if entry.stage == Stage.CREATING:
                self._set_stage(entry, Stage.CREATED)
                entry.since_ms = self._now_ms
            if entry.is_cancelled and entry.has_live_pod and not entry.deletion_asked_ms:
                self._delete(entry, None)
        elif entry.stage != Stage.CREATING:
            return
        elif entry.is_cancelled:
            self._stop_creating(entry)
        elif outcome == Outcome.REFUSED:
            self._set_stage(entry, Stage.PODLESS)
            message = f"the cluster refused the pod: {creation.message}"
            self._facts.fail(entry, message, "job-creation-failed", self._now_ms)
        elif outcome == Outcome.NO_NODE:
            self._give_back(entry, creation.message)
        elif outcome == Outcome.NAME_TAKEN:
            self._wait_for_name(entry, creation)
        else:
            self._create_again(entry, creation.message)

    def _wait_for_name(self, entry: RunEntry, creation: Creation) -> None:
        if self._kept.pod(creation.other_run_id) is not None:
            self._delete_kept(creation.other_run_id)
        if self._now_ms - entry.since_ms > NAME_PATIENCE_MS:
            self._give_back(entry, f"the pod's name is taken by run {creation.other_run_id}")
        else:
            self._create_later(entry, NAME_RETRY_MS)

    def _create_again(self, entry: RunEntry, message: str) -> None:
        entry.tries += 1
        if entry.tries >= self._settings.create_tries:
            self._give_back(entry, f"the pod could not be created: {message}")
        else:
            self._create_later(entry, self._settings.delay_ms(entry.tries))

    def _give_back(self, entry: RunEntry, message: str) -> None:
        problem = Problem(message=message, retryable=True, subcategory="job-creation-failed")
        self._stop_creating(entry)
        if not entry.is_cancelled:
            self._facts.tell_problem(entry, problem, self._now_ms)

    def _stop_creating(self, entry: RunEntry) -> None:
        """No more tries. An order that seemed to fail may have been carried out: the deletion makes sure."""
        self._deletions[entry.run_id] = PodDeletion(entry.run_id, 0)
        self._set_stage(entry, Stage.PODLESS)
        if entry.is_cancelled:
            self._forget(entry)

    def _create_later(self, entry: RunEntry, delay_ms: int) -> None:
        self._set_stage(entry, Stage.WAITING)
        self._orders.add_later(entry, self._now_ms + delay_ms)

    def _on_reply(self, reply: LeaseReply) -> None:
        for run_id in reply.cancel_run_ids:
            self._cancel(run_id)
        for lease in reply.leases:
            self._accept(lease)
        if not self._is_heard:
            self._is_heard = self._may_proceed = True
            # The first exchange is not held open: one that is follows at once.
            self._exchange.has_news |= self._settings.hold_ms > 0
        self._exchange.answered(self._now_ms, was_empty=not (reply.cancel_run_ids or reply.leases))

    def _accept(self, lease: RunLease) -> None:
        run_id = lease.run_id
        if run_id in self._runs:
            return
        if not (run_id and lease.job_id and lease.queue and lease.job_set):
            self._warnings.append(f"a lease without run, job, queue or job set was dropped: run {run_id!r}")
            return
        entry = RunEntry(run_id, lease.job_id, lease.queue, lease.job_set, self._now_ms)
        pod = self._kept.pod(run_id)
        if pod is not None:
            # The control plane lost the news of this end: say it again instead of running twice.
            self._kept.drop(run_id)
            entry.stage = Stage.SEEN
            self._hold(entry)
            self._on_pod(pod)
            return
        entry.order = order_for(lease)
        self._hold(entry)
        self._unstarted += 1
        self._orders.add(entry)

    def _cancel(self, run_id: str) -> None:
        entry = self._runs.get(run_id)
        if entry is None or entry.is_cancelled:
            return
        entry.is_cancelled = True
        if entry.has_live_pod:
            self._mark("x", run_id)
            if entry.stage != Stage.CREATING:
                self._delete(entry, None)
        elif entry.stage == Stage.WAITING and entry.tries:
            self._stop_creating(entry)
        else:
            self._forget(entry)

    # -- keeping the books

    def _hold(self, entry: RunEntry) -> None:
        self._runs[entry.run_id] = entry
        self._book.hold(entry.run_id)
        self._exchange.has_news = True

    def _set_stage(self, entry: RunEntry, stage: Stage) -> None:
        self._unstarted += (stage <= Stage.CREATED) - (entry.stage <= Stage.CREATED)
        entry.stage = stage

    def _forget(self, entry: RunEntry) -> None:
        """Nothing of the run executes, and the control plane knows its end: hold it no longer."""
        run_id = entry.run_id
        self._set_stage(entry, Stage.PODLESS)
        del self._runs[run_id]
        self._book.release(run_id)
        self._exchange.has_news = True
        pod = entry.pod
        if pod is None:
            self._mark("f", run_id)
            return
        self._mark("x", run_id)
        if entry.deletion_asked_ms:
            self._kept.add(pod)
            self._kept.ask(run_id, self._now_ms)
        else:
            self._keep(pod)

    def _keep(self, pod: Pod) -> None:
        self._kept.add(pod)
        if not self._settings.retention.keeps_any:
            self._delete_kept(pod.run_id)

    def _delete_kept(self, run_id: str) -> None:
        self._kept.ask(run_id, self._now_ms)
        self._deletions[run_id] = PodDeletion(run_id, 0)

    def _delete(self, entry: RunEntry, grace_ms: int | None, *, only_pending: bool = False) -> None:
        entry.deletion_asked_ms = self._now_ms
        self._deletions[entry.run_id] = PodDeletion(entry.run_id, grace_ms, only_pending)

    def _mark(self, kind: str, run_id: str, level: int = 0) -> None:
        if self._settings.keeps_journal:
            self._marks.append(Mark(kind, run_id, level))

    def _mark_created(self, entry: RunEntry) -> None:
        if self._settings.keeps_journal:
            self._marks.append(Mark("c", entry.run_id, 0, entry.job_id, entry.queue, entry.job_set))

    # -- looking after what makes no progress

    def _sweep(self) -> None:
        now_ms = self._now_ms
        self._sweep_due_ms = now_ms + self._settings.sweep_ms
        for deletion in self._failed_deletions.values():
            self._deletions.setdefault(deletion.run_id, deletion)
        self._failed_deletions.clear()
        for run_id in self._kept.due(now_ms):
            self._delete_kept(run_id)
        for entry in list(self._runs.values()):
            if entry.stage == Stage.SEEN and entry.pod is not None and not entry.pod.has_ended:
                self._look_at(entry, entry.pod)
            elif entry.stage == Stage.CREATED and now_ms - entry.since_ms > self._settings.unseen_ms:
                self._give_up_unseen(entry)
            elif entry.end_acknowledged_ms and now_ms - entry.end_acknowledged_ms > self._settings.repeat_end_ms:
                self._facts.repeat_end(entry)

    def _look_at(self, entry: RunEntry, pod: Pod) -> None:
        now_ms, stuck = self._now_ms, self._settings.stuck
        if entry.deletion_asked_ms:
            if now_ms - entry.deletion_asked_ms > pod.grace_ms + stuck.terminating_ms:
                self._delete(entry, 0)
            return
        problem = problem_of(pod, now_ms, stuck, is_ours=False)
        if problem is None:
            return
        entry.problem = problem
        if problem.retryable:
            self._delete(entry, 0, only_pending=True)
        else:
            self._facts.tell_problem(entry, problem, now_ms)
            self._delete(entry, None)

    def _give_up_unseen(self, entry: RunEntry) -> None:
        self._deletions[entry.run_id] = PodDeletion(entry.run_id, 0)
        self._set_stage(entry, Stage.PODLESS)
        if entry.is_cancelled:
            self._forget(entry)
        else:
            self._facts.fail(entry, "the pod was created and never seen", "pod-missing", self._now_ms)

    # -- instructions

    def _instruct(self) -> Instructions:
        now_ms, exchange = self._now_ms, self._exchange
        marks, self._marks = self._marks, []
        warnings, self._warnings = self._warnings, []
        if not self._is_listed:
            return Instructions(wake_at_ms=now_ms + self._settings.sweep_ms, warnings=tuple(warnings))
        deletions, self._deletions = self._deletions, {}
        proceed, self._may_proceed = self._may_proceed, False
        room = 0 if self._is_draining else max(self._settings.max_unstarted - self._unstarted, 0)
        exchange.hasten(now_ms)
        is_due = exchange.start(now_ms, room)
        return Instructions(
            marks=tuple(marks),
            delete=tuple(deletions.values()),
            proceed=proceed,
            create=self._orders.take(now_ms),
            report=self._facts.take(now_ms),
            exchange=self._request(room) if is_due else None,
            abandon=exchange.should_abandon(now_ms, room),
            wake_at_ms=self._next_wake_ms(room),
            warnings=tuple(warnings),
        )

    def _request(self, room: int) -> LeaseRequest:
        return LeaseRequest(
            executor_id=self._settings.executor_id,
            pool=self._settings.pool,
            nodes=self._book.reports(),
            unassigned_run_ids=self._book.unassigned(),
            max_leases=room,
        )

    def _next_wake_ms(self, room: int) -> int:
        wakes = (self._orders.wake_ms(), self._facts.wake_ms(), self._exchange.wake_ms(room))
        soonest_ms = min((wake for wake in wakes if wake is not None), default=self._sweep_due_ms)
        return max(min(soonest_ms, self._sweep_due_ms), self._now_ms)
