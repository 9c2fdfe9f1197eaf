"""The cost of messages: requests to values, facts to messages, exchanges."""

import time
from collections.abc import Callable, Iterable
from typing import Any

from armada_client.armada import submit_pb2 as api

from armada._proto import executor_pb2 as executorapi
from armada.model import events as facts
from armada.model.jobs import NewJob
from armada.model.leases import LeaseReply
from armada.wire import agents, jobs, podspec, reports
from armada.wire.events import stream_messages
from tests.benchmarks.figures import Figure
from tests.unit.wire.builders import entry, submit_request, template
from tests.unit.wire.test_agents import lease
from tests.unit.wire.test_reports import FACTS


def _best_ms(work: Callable[[], Any], repeats: int = 10) -> float:
    """The shortest of several runs, in milliseconds."""
    shortest = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        shortest = min(shortest, time.perf_counter() - start)
    return shortest * 1_000


def _submissions() -> Iterable[Figure]:
    equal = submit_request(200)
    different = submit_request(200)
    for index, row in enumerate(different.job_request_items):
        row.pod_spec.containers[0].args.append(str(index))

    def read(encoded: bytes) -> None:
        jobs.submission(api.JobSubmitRequest.FromString(encoded))

    def read_anew(encoded: bytes) -> None:
        podspec.forget()
        jobs.forget()
        read(encoded)

    name = "a request of 200 jobs, read"
    once, anew = equal.SerializeToString(), different.SerializeToString()
    yield Figure(name=f"{name}, one spec", value=_best_ms(lambda: read(once)), unit="ms", target=5)
    yield Figure(name=f"{name}, 200 specs", value=_best_ms(lambda: read_anew(anew)), unit="ms", target=20)


def measure() -> Iterable[Figure]:
    """Measure conversions in both directions."""
    yield from _submissions()
    submitted = facts.JobsSubmitted(
        at_ms=1, template=template(), jobs=tuple(NewJob(f"j{index}", 0) for index in range(200)), owner="dana"
    )
    shown = _best_ms(lambda: [message.SerializeToString() for message in stream_messages(entry(submitted))])
    yield Figure(name="200 submitted jobs as events, written", value=shown, unit="ms", target=10)
    sequence = facts.JobSetEvents("vision", "nightly", (FACTS * 143)[:1_000])
    encoded = [message.SerializeToString() for message in reports.report_messages((sequence,))]

    def read_reports() -> None:
        for message in encoded:
            reports.executor_report(executorapi.EventList.FromString(message), now_ms=0)

    yield Figure(name="a report of 1,000 events, read", value=_best_ms(read_reports), unit="ms", target=10)
    written = _best_ms(lambda: reports.report_messages((sequence,)))
    yield Figure(name="a report of 1,000 events, written", value=written, unit="ms", target=15)
    shared = template()
    reply = LeaseReply(leases=tuple(lease(run_id=f"r{index}", template=shared) for index in range(1_000)))
    leased = _best_ms(lambda: [message.SerializeToString() for message in agents.lease_reply_messages(reply)])
    yield Figure(name="a reply of 1,000 leases, written", value=leased, unit="ms", target=30)
