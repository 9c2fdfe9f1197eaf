"""The text of the metrics page, made when somebody asks: nothing here runs while nobody does."""

import asyncio
import gzip
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from armada.control.cycle import Leader
from armada.control.leasing import Roster
from armada.control.measuring.leading import leader_status
from armada.control.measuring.rounds import round_families
from armada.control.measuring.series import Family
from armada.control.measuring.standing import Circumstances, StandingFigures
from armada.control.measuring.transitions import Transitions
from armada.control.rounds.planning import RoundReport
from armada.model.policy import MetricsPolicy, SchedulingPolicy
from armada.runtime.exposition import Buckets, TextPage
from armada.server.replica import Replica
from armada.state.figures.standing import Standing

_LIGHT: Final = 1
"""Level of gzip: the page is repetitive, and a higher one costs more than it saves."""


class MetricsPage:
    """What this replica measures. Only a leader shows more than its own process and that it leads or not."""

    def __init__(  # noqa: PLR0913 - the parts it asks are handed in, never looked up
        self,
        replica: Replica,
        leader: Leader,
        roster: Roster,
        *,
        policy: MetricsPolicy,
        scheduling: SchedulingPolicy,
        name: str,
        registry: CollectorRegistry,
    ) -> None:
        self._replica = replica
        self._leader = leader
        self._policy = policy
        self._roster = roster
        self._figures = StandingFigures(scheduling, policy)
        self._stood: list[Family] = []
        self._stood_ms = 0
        self._transitions = Transitions(policy)
        self._counts_since_ms = replica.now_ms()
        replica.ledger.show_to(self._transitions)
        self._name = name
        self._registry = registry
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metrics")
        self._making = asyncio.Lock()
        self._made = b""
        self._begun_s = 0.0

    async def content(self, *, packed: bool) -> bytes:
        """Return the page. Who asks while it is being made for others gets the next one, made once for all of them."""
        asked_s = time.monotonic()
        async with self._making:
            if self._begun_s < asked_s:
                self._begun_s = time.monotonic()
                self._made = await self._make()
            made = self._made
        return await self._apart(lambda: gzip.compress(made, _LIGHT)) if packed else made

    async def close(self) -> None:
        """Make no more pages."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _apart(self, make: Callable[[], bytes]) -> bytes:
        """Do something long in the page's own thread: others may have filled the common ones while they wait for us."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, make)

    async def _make(self) -> bytes:
        leads = self._leader.leads(self._replica.ledger)
        if self._replica.now_ms() - self._counts_since_ms >= self._policy.state_reset_ms:
            self._transitions.forget()
            self._counts_since_ms = self._replica.now_ms()
        reports = dict(self._leader.reports)
        own = generate_latest(self._registry)
        standing = self._standing(reports) if leads else None

        def written() -> bytes:
            families = [leader_status(self._name, leads=leads)]
            if leads:
                # Reports of rounds never change, so that another thread may take its time with them.
                families += [*self._leader.tally.families(), *round_families(reports), *self._transitions.families()]
                if standing is not None:
                    self._stood = self._figures.families(*standing)
                families += self._stood
            return own + written_text(families).encode()

        return await self._apart(written)

    def _standing(self, reports: Mapping[str, RoundReport]) -> tuple[Standing, Circumstances] | None:
        """Copy what stands now; None while the figures made last are fresh enough."""
        now_ms = self._replica.now_ms()
        if self._stood and abs(now_ms - self._stood_ms) < self._policy.refresh_ms:
            return None
        self._stood_ms = now_ms
        seen = Circumstances(
            now_ms=now_ms,
            judged=self._leader.eligibility.judged_pools,
            reports=reports,
            heartbeats=self._roster.heartbeats(),
            usage=self._roster.usage(),
        )
        return self._replica.ledger.standing(), seen


def written_text(families: Iterable[Family]) -> str:
    """Write families in the text form; those without any value are left out."""
    page = TextPage()
    for family in families:
        series = family.series
        if not (family.samples or family.distributions):
            continue
        page.begin(series.name, series.kind, series.meaning)
        for place, (values, value) in enumerate(family.samples):
            names = series.labels + family.free[place] if family.free else series.labels
            page.sample(series.name, names, values, value)
        for values, distribution in family.distributions:
            filled = Buckets(series.edges, distribution.counts, distribution.total)
            page.histogram(series.name, series.labels, values, filled)
    return page.text()
