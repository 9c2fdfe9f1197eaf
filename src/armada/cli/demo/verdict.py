"""What the demo promised, compared with what happened."""

from dataclasses import dataclass, field
from typing import Final

from armada.cli.demo.mix import SIMULATED, SUM_OF_1000
from armada.cli.demo.performance import Performance, Share

TOGETHER_MS: Final = 3_000
"""How far apart the starts of a gang's members may be."""

_MINIMUM_SAMPLES: Final = 3
_BUSY: Final = 0.9


@dataclass(frozen=True, slots=True)
class Finding:
    """One promise: what was submitted, what was expected, what happened, and whether that is the same."""

    what: str
    expected: str
    happened: str
    is_kept: bool


@dataclass(slots=True)
class FairnessMeter:
    """Average shares over the time in which every queue had more to do than it could get.

    The first `settle_s` of that time don't count: what was there first has its places until it ends.
    """

    settle_s: float
    samples: int = 0
    total_s: float = 0.0
    used: dict[str, float] = field(default_factory=dict)
    fair: dict[str, float] = field(default_factory=dict)
    _busy_since_s: float | None = None
    _last_s: float = 0.0
    _most_cpus: float = 0.0

    def look(self, performance: Performance, shares: dict[str, Share]) -> None:
        """Take the present shares into account."""
        now_s = performance.elapsed_s
        passed_s, self._last_s = now_s - self._last_s, now_s
        cpus = sum(performance.cpu_in_use(each.name) for each in performance.mix.queues)
        self._most_cpus = max(self._most_cpus, cpus)
        is_contended = all(performance.tallies[each.name, SIMULATED]["queued"] for each in performance.mix.queues)
        if not is_contended or not cpus or cpus < _BUSY * self._most_cpus:
            return
        if self._busy_since_s is None:
            self._busy_since_s = now_s
        if now_s - self._busy_since_s < self.settle_s:
            return
        self.samples += 1
        self.total_s += passed_s
        for name, share in shares.items():
            self.used[name] = self.used.get(name, 0.0) + passed_s * share.used
            self.fair[name] = self.fair.get(name, 0.0) + passed_s * share.fair

    def average(self) -> dict[str, Share]:
        """The average share and fair share by queue; empty when there was too little to look at."""
        if self.samples < _MINIMUM_SAMPLES or self.total_s <= 0:
            return {}
        return {name: Share(self.used[name] / self.total_s, self.fair[name] / self.total_s) for name in self.used}


def findings(performance: Performance, meter: FairnessMeter) -> list[Finding]:
    """Every promise of the demo with what became of it. Output must have been read back before."""
    return [
        _output(performance, "hello", "a command", "hello from job"),
        _output(performance, "sum", "a computation", str(SUM_OF_1000)),
        _gang(performance),
        _exit_3(performance),
        _too_big(performance),
        _cancelled(performance),
        _preemption(performance),
        _simulated(performance),
        _fairness(performance, meter),
    ]


def _state(performance: Performance, key: str) -> str:
    job = performance.state_of(key)
    if job is None:
        return "was not submitted"
    if job.is_rejected:
        return f"was rejected: {_short(job.reason)}"
    if job.state == "failed":
        return f"failed: {_short(job.reason)}"
    return job.state or "was submitted, no more"


def _short(text: str, limit: int = 160) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _output(performance: Performance, key: str, what: str, wanted: str) -> Finding:
    staged, job = performance.staged.get(key), performance.state_of(key)
    lines = staged.output if staged is not None else []
    written = next((line for line in lines if wanted in line), lines[-1] if lines else "")
    state = _state(performance, key)
    is_kept = job is not None and job.state == "succeeded" and wanted in written
    happened = f"{state}, wrote: {_short(written)}" if written else f"{state}, output could not be read back"
    return Finding(f"{what} run as a process here", f"succeeds, writes “{wanted}…”", happened, is_kept)


def _gang(performance: Performance) -> Finding:
    keys = [f"gang {number}" for number in range(1, performance.mix.gang_size + 1)]
    jobs = [performance.state_of(key) for key in keys]
    leased = [performance.staged[key].moments_ms.get("leased") for key in keys if key in performance.staged]
    moments = [moment for moment in leased if moment is not None]
    spread_ms = max(moments) - min(moments) if moments else 0
    succeeded = sum(1 for job in jobs if job is not None and job.state == "succeeded")
    is_kept = succeeded == len(keys) == len(moments) and spread_ms <= TOGETHER_MS
    happened = f"{len(moments)} leased within {spread_ms} ms, {succeeded} succeeded"
    return Finding("a gang of 4", "all placed together", happened, is_kept)


def _exit_3(performance: Performance) -> Finding:
    job = performance.state_of("exit 3")
    codes = () if job is None else job.exit_codes
    is_kept = job is not None and job.state == "failed" and 3 in codes
    return Finding("a command that exits with 3", "fails with exit code 3", _state(performance, "exit 3"), is_kept)


def _too_big(performance: Performance) -> Finding:
    job = performance.state_of("too big")
    is_kept = job is not None and job.state == "failed" and job.is_rejected and bool(job.reason)
    return Finding("a job of 100,000 cpus", "rejected, with the reason", _state(performance, "too big"), is_kept)


def _cancelled(performance: Performance) -> Finding:
    staged = performance.staged.get("to cancel")
    ran = staged is not None and "running" in staged.moments_ms
    job = performance.state_of("to cancel")
    is_kept = ran and job is not None and job.state == "cancelled"
    happened = f"{_state(performance, 'to cancel')}{' while it ran' if is_kept else ''}"
    return Finding("a job cancelled while running", "cancelled", happened, is_kept)


def _preemption(performance: Performance) -> Finding:
    modest, urgent = performance.state_of("modest"), performance.state_of("urgent")
    is_preempted = modest is not None and modest.was_preempted and modest.state == "failed"
    is_kept = is_preempted and urgent is not None and urgent.state == "succeeded"
    lower = "preempted" if is_preempted else _state(performance, "modest")
    happened = f"lower one {lower}, higher one {_state(performance, 'urgent')}"
    return Finding("two jobs that do not both fit", "the higher class preempts the lower", happened, is_kept)


def _simulated(performance: Performance) -> Finding:
    tallies = [performance.tallies[each.name, SIMULATED] for each in performance.mix.queues]
    succeeded = sum(tally["succeeded"] for tally in tallies)
    total = performance.mix.total_simulated
    seconds = max(0.001, (performance.last_simulated_ms - performance.first_event_ms) / 1_000)
    happened = f"{succeeded:,} succeeded on {len(performance.clusters)} clusters in {seconds:.1f} s"
    expected = f"all succeed, on {performance.mix.fleet.partition('x')[0]} clusters"
    is_kept = succeeded == total and str(len(performance.clusters)) == performance.mix.fleet.partition("x")[0]
    return Finding(f"{total:,} short simulated jobs", expected, happened, is_kept)


def _fairness(performance: Performance, meter: FairnessMeter) -> Finding:
    average = meter.average()
    weights = {each.name: 1 / each.priority_factor for each in performance.mix.queues}
    due = {name: weight / sum(weights.values()) for name, weight in weights.items()}
    expected = "shares " + " : ".join(f"{part:.0%}" for part in due.values())
    if not average:
        return Finding("three queues in competition", expected, "too short to measure", is_kept=False)
    happened = "shares " + " : ".join(f"{average[name].used:.0%}" for name in due)
    worst = max(abs(average[name].used - part) for name, part in due.items())
    return Finding(
        "three queues in competition",
        expected,
        f"{happened} over {meter.total_s:.1f} s",
        worst <= performance.mix.tolerance,
    )
