"""Clients that go on while the server is killed: they submit, cancel, preempt, and ask again when an answer is lost."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, Final

import grpc
import grpc.aio
from armada_client.armada import event_pb2, event_pb2_grpc, job_pb2, job_pb2_grpc, submit_pb2, submit_pb2_grpc

from tests.end_to_end.crashing.jobs import KINDS, Act, Kind, request_item
from tests.end_to_end.crashing.marks import uptime_s

TERMINAL: Final = frozenset({"succeeded", "failed", "cancelled"})
REAL, SIMULATED = "real", "simulated"
QUEUES: Final = ("north", "south")
STORIES: Final = tuple(itertools.product(QUEUES, (REAL, SIMULATED)))
IDS_IN_A_CALL: Final = 500

_UNCLEAR: Final = frozenset(
    {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED},
)
"""Codes that leave open if the call took effect. A stopping server ends calls that outlast its grace with CANCELLED."""
_CALL_LIMIT_S: Final = 15.0
_AGAIN_S: Final = 0.03
_REPEATED: Final = 0.1
"""This share of the acknowledged submissions is said once more later on."""
_OPTIONS: Final = (
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 200),
    ("grpc.use_local_subchannel_pool", 1),
)

Story = tuple[str, str]
"""A queue and a job set."""


class Line:
    """One connection, which outlives the server's lives. `lost` counts answers that did not come."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.aio.insecure_channel(address, options=_OPTIONS)
        self.submit = submit_pb2_grpc.SubmitStub(self._channel)
        self.queues = submit_pb2_grpc.QueueServiceStub(self._channel)
        self.events = event_pb2_grpc.EventStub(self._channel)
        self.jobs = job_pb2_grpc.JobsStub(self._channel)
        self.lost = 0

    async def close(self) -> None:
        """Hang up."""
        await self._channel.close()

    async def insist(self, call: Callable[..., Awaitable[Any]], request: Any) -> Any:
        """Call until there is an answer; one that is no answer to our liking is raised."""
        while True:
            try:
                return await call(request, timeout=_CALL_LIMIT_S, wait_for_ready=True)
            except grpc.aio.AioRpcError as error:
                if error.code() not in _UNCLEAR:
                    raise
                self.lost += 1
                await asyncio.sleep(_AGAIN_S)


def opened(message: event_pb2.EventStreamMessage) -> tuple[str, Any]:
    """The kind of an event and what it holds."""
    kind = message.message.WhichOneof("events")
    assert kind is not None, message
    return kind, getattr(message.message, kind)


def ends(kind: str, event: Any) -> bool:
    """True when this is the last that a job's stream may say of it."""
    return kind in TERMINAL and not (kind == "failed" and event.retryable)


class Load:
    """All clients of one proof, and what they know: acknowledged jobs, acknowledged cancels, the streams as told."""

    def __init__(self, address: str, marks: Path, seed: int) -> None:
        self.jobs: dict[str, tuple[Kind, Story]] = {}
        self.cancelled_s: dict[str, float] = {}
        self.told: dict[Story, list[event_pb2.EventStreamMessage]] = {story: [] for story in STORIES}
        self.ended: set[str] = set()
        self.batches = 0
        self.on_acknowledged: Callable[[], None] = lambda: None
        self._address = address
        self._marks = marks
        self._seed = seed
        self._numbers = itertools.count()
        self._running: set[str] = set()
        self._acting: set[asyncio.Task[None]] = set()
        self._lines: list[Line] = []
        self._acts = self.line()
        self._finishing = asyncio.Event()
        self._has_queue = {name: asyncio.Event() for name in QUEUES}

    def line(self) -> Line:
        """A new connection, closed with the load."""
        line = Line(self._address)
        self._lines.append(line)
        return line

    @property
    def lost(self) -> int:
        """Calls that were cut off by a kill."""
        return sum(line.lost for line in self._lines)

    async def close(self) -> None:
        """Hang up all connections."""
        for line in self._lines:
            await line.close()

    # -- submitting

    async def submit(self, number: int) -> None:
        """One client: submits until `finish`, then sees to it that all of its submissions were acknowledged."""
        chance, line = Random(f"{self._seed}/{number}"), self.line()
        for name in QUEUES:
            await self._create_queue(line, name)
        deck: list[Kind] = []
        said: list[tuple[submit_pb2.JobSubmitRequest, list[str]]] = []
        while not self._finishing.is_set():
            if not deck:
                deck = [kind for kind in KINDS for _ in range(kind.share)]
                chance.shuffle(deck)
            kind = deck.pop()
            story = (chance.choice(QUEUES), REAL if kind.is_real else SIMULATED)
            request = self._request(kind, story, chance)
            job_ids = await self._acknowledged(line, request)
            self.batches += 1
            self.on_acknowledged()
            self.jobs.update((job_id, (kind, story)) for job_id in job_ids)
            for job_id in job_ids:
                self._act_if_due(job_id)
            if chance.random() < _REPEATED:
                said.append((request, job_ids))
            if said and chance.random() < _REPEATED:
                request, before = said.pop(0)
                assert await self._acknowledged(line, request) == before, "said again, it got other job ids"
            with suppress(TimeoutError):
                await asyncio.wait_for(self._finishing.wait(), chance.uniform(0.02, 0.3))

    def finish(self) -> None:
        """Ask the submitters to come to an end."""
        self._finishing.set()

    async def _create_queue(self, line: Line, name: str) -> None:
        try:
            await line.insist(line.queues.CreateQueue, submit_pb2.Queue(name=name, priority_factor=1.0))
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.ALREADY_EXISTS:
                raise
        self._has_queue[name].set()

    def _request(self, kind: Kind, story: Story, chance: Random) -> submit_pb2.JobSubmitRequest:
        count = kind.gang if kind.gang > 1 else chance.randint(1, 3 if kind.is_real else 15)
        names = [f"{self._seed}-{next(self._numbers)}" for _ in range(count)]
        items = [request_item(kind, name, gang_id=names[0], marks=self._marks) for name in names]
        return submit_pb2.JobSubmitRequest(queue=story[0], job_set_id=story[1], job_request_items=items)

    async def _acknowledged(self, line: Line, request: submit_pb2.JobSubmitRequest) -> list[str]:
        answer = await line.insist(line.submit.SubmitJobs, request)
        return [row.job_id for row in answer.job_response_items]

    # -- cancelling and preempting

    def _act_if_due(self, job_id: str) -> None:
        """Do to a job what its kind asks for, as soon as it is both known and where it has to be."""
        kind, story = self.jobs.get(job_id, (None, None))
        if kind is None or story is None or kind.act is Act.NONE or job_id in self.cancelled_s:
            return
        if kind.act is Act.CANCEL_AT_ONCE or job_id in self._running:
            acting = asyncio.create_task(self._act(job_id, kind, story))
            self._acting.add(acting)
            acting.add_done_callback(self._acting.discard)

    async def _act(self, job_id: str, kind: Kind, story: Story) -> None:
        line, (queue, job_set) = self._acts, story
        if kind.act is Act.PREEMPT_RUNNING:
            preempt = submit_pb2.JobPreemptRequest(job_ids=[job_id], queue=queue, job_set_id=job_set)
            await line.insist(line.submit.PreemptJobs, preempt)
        else:
            if kind.first_body:
                await asyncio.sleep(0.4)
            cancel = submit_pb2.JobCancelRequest(job_ids=[job_id], queue=queue, job_set_id=job_set)
            await line.insist(line.submit.CancelJobs, cancel)
            self.cancelled_s.setdefault(job_id, uptime_s())

    async def acts_done(self) -> None:
        """Return once nothing is being cancelled or preempted."""
        while self._acting:
            await asyncio.gather(*self._acting)

    # -- following

    async def follow(self, story: Story) -> None:
        """Keep a stream of a job set, resumed after each loss behind the last message, until cancelled."""
        line, told = self.line(), self.told[story]
        await self._has_queue[story[0]].wait()
        while True:
            request = event_pb2.JobSetRequest(
                queue=story[0], id=story[1], watch=True, from_message_id=told[-1].id if told else ""
            )
            try:
                async for message in line.events.GetJobSetEvents(request, wait_for_ready=True):
                    told.append(message)
                    self._hear(message)
            except grpc.aio.AioRpcError as error:
                if error.code() not in _UNCLEAR:
                    raise
                line.lost += 1
            await asyncio.sleep(_AGAIN_S)

    def _hear(self, message: event_pb2.EventStreamMessage) -> None:
        kind, event = opened(message)
        if kind == "running":
            self._running.add(event.job_id)
            self._act_if_due(event.job_id)
        elif ends(kind, event):
            self.ended.add(event.job_id)

    def all_told(self) -> Iterator[event_pb2.EventStreamMessage]:
        """Everything heard so far, stream by stream."""
        return itertools.chain.from_iterable(self.told.values())

    def leases(self) -> Counter[str]:
        """How often each job was leased, as far as heard."""
        return Counter(event.job_id for kind, event in map(opened, self.all_told()) if kind == "leased")

    async def whole_story(self, story: Story) -> list[event_pb2.EventStreamMessage]:
        """A job set's stream from its beginning to now."""
        request = event_pb2.JobSetRequest(queue=story[0], id=story[1])
        return [message async for message in self._acts.events.GetJobSetEvents(request)]

    # -- asking

    async def states(self) -> dict[str, str]:
        """The state of every acknowledged job, by name."""
        found: dict[str, str] = {}
        for ids in _pieces(sorted(self.jobs)):
            answer = await self._acts.jobs.GetJobStatus(job_pb2.JobStatusRequest(job_ids=ids))
            found.update((job_id, submit_pb2.JobState.Name(state)) for job_id, state in answer.job_states.items())
        return found

    async def details(self) -> dict[str, job_pb2.JobDetails]:
        """The details of every acknowledged job, with its runs."""
        found: dict[str, job_pb2.JobDetails] = {}
        for ids in _pieces(sorted(self.jobs)):
            asked = job_pb2.JobDetailsRequest(job_ids=ids, expand_job_run=True)
            found.update((await self._acts.jobs.GetJobDetails(asked)).job_details)
        return found


def _pieces(ids: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), IDS_IN_A_CALL):
        yield ids[start : start + IDS_IN_A_CALL]
