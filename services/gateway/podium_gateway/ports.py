"""What the HTTP edge needs from the rest of the process, besides the runner's own ports."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from podium_core.domain.conversation import Item, ItemKey, ItemRange
from podium_core.domain.errors import PodiumError
from podium_core.domain.gate import GradeTally
from podium_core.domain.limits import LimitName
from podium_core.domain.pool import Pool
from podium_core.orchestration.events import RunEvent
from podium_core.orchestration.ports import FreshPoolPort
from podium_core.orchestration.request import RunRequest


class RunnerPort(Protocol):
    """Performs runs: `podium_core.orchestration.runner.Runner`."""

    def run(self, request: RunRequest, pool: Pool) -> AsyncGenerator[RunEvent, None]:
        """Yield the run's events, the last being RunFinished."""
        ...


class PoolPort(FreshPoolPort, Protocol):
    """Knows the workers of this moment."""

    def current(self) -> Pool:
        """Return the pool; raise PodiumError (UNAVAILABLE) while it was never loaded."""
        ...


class LeasePort(Protocol):
    """Keeps live runs alive in the log and hears which of them must stop."""

    def track(self, run_id: str, stop: Callable[[PodiumError], None]) -> None:
        """Call `stop` once if the run is lost or somebody cancels it."""
        ...

    def forget(self, run_id: str) -> None:
        """The run has ended, however it did."""
        ...


@dataclass(frozen=True, slots=True)
class Joined:
    """What came of joining: the version that is kept, and whoever came first, if not the caller."""

    version: int
    holder: Item | None = None


@dataclass(frozen=True, slots=True)
class ItemPage:
    """Items with their ids, and whether there are more behind the last."""

    items: Sequence[tuple[str, Item]]
    has_more: bool


class ConversationPort(Protocol):
    """Keeps what a conversation needs between requests, for all gateways. Every item can be deleted.

    Every method raises PodiumError: AUDIT_UNAVAILABLE when audit does not answer in time, TOO_LARGE.
    """

    async def get(self, key: ItemKey, *, principal_id: str = "") -> Item | None:
        """Return what is kept; None when there is nothing, or nothing any more.

        A principal is named when a client reads its own item: then the read is recorded.
        """
        ...

    async def page(self, wanted: ItemRange, limit: int) -> ItemPage:
        """Return at most `limit` items (1 to 100) of a range, by id; nothing is recorded."""
        ...

    async def put(
        self, key: ItemKey, data: bytes, *, ttl_s: float | None, run_id: str = "", if_version: int = 0
    ) -> int:
        """Keep data for `ttl_s` seconds (None: until it is deleted); return its version.

        Raises PodiumError (CONFLICT, ITEM_CHANGED) when `if_version` is not 0 and not what is kept.
        """
        ...

    async def join(self, key: ItemKey, data: bytes, *, ttl_s: float | None, run_id: str = "") -> Joined:
        """Keep data if nothing is kept yet. Of several callers anywhere, exactly one comes first."""
        ...

    async def delete(self, key: ItemKey, *, if_version: int = 0, principal_id: str = "") -> bool:
        """Delete for good; return whether there was anything. Recorded when a principal is named.

        Raises PodiumError (CONFLICT, ITEM_CHANGED) when `if_version` is not 0 and not what is kept.
        """
        ...


class StopPort(Protocol):
    """Asks that a run be stopped, whichever gateway performs it."""

    async def stop_run(self, tenant_id: str, run_id: str, principal_id: str) -> None:
        """Record the stop: no further attempt is permitted, and the run's gateway cancels it within seconds.

        Raises PodiumError: NOT_FOUND (no such run of this tenant), CONFLICT (RUN_SEALED: it has ended).
        """
        ...


class GradePort(Protocol):
    """Takes grades of finished runs, and knows what they come to."""

    async def grade(
        self,
        tenant_id: str,
        run_id: str,
        principal_id: str,
        *,
        score_ppm: int,
        comment: str,
        of_any_key: bool = False,
    ) -> int:
        """Record a grade; return its leaf index.

        Raises PodiumError: NOT_FOUND (no such run of this key, or of its tenant with `of_any_key`),
        CONFLICT (RUN_OPEN: it has not ended),
        AUDIT_UNAVAILABLE.
        """
        ...

    def tallies(self, tenant_id: str) -> Sequence[GradeTally]:
        """Return what the tenant's grades came to a few seconds ago."""
        ...


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether this gateway can serve, and which service is in the way."""

    is_ready: bool
    checks: Mapping[str, str]

    @property
    def status(self) -> str:
        """`ready`, `degraded` (a service is missing that runs can do without) or `unready`."""
        if not self.is_ready:
            return "unready"
        return "ready" if all(state == "up" for state in self.checks.values()) else "degraded"


class ReadinessPort(Protocol):
    """Looks at the services behind the gateway."""

    async def check(self) -> Readiness:
        """Return what is reachable now, within about a second."""
        ...


@dataclass(frozen=True, slots=True)
class SliceRequest:
    """What this gateway reports and asks for of one limit; docs: `limit_service.proto`."""

    name: LimitName
    used_total: int = 0
    reported_total: int = 0
    in_use: int = 0
    needed: int = 0
    wanted: int = 0


@dataclass(frozen=True, slots=True)
class Slice:
    """What it got. `limit` None: there is no such limit. Times are milliseconds."""

    granted: int
    valid_ms: int
    limit: int | None
    left: int = 0
    reset_ms: int = 0
    retry_after_ms: int = 0


@dataclass(frozen=True, slots=True)
class UsageRow:
    """Sums of one day; see `usage_service.proto`. Without a worker: requests, by the model asked for."""

    day: str
    principal_id: str
    worker_id: str
    model: str
    counts: tuple[int, ...]
    """In the order of `USAGE_COUNTS`."""


USAGE_COUNTS = (
    "requests",
    "attempts",
    "estimated_attempts",
    "unknown_attempts",
    "input_tokens",
    "output_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "reasoning_output_tokens",
    "cost_usd_micros",
)


@dataclass(frozen=True, slots=True)
class MonthMoney:
    """Money of one month, in USD micros; `budget` None: not limited."""

    month: str
    budget: int | None
    settled: int
    reserved: int


@dataclass(frozen=True, slots=True)
class Used:
    """What was used in a range of days, and its last month's money: the tenant's and, when asked, a key's."""

    rows: Sequence[UsageRow]
    money: MonthMoney
    key_money: MonthMoney | None = None


class UsagePort(Protocol):
    """Knows what keys and tenants have used."""

    async def read(self, tenant_id: str, principal_id: str, first_day: str, last_day: str) -> Used:
        """Return the sums of a range of days, of all keys if `principal_id` is empty; raise PodiumError."""
        ...


class LimitPort(Protocol):
    """Hands out slices of limits that hold over all gateways together."""

    async def lease(self, wanted: Sequence[SliceRequest]) -> Sequence[Slice]:
        """Return one slice for each request; raise PodiumError when none can be had now."""
        ...
