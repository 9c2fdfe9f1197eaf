"""What was done in each recorded story, and playing it again."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from tests.vectors.api.calls import Api, told
from tests.vectors.api.matching import Matcher
from tests.vectors.api.playing import accepted_differences

SETTLED_S: Final = 15.0
SHORT_S: Final = 2.0
"""The same for stories that are known to go another way here."""

QUIET_S: Final = 0.3
"""How long nothing more may come before a stream counts as settled."""

Story = dict[str, Any]

_DEFAULTED: Final = frozenset({"armadaproject.io/gangNodeUniformityLabel"})
_CONTAINER: Final = ("name", "image", "args", "ports")
_CORDONED: Final = frozenset({"sqc", "lqc"})
_GROWS: Final = {
    "action": "RETRY_ACTION_RETRY",
    "onCategory": "mem",
    "mutate": {"resources": {"memory": {"factor": 1.5}}},
}
_POLICIES: Final[Mapping[str, dict[str, Any]]] = {
    "rpq": {"retryLimit": 2, "defaultAction": "RETRY_ACTION_FAIL", "rules": [_GROWS]},
    "rpq2": {"retryLimit": 1, "defaultAction": "RETRY_ACTION_RETRY"},
}
"""Queues of stories that have a retry policy."""
_NODE: Final = re.compile(r"fake-node-\d")


class Stage:
    """One story on the way: submits its streams and keeps the ids."""

    def __init__(self, api: Api, story: Story) -> None:
        self.api = api
        self.story = story
        self.streams = story["streams"]
        self.ids: dict[str, list[str]] = {}

    async def open_queues(self, names: set[str]) -> None:
        """Create the queues that the story's streams need."""
        for name in sorted(names):
            queue: dict[str, Any] = {"name": name, "priorityFactor": 1.0, "cordoned": name in _CORDONED}
            if name in _POLICIES:
                policy = _POLICIES[name] | {"name": f"policy-of-{name}"}
                await self.api.call("api.RetryPolicyService.CreateRetryPolicy", policy)
                queue["retryPolicies"] = [policy["name"]]
            await self.api.call("api.Submit.CreateQueue", queue)

    async def submit(self, number: int) -> None:
        """Submit the jobs of one stream in one request."""
        stream = self.streams[number]
        jobs = [event["message"]["submitted"]["job"] for event in stream["events"] if "submitted" in event["message"]]
        services = [{"type": "NodePort", "ports": [80]}] if "service" in self.story["id"] else []
        request = {
            "queue": stream["queue"],
            "jobSetId": stream["job_set"],
            "jobRequestItems": [asked_for(job) | ({"services": services} if services else {}) for job in jobs],
        }
        answer = await self.api.call("api.Submit.SubmitJobs", request)
        assert answer.code == "OK", answer.text
        self.ids[stream["job_set"]] = [row["jobId"] for row in answer.messages[0]["jobResponseItems"]]

    async def fill(self, queue: str) -> None:
        """Let long jobs take both nodes."""
        amounts = {"cpu": {"string": "6"}, "memory": {"string": "1Gi"}}
        resources = {"requests": amounts, "limits": amounts}
        container = {"name": "main", "image": "i", "args": ["sleep $(( (RANDOM % 1) + 900 ))"], "resources": resources}
        item = {"namespace": "ns1", "podSpec": {"containers": [container]}}
        request = {"queue": queue, "jobSetId": "filler", "jobRequestItems": [item, item]}
        await self.api.call("api.Submit.SubmitJobs", request)
        await self._until(queue, "filler", "running", 2)

    async def until(self, number: int, kind: str, count: int = 1) -> None:
        """Wait until a stream shows `count` events of a kind."""
        stream = self.streams[number]
        await self._until(stream["queue"], stream["job_set"], kind, count)

    async def _until(self, queue: str, job_set: str, kind: str, count: int) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + SETTLED_S
        while loop.time() < deadline:
            events = await self.api.events(queue, job_set)
            if sum(line.startswith(f"{kind} ") for line in told(events)) >= count:
                return
            await asyncio.sleep(0.05)

    async def act(self, method: str, number: int = 0, **request: Any) -> None:
        """Call the Submit service about the job set of a stream."""
        stream = self.streams[number]
        place = {"queue": stream["queue"], "jobSetId": stream["job_set"]}
        answer = await self.api.call(f"api.Submit.{method}", place | request)
        assert answer.code == "OK", answer.text

    async def on_queue(self, method: str, **request: Any) -> None:
        """Call the queue service about the queue of the first stream."""
        await self.api.call(f"api.QueueService.{method}", {"name": self.streams[0]["queue"]} | request)

    def job(self, place: int) -> str:
        """The id of a job of the first stream."""
        return self.ids[self.streams[0]["job_set"]][place]


def asked_for(job: dict[str, Any]) -> dict[str, Any]:
    """A request for a job that was recorded after defaults had been filled in."""
    spec = job["podSpec"]
    asked: dict[str, Any] = {"containers": [_container(container) for container in spec.get("containers", [])]}
    if spec.get("nodeSelector"):
        asked["nodeSelector"] = spec["nodeSelector"]
    if spec.get("priorityClassName") != "armada-default":
        asked["priorityClassName"] = spec["priorityClassName"]
    annotations = {key: value for key, value in job.get("annotations", {}).items() if key not in _DEFAULTED}
    return {
        "namespace": job["namespace"],
        "priority": job.get("priority", 0),
        "labels": job.get("labels", {}),
        "annotations": annotations,
        "podSpec": asked,
    }


def _container(container: dict[str, Any]) -> dict[str, Any]:
    kept = {key: container[key] for key in _CONTAINER if key in container}
    resources = {
        kind: {name: quantity for name, quantity in amounts.items() if name != "ephemeral-storage"}
        for kind, amounts in container["resources"].items()
    }
    return kept | {"resources": resources}


async def _cancel_one(stage: Stage) -> None:
    await stage.act("CancelJobs", jobIds=[stage.job(0)], reason="not needed")


async def _cancel_set(stage: Stage) -> None:
    await stage.act("CancelJobSet")


async def _cancel_without_ids(stage: Stage) -> None:
    await stage.act("CancelJobs")


async def _reprioritise(stage: Stage) -> None:
    await stage.act("ReprioritizeJobs", jobIds=[stage.job(0)], newPriority=9)
    await stage.act("ReprioritizeJobs", newPriority=4)


async def _cancel_running(stage: Stage) -> None:
    await stage.until(0, "running", 2)
    await stage.act("CancelJobs", jobIds=[stage.job(0)])
    await stage.act("CancelJobSet")


async def _preempt(stage: Stage) -> None:
    await stage.until(0, "running")
    await stage.act("PreemptJobs", jobIds=[stage.job(0)], reason="maintenance")


async def _reprioritise_running(stage: Stage) -> None:
    await stage.until(0, "running")
    recorded = next(
        event["message"]["reprioritizing"]
        for event in stage.streams[0]["events"]
        if "reprioritizing" in event["message"]
    )
    await stage.act("ReprioritizeJobs", jobIds=[stage.job(0)], newPriority=recorded["newPriority"])


async def _cancel_on_queue(stage: Stage) -> None:
    await stage.on_queue("CancelOnQueue", jobStates=["QUEUED"], priorityClasses=["armada-default"])


async def _preempt_then_cancel_on_queue(stage: Stage) -> None:
    await stage.until(0, "running", 2)
    await stage.on_queue("PreemptOnQueue")
    await stage.until(0, "failed")
    await stage.on_queue("CancelOnQueue", jobStates=["RUNNING"])


ACTIONS: Final[Mapping[str, Callable[[Stage], Awaitable[None]]]] = {
    "cancel-queued": _cancel_one,
    "cancel-set-queued": _cancel_set,
    "cancel-jobs-without-ids": _cancel_without_ids,
    "reprioritise": _reprioritise,
    "cancel-running": _cancel_running,
    "preempt-api": _preempt,
    "reprioritise-running": _reprioritise_running,
    "cancel-on-queue": _cancel_on_queue,
    "preempt-then-cancel-on-queue": _preempt_then_cancel_on_queue,
}
FILLERS: Final = {"fits-but-full": "pa"}
"""Stories that find both nodes taken, by jobs of this queue."""

FILLED_FIRST: Final = {"preempted-by-higher-priority": 4, "preempted-for-fair-share": 4}
"""Stories whose second stream comes when so many jobs of the first run."""


async def play(api: Api, story: Story, meanwhile: Callable[[Stage], Awaitable[None]] | None = None) -> list[str]:
    """Play one story; return where its streams differ from the recording. `meanwhile` is done once all is submitted."""
    stage = Stage(api, story)
    await stage.open_queues({stream["queue"] for stream in stage.streams})
    if story["id"] in FILLERS:
        await stage.fill(FILLERS[story["id"]])
    for number in range(len(stage.streams)):
        await stage.submit(number)
        if number == 0 and story["id"] in FILLED_FIRST:
            await stage.until(0, "running", FILLED_FIRST[story["id"]])
    action = meanwhile or ACTIONS.get(story["id"])
    if action is not None:
        await action(stage)
    matcher = Matcher()
    found = []
    patience_s = SHORT_S if story["id"] in accepted_differences().get("events", {}) else SETTLED_S
    for stream in stage.streams:
        found += await _compare(api, stream, matcher, patience_s)
    if story["id"] in FILLERS:
        await api.call("api.Submit.CancelJobSet", {"queue": FILLERS[story["id"]], "jobSetId": "filler"})
    for stream in stage.streams:  # leave room for the next story
        await api.call("api.Submit.CancelJobSet", {"queue": stream["queue"], "jobSetId": stream["job_set"]})
    return found


async def _compare(api: Api, stream: dict[str, Any], matcher: Matcher, patience_s: float) -> list[str]:
    expected = _by_job(stream["events"])
    kinds = {job: [kind for kind, _ in events] for job, events in expected.items()}
    recorded = sorted(kinds.values())
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience_s
    events = await api.events(stream["queue"], stream["job_set"])
    while sorted(_kinds(events)) != recorded and loop.time() < deadline:
        await asyncio.sleep(0.05)
        events = await api.events(stream["queue"], stream["job_set"])
    await asyncio.sleep(QUIET_S)
    events = await api.events(stream["queue"], stream["job_set"])
    if sorted(_kinds(events)) != recorded:
        return [f"{stream['job_set']}: {sorted(_kinds(events))}, recorded {recorded}"]
    return _details(stream["job_set"], expected, _by_job(events), matcher)


def _by_job(events: list[dict[str, Any]]) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for event in events:
        ((kind, part),) = event["message"].items()
        found.setdefault(part["jobId"], []).append((kind, part))
    return found


def _kinds(events: list[dict[str, Any]]) -> list[list[str]]:
    return [[kind for kind, _ in parts] for parts in _by_job(events).values()]


def _details(
    job_set: str,
    recorded: dict[str, list[tuple[str, dict[str, Any]]]],
    seen: dict[str, list[tuple[str, dict[str, Any]]]],
    matcher: Matcher,
) -> list[str]:
    """Compare job by job; jobs of one story are alike, so that one with the same events stands for a recorded one."""
    found = []
    left = dict(seen)
    for job, parts in recorded.items():
        kinds = [kind for kind, _ in parts]
        twin = next(
            (
                other
                for other, others in left.items()
                if [kind for kind, _ in others] == kinds and matcher.bound.get(job, other) == other
            ),
            None,
        )
        if twin is None:
            found.append(f"{job_set}: no job like {job}")
            continue
        for (kind, expected), (_, part) in zip(parts, left.pop(twin), strict=True):
            found += matcher.differences({kind: _some_node(expected)}, {kind: _some_node(part)}, job_set)
    return found


def _some_node(part: dict[str, Any]) -> dict[str, Any]:
    """Which of the two equal nodes took a job is incidental."""
    if "nodeName" not in part:
        return part
    return part | {"nodeName": _NODE.sub("fake-node", part["nodeName"])}
