"""Playing recorded cases against a server, in order, and noting where its answers differ."""

import asyncio
import copy
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.shared_folder import recordings
from tests.vectors.api.calls import Answer, Api, told
from tests.vectors.api.matching import Matcher, events_by_job

SETTLED_S: Final = 8.0
"""How long a job set may take to show what was recorded."""

_TERMINAL: Final = frozenset({"succeeded", "failed", "cancelled"})
_ACTIVE: Final = frozenset({"leased", "pending", "running"})

_REPEATED: Final = re.compile(r"value of (\d+) y")

Case = dict[str, Any]


class Accepted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A difference that is meant: `reason` says why; `code` is what this server answers instead, "" if it is equal."""

    reason: str
    code: str = ""
    differs: tuple[str, ...] = ()


def accepted_differences() -> dict[str, dict[str, Accepted]]:
    """By file and case: what is accepted."""
    text = Path(__file__).with_name("accepted.toml").read_text()
    return msgspec.convert(tomllib.loads(text), dict[str, dict[str, Accepted]])


def recorded(file: str) -> dict[str, Any]:
    """A file of recordings; skips where there is none."""
    content: dict[str, Any] = json.loads(recordings("api", file).read_text())
    return content


def comes_later(case: Case) -> bool:
    """Whether the case is about who may do what: that comes later."""
    refused = case["code"] in {"PERMISSION_DENIED", "UNAUTHENTICATED", "UNKNOWN"}
    return case["caller"] not in {"alice", "anonymous"} or (case["caller"] == "anonymous" and refused)


def playable(cases: Iterable[Case]) -> list[Case]:
    """The cases that this server can play: without credentials."""
    return [case for case in cases if not comes_later(case)]


class Player:
    """Plays cases one by one; `differences` holds what was found by case id."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.matcher = Matcher()
        self.differences: dict[str, list[str]] = {}
        self.codes: dict[str, str] = {}

    async def play(self, cases: Iterable[Case]) -> None:
        """Play in order."""
        for case in cases:
            answer = await self.api.call(case["call"], *self._requests(case))
            self.codes[case["id"]] = answer.code
            self.differences[case["id"]] = [*self._compare(case, answer), *await self._aftermath(case, answer)]

    def _requests(self, case: Case) -> list[dict[str, Any]]:
        requests = case["request_stream"] if "request_stream" in case else [case.get("request", {})]
        return [self.matcher.request(written_out(case, request)) for request in requests]

    def _compare(self, case: Case, answer: Answer) -> Iterator[str]:
        if answer.code != case["code"]:
            yield f"code: {answer.code} ({answer.text[:200]}), recorded {case['code']}"
            return
        if "response" in case:
            yield from self.matcher.differences(case["response"], answer.messages[0] if answer.messages else {})
        if case["call"].endswith("GetJobSetEvents"):
            yield from self._stream(case["response_stream"], list(answer.messages))
        elif "response_stream" in case:
            expected = [message for message in case["response_stream"] if isinstance(message, dict)]
            seen = [message for message in answer.messages if len(expected) == len(case["response_stream"])]
            if seen:
                yield from self.matcher.differences(expected, seen, "response_stream")

    def _stream(self, recorded: list[Any], seen: list[Any]) -> Iterator[str]:
        """Compare two streams job by job: ids of messages and the order among jobs are incidental."""
        kept = without_idle_requests([self.matcher.filled(line) for line in told(recorded)])
        expected, events = events_by_job(kept), events_by_job(told(seen))
        if expected != events:
            yield from (f"events of {job}: {events.get(job)}, recorded {expected.get(job)}" for job in expected)
            return
        parts = [
            event["message"]
            for event, line in zip(recorded, told(recorded), strict=True)
            if _take(kept, self.matcher.filled(line))
        ]
        for job in expected:
            left = [part for part in parts if self.matcher.filled(_job_of(part)) == job]
            right = [event["message"] for event in seen if _job_of(event["message"]) == job]
            yield from self.matcher.differences(left, right, f"stream of {job}")

    async def _aftermath(self, case: Case, answer: Answer) -> list[str]:
        request = case.get("request", {})
        found: list[str] = []
        if "submitted_jobs" in case and answer.code == "OK":
            found += await self._submitted(case, answer)
        if "queue_after" in case:
            expected = case["queue_after"]
            name = (expected if isinstance(expected, dict) else request).get("name", "")
            queue = await self.api.call("api.QueueService.GetQueue", {"name": name})
            if isinstance(expected, str) or expected is None:
                found += [] if queue.code != "OK" else ["queue_after: a queue, recorded none"]
            else:
                found += self.matcher.differences(expected, queue.messages[0] if queue.messages else {}, "queue_after")
        if case.get("job_set_events_after"):
            patience_s = SETTLED_S if answer.code == case["code"] else 0.0
            lines = case["job_set_events_after"]
            found += await self._settled(request["queue"], request["jobSetId"], lines, patience_s)
        return found

    async def _submitted(self, case: Case, answer: Answer) -> list[str]:
        shown = {}
        for event in await self.api.events(case["request"]["queue"], case["request"]["jobSetId"]):
            if "submitted" in event["message"]:
                shown[event["message"]["submitted"]["jobId"]] = event["message"]["submitted"]["job"]
        ids = [row["jobId"] for row in answer.messages[0].get("jobResponseItems", [])]
        new = [shown[job_id] for job_id in ids if job_id in shown]
        return self.matcher.differences(case["submitted_jobs"], new[: len(case["submitted_jobs"])], "submitted_jobs")

    async def _settled(self, queue: str, job_set: str, lines: list[str], patience_s: float) -> list[str]:
        expected = events_by_job(without_idle_requests(self.matcher.filled(line) for line in lines))
        deadline = asyncio.get_running_loop().time() + patience_s
        while True:
            seen = events_by_job(told(await self.api.events(queue, job_set)))
            if seen == expected:
                return []
            if asyncio.get_running_loop().time() > deadline or _went_another_way(seen, expected):
                return [f"events of {job}: {seen.get(job)}, recorded {expected.get(job)}" for job in expected | seen]
            await asyncio.sleep(0.05)


def _job_of(message: dict[str, Any]) -> str:
    return str(next(iter(message.values()))["jobId"])


def _take(lines: list[str], line: str) -> bool:
    """Whether `lines` still has this one; it is taken out."""
    if line not in lines:
        return False
    lines.remove(line)
    return True


def _went_another_way(seen: Mapping[str, list[str]], expected: Mapping[str, list[str]]) -> bool:
    """Whether some job's events are no beginning of what is expected, so that waiting is of no use."""
    return any(kinds != expected.get(job, [])[: len(kinds)] for job, kinds in seen.items())


def without_idle_requests(lines: Iterable[str]) -> list[str]:
    """Leave out requests that changed nothing because there was no such job, or it had ended, or it had no run.

    The reference shows them in the stream, even of jobs that never were; this server shows what has happened.
    """
    kept: list[str] = []
    state: dict[str, str] = {}
    for line in lines:
        kind, _, job = line.partition(" ")
        if kind in {"cancelling", "reprioritizing", "preempting"}:
            if job not in state or state[job] in _TERMINAL:
                continue
            if kind == "preempting" and state[job] not in _ACTIVE:
                continue
        elif kind != "reprioritized":
            state[job] = kind
        kept.append(line)
    return kept


def written_out(case: Case, request: dict[str, Any]) -> dict[str, Any]:
    """Requests that the recordings describe instead of repeating them."""
    if case["id"] == "submit.many-200":
        return {"queue": "vec", "jobSetId": "js-many", "jobRequestItems": [copy.deepcopy(PLAIN_ITEM)] * 200}
    repeated = _REPEATED.search(case.get("note") or "")
    if repeated:
        text = json.dumps(request).replace("y repeated, see note", "y" * int(repeated.group(1)))
        return dict(json.loads(text))
    return request


PLAIN_ITEM: Final[dict[str, Any]] = {
    "namespace": "ns1",
    "podSpec": {
        "containers": [
            {
                "name": "main",
                "image": "registry.local/nap:1",
                "args": ["sleep 1"],
                "resources": {
                    kind: {"cpu": {"string": "1"}, "memory": {"string": "1Gi"}} for kind in ("requests", "limits")
                },
            },
        ],
    },
}


def verdict(player: Player, file: str, case: Case) -> str:
    """What is wrong with a case that was played, or "": unexpected differences, or accepted ones that are no more."""
    found = player.differences[case["id"]]
    accepted = accepted_differences().get(file, {}).get(case["id"])
    if accepted is None:
        return "\n".join(found)
    if not found:
        return f"this is equal now: take it out of accepted.toml ({accepted.reason})"
    if accepted.code and player.codes[case["id"]] != accepted.code:
        return f"{player.codes[case['id']]}, accepted {accepted.code}: {found}"
    left = [line for line in found if not line.startswith(("code: ", *accepted.differs))]
    return "\n".join(left)
