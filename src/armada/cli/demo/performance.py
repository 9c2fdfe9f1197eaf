"""The demo's acts: create queues, submit, cancel, follow every event, and read output back. All by the public API."""

import queue as queues
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from armada.cli.demo.mix import COMMANDS, SIMULATED, DemoJob, Mix, simulated
from armada.cli.failures import CommandFailed
from armada.cli.remote.connection import CallFailed, Connection
from armada.cli.remote.following import FINISHED, FollowedEvent, FollowedJob, Follower, JobSetTally
from armada.cli.remote.targets import Target

ACTIVE: Final = ("leased", "pending", "running")
_SHOWN_KINDS: Final = ("running", "succeeded", "failed", "preempted", "cancelled")


@dataclass(slots=True)
class Remark:
    """Something worth telling the audience: seconds since the start, the job's name, what happened."""

    at_s: float
    key: str
    kind: str
    text: str = ""


@dataclass(slots=True)
class Staged:
    """A real job on stage: its id and the moments (event time in ms) of its events by kind."""

    job: DemoJob
    job_id: str
    moments_ms: dict[str, int] = field(default_factory=dict)
    output: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Share:
    """One queue's part of the cpus in use, and its fair part of them, at one moment."""

    used: float = 0.0
    fair: float = 0.0


class Performance:
    """One performance of a mix on a running server."""

    def __init__(self, url: str, mix: Mix) -> None:
        self.mix = mix
        self.connection = Connection(Target(url=url))
        self.tallies = {
            (queue.name, job_set): JobSetTally() for queue in mix.queues for job_set in (COMMANDS, SIMULATED)
        }
        self.staged: dict[str, Staged] = {}
        self.remarks: list[Remark] = []
        self.clusters: set[str] = set()
        self.simulated_submitted = 0
        self.first_event_ms = 0
        self.last_simulated_ms = 0
        self._by_id: dict[str, Staged] = {}
        self._news: queues.SimpleQueue[tuple[str, str, FollowedEvent | CallFailed]] = queues.SimpleQueue()
        self._started_s = time.monotonic()
        self._cancelled = False
        self._urgent_sent = False

    @property
    def elapsed_s(self) -> float:
        """Seconds since the performance began."""
        return time.monotonic() - self._started_s

    def begin(self) -> Iterator[None]:
        """Create the queues and submit everything that comes at once; yields after each request."""
        from armada_client.armada import submit_pb2

        service = self.connection.submit_service
        for each in self.mix.queues:
            self.connection.call(
                service.CreateQueue, submit_pb2.Queue(name=each.name, priority_factor=each.priority_factor)
            )
        yield
        for each in self.mix.queues:
            jobs = [job for job in self.mix.first if job.queue == each.name]
            self._stage(jobs)
            self._follow(each.name, COMMANDS)
            yield
        left = {each.name: each.simulated_jobs for each in self.mix.queues}
        following = set[str]()
        while any(left.values()):
            # In turns, so that all queues have work from the start.
            for each in self.mix.queues:
                count = min(each.piece, left[each.name])
                if count:
                    left[each.name] -= count
                    self._submit(each.name, SIMULATED, [self._next_simulated() for _ in range(count)])
                    if each.name not in following:
                        following.add(each.name)
                        self._follow(each.name, SIMULATED)
                    yield

    def advance(self) -> None:
        """Take in what has happened since the last call, and do what it is the cue for.

        Raises:
            CommandFailed: a stream of events broke for good.
        """
        while True:
            try:
                name, job_set, news = self._news.get_nowait()
            except queues.Empty:
                break
            if isinstance(news, CallFailed):
                raise news
            self._take(name, job_set, news)
        self._act_on_cues()

    @property
    def is_over(self) -> bool:
        """Whether everything was submitted and has ended."""
        if not self._urgent_sent or self.simulated_submitted < self.mix.total_simulated:
            return False
        ended = sum(tally[state] for tally in self.tallies.values() for state in FINISHED)
        return ended == self.mix.total_simulated + len(self.mix.jobs)

    def state_of(self, key: str) -> FollowedJob | None:
        """What the events said about a real job."""
        staged = self.staged.get(key)
        if staged is None:
            return None
        return self.tallies[staged.job.queue, COMMANDS].jobs.get(staged.job_id)

    def count(self, name: str, *states: str) -> int:
        """How many jobs of a queue are in these states."""
        return sum(self.tallies[name, job_set][state] for job_set in (COMMANDS, SIMULATED) for state in states)

    def cpu_in_use(self, name: str) -> float:
        """Cpus that a queue's leased, pending and running jobs asked for."""
        cpus = float(sum(self.tallies[name, SIMULATED][state] for state in ACTIVE))
        for staged in self.staged.values():
            job = self.state_of(staged.job.key)
            if staged.job.queue == name and job is not None and job.state in ACTIVE:
                cpus += staged.job.cpu
        return cpus

    def shares(self) -> dict[str, Share]:
        """Per queue, the part of all cpus in use, and the fair part: by weight, to who can use it."""
        used = {each.name: self.cpu_in_use(each.name) for each in self.mix.queues}
        total = sum(used.values())
        if total <= 0:
            return {each.name: Share() for each in self.mix.queues}
        wanted = {
            each.name: 1.0 if self.count(each.name, "queued") else used[each.name] / total for each in self.mix.queues
        }
        weights = {each.name: 1 / each.priority_factor for each in self.mix.queues}
        fair = fair_parts(weights, wanted)
        return {name: Share(used[name] / total, fair[name]) for name in used}

    def read_output(self) -> None:
        """Read back what the real jobs wrote; jobs that never ran have none."""
        from armada_client.armada import binoculars_pb2
        from armada_client.k8s.io.api.core.v1 import generated_pb2 as core

        for staged in self.staged.values():
            request = binoculars_pb2.LogRequest(
                job_id=staged.job_id, pod_namespace="demo", log_options=core.PodLogOptions(container="main")
            )
            try:
                answer = self.connection.call(self.connection.logs_service.Logs, request)
            except CallFailed:
                continue
            staged.output = [line.line for line in answer.log]

    def finish(self) -> None:
        """Cancel whatever is left, so that no process outlives the demo."""
        from armada_client.armada import submit_pb2

        for name, job_set in self.tallies:
            request = submit_pb2.JobSetCancelRequest(queue=name, job_set_id=job_set)
            try:
                self.connection.call(self.connection.submit_service.CancelJobSet, request, deadline_s=5)
            except CommandFailed:
                return

    def has_active(self) -> bool:
        """Whether the server still knows of a leased, pending or running job of the demo."""
        from armada_client.armada import job_pb2

        answer = self.connection.call(self.connection.jobs_service.GetActiveQueues, job_pb2.GetActiveQueuesRequest())
        return any(pool.queues for pool in answer.active_queues_by_pool.values())

    def close(self) -> None:
        """Close the connection; the following threads end with it."""
        self.connection.close()

    def _stage(self, jobs: list[DemoJob]) -> None:
        if not jobs:
            return
        ids = self._submit(jobs[0].queue, COMMANDS, [job.item for job in jobs])
        for job, job_id in zip(jobs, ids, strict=True):
            self.staged[job.key] = self._by_id[job_id] = Staged(job, job_id)

    def _submit(self, name: str, job_set: str, items: list[Any]) -> list[str]:
        from armada_client.armada import submit_pb2

        request = submit_pb2.JobSubmitRequest(queue=name, job_set_id=job_set, job_request_items=items)
        answer = self.connection.call(self.connection.submit_service.SubmitJobs, request)
        return [item.job_id for item in answer.job_response_items]

    def _next_simulated(self) -> Any:
        self.simulated_submitted += 1
        return simulated(self.simulated_submitted, self.mix.runtime_s)

    def _follow(self, name: str, job_set: str) -> None:
        threading.Thread(target=self._listen, args=(name, job_set), daemon=True).start()

    def _listen(self, name: str, job_set: str) -> None:
        try:
            for followed in Follower(self.connection, name, job_set).forever():
                self._news.put((name, job_set, followed))
        except CallFailed as failure:
            if failure.code != "CANCELLED":
                self._news.put((name, job_set, failure))
        except ValueError:
            # gRPC's way to say that the channel was closed: the performance is over.
            return

    def _take(self, name: str, job_set: str, followed: FollowedEvent) -> None:
        event = followed.event
        job = self.tallies[name, job_set].take(followed)
        moment_ms = event.created.ToMilliseconds()
        if not self.first_event_ms:
            self.first_event_ms = moment_ms
        if job_set == SIMULATED:
            if followed.kind == "leased":
                self.clusters.add(event.cluster_id)
            elif followed.kind == "succeeded":
                self.last_simulated_ms = max(self.last_simulated_ms, moment_ms)
            return
        staged = self._by_id.get(event.job_id)
        if staged is None:
            return
        staged.moments_ms.setdefault(followed.kind, moment_ms)
        if followed.kind in _SHOWN_KINDS and not (followed.kind == "failed" and job.was_preempted):
            text = job.reason if followed.kind in ("failed", "preempted") else ""
            kind = "rejected" if job.is_rejected else followed.kind
            self.remarks.append(Remark(self.elapsed_s, staged.job.key, kind, text.strip().partition("\n")[0]))

    def _act_on_cues(self) -> None:
        from armada_client.armada import submit_pb2

        doomed = self.state_of("to cancel")
        if not self._cancelled and doomed is not None and doomed.state == "running":
            self._cancelled = True
            request = submit_pb2.JobCancelRequest(
                queue=self.staged["to cancel"].job.queue,
                job_set_id=COMMANDS,
                job_ids=[doomed.job_id],
                reason="part of the demo",
            )
            self.connection.call(self.connection.submit_service.CancelJobs, request)
        modest = self.state_of("modest")
        if not self._urgent_sent and modest is not None and modest.state == "running":
            self._urgent_sent = True
            self._stage([self.mix.urgent])


def fair_parts(weights: dict[str, float], wanted: dict[str, float]) -> dict[str, float]:
    """Divide 1 by weight; what a queue does not want goes to the others, by weight again.

    `wanted` are parts of the whole; a queue with more to do than it can get wants 1.
    """
    parts = dict.fromkeys(weights, 0.0)
    open_names = list(weights)
    left = 1.0
    while open_names and left > 1e-12:
        weight = sum(weights[name] for name in open_names)
        modest = [name for name in open_names if wanted[name] <= left * weights[name] / weight]
        if not modest:
            for name in open_names:
                parts[name] = left * weights[name] / weight
            break
        for name in modest:
            parts[name] = wanted[name]
        left -= sum(wanted[name] for name in modest)
        open_names = [name for name in open_names if name not in modest]
    return parts
