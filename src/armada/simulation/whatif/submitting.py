"""Turns templates of a workload into submissions: job ids, gangs, run times, and whose turn comes after whom."""

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Final, TypeVar

import msgspec

from armada.model.errors import InvalidRequest
from armada.model.events import JobsSubmitted
from armada.model.jobs import GangSpec, JobShape, JobTemplate, NewJob
from armada.model.policy import SchedulingPolicy
from armada.simulation.whatif.results import amounts
from armada.simulation.whatif.specs import TemplateSpec, WorkloadSpec, stream

MAX_JOBS_PER_FACT: Final = 10_000

T = TypeVar("T")

_DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_TIME_DIGITS: Final = 10
_NUMBER_DIGITS: Final = 16


class Work:
    """A template on its way: how much of it has succeeded, and what waits for that."""

    def __init__(self, queue: str, spec: TemplateSpec, shape: JobShape, seed: int) -> None:
        self.queue = queue
        self.spec = spec
        self.shape = shape
        self._seed = seed
        self._runtimes: Random | None = None
        self.requests: Mapping[str, float] = amounts(spec.requests)
        self.to_succeed = spec.job_count
        self.waits_for = len(set(spec.dependencies))
        self.dependents: list[Work] = []

    def drawn_runtimes(self) -> tuple[int, ...]:
        """Draw the run times of the jobs of one repeat."""
        runtime = self.spec.runtime
        if not runtime.tail_mean_ms:
            return (runtime.minimum_ms,) * self.spec.number
        if self._runtimes is None:
            self._runtimes = stream(self._seed, f"runtime/{self.spec.id}")
        return tuple(runtime.drawn(self._runtimes) for _ in range(self.spec.number))


class LiveJob:
    """A job that waits or runs. `run_id` is empty and `leased_ms` None while it waits."""

    __slots__ = ("gang_id", "job_id", "leased_ms", "run_id", "runtime_ms", "submitted_ms", "work")

    def __init__(self, work: Work, job_id: str, runtime_ms: int, submitted_ms: int, gang_id: str) -> None:
        self.work = work
        self.job_id = job_id
        self.runtime_ms = runtime_ms
        self.submitted_ms = submitted_ms
        self.gang_id = gang_id
        self.run_id = ""
        self.leased_ms: int | None = None


class Batch(msgspec.Struct, frozen=True):
    """Jobs to submit together, given by their run times: `cardinality` jobs each, when above 1, are a gang."""

    work: Work
    runtimes_ms: tuple[int, ...]
    cardinality: int


class Submitter:
    """Makes the facts of submissions, with ids that follow from their order alone."""

    def __init__(self, workload: WorkloadSpec, policy: SchedulingPolicy, seed: int) -> None:
        """Prepare all templates.

        Raises:
            InvalidRequest: a template names a priority class that the policy does not have.
        """
        check_priority_classes(workload, policy)
        self._jobs_made = 0
        self._gangs_made = 0
        self._templates: dict[tuple[JobShape, tuple[tuple[str, str], ...]], JobTemplate] = {}
        self.works: dict[str, Work] = {}
        for queue in workload.queues:
            for spec in queue.templates:
                shape = _shape(spec, policy)
                self.works[spec.id] = Work(queue.name, spec, shape, seed)
        for work in self.works.values():
            for wanted in dict.fromkeys(work.spec.dependencies):
                self.works[wanted].dependents.append(work)

    def instance(self, work: Work) -> Batch:
        """Return the jobs of one repeat of a template."""
        return Batch(work, work.drawn_runtimes(), work.spec.gang_cardinality)

    def submit(self, batch: Batch, at_ms: int) -> tuple[list[JobsSubmitted], list[LiveJob]]:
        """Return the facts of a submission, and its jobs."""
        facts: list[JobsSubmitted] = []
        jobs: list[LiveJob] = []
        size = batch.cardinality if batch.cardinality > 1 else MAX_JOBS_PER_FACT
        for runtimes in _parts(batch.runtimes_ms, size):
            template, gang_id = self._template(batch.work, batch.cardinality)
            part = [LiveJob(batch.work, self._next_id(at_ms), runtime, at_ms, gang_id) for runtime in runtimes]
            jobs += part
            for members in _parts(part, MAX_JOBS_PER_FACT):
                named = tuple(NewJob(job.job_id, batch.work.spec.queue_priority) for job in members)
                facts.append(JobsSubmitted(at_ms=at_ms, template=template, jobs=named))
        return facts, jobs

    def _template(self, work: Work, cardinality: int) -> tuple[JobTemplate, str]:
        if cardinality > 1:
            self._gangs_made += 1
            gang = GangSpec(f"{work.spec.id}-{self._gangs_made}", cardinality, work.spec.uniformity_label)
            return _template(work, gang), gang.id
        key = (work.shape, work.spec.annotations)
        found = self._templates.get(key)
        if found is None:
            found = self._templates[key] = _template(work)
        return found, ""

    def _next_id(self, at_ms: int) -> str:
        """Return the next job id: a ULID of the virtual time and a running number."""
        self._jobs_made += 1
        return _written(at_ms, _TIME_DIGITS) + _written(self._jobs_made, _NUMBER_DIGITS)


def _template(work: Work, gang: GangSpec | None = None) -> JobTemplate:
    annotations = dict(work.spec.annotations)
    return JobTemplate(shape=work.shape, pod_spec=b"{}", namespace="default", annotations=annotations, gang=gang)


def check_priority_classes(workload: WorkloadSpec, policy: SchedulingPolicy) -> None:
    """Check that the policy has the priority classes of all templates.

    Raises:
        InvalidRequest: it has not; the text names the template's place and the classes that there are.
    """
    known = [one.name for one in policy.priority_classes]
    for queue in workload.queues:
        for spec in queue.templates:
            name = spec.priority_class or policy.default_priority_class
            if name not in known:
                raise InvalidRequest(
                    f"{spec.place}.priorityClassName: the configuration has no priority class {name!r};"
                    f" it has {', '.join(known)}"
                )


def _shape(spec: TemplateSpec, policy: SchedulingPolicy) -> JobShape:
    name = spec.priority_class or policy.default_priority_class
    return JobShape(
        requests=spec.requests,
        priority_class=name,
        node_selector=spec.node_selector,
        tolerations=spec.tolerations,
        affinity=spec.affinity,
    )


def _parts(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


def _written(number: int, digits: int) -> str:
    return "".join(_DIGITS[number >> 5 * place & 31] for place in range(digits - 1, -1, -1))
