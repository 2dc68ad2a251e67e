"""How many requests may be in the house, and whether the door is still open."""

import asyncio
from collections import Counter
from collections.abc import Callable

from podium_core.domain.errors import Code, PodiumError

_RETRY_AFTER_S = 1.0


class Slot:
    """One request's place, with the bytes of its body and answers. Releasing it twice does no harm."""

    def __init__(self, admission: "Admission", tenant_id: str) -> None:
        self._admission: Admission | None = admission
        self._tenant_id = tenant_id
        self._bytes = 0
        self._on_release: list[Callable[[], None]] = []

    def also_release(self, release: Callable[[], None]) -> None:
        """Call `release` when the place is given back."""
        self._on_release.append(release)

    def hold(self, body_bytes: int) -> None:
        """Keep that many bytes from now on; raise PodiumError (RATE_LIMITED) when they do not fit."""
        if self._admission is not None:
            self._admission._carry(self._tenant_id, body_bytes - self._bytes)  # noqa: SLF001 - a slot is part of its admission
            self._bytes = body_bytes

    def add(self, answer_bytes: int) -> None:
        """Keep so many bytes more; raise PodiumError (RATE_LIMITED, ANSWER_NOT_HELD) when they do not fit."""
        if self._admission is None:
            return
        try:
            self._admission._carry(self._tenant_id, answer_bytes)  # noqa: SLF001 - a slot is part of its admission
        except PodiumError:
            raise PodiumError(
                Code.RATE_LIMITED,
                "the answer was stopped: this gateway holds as many bytes of requests and answers as it may; "
                "ask for a shorter one, or when it is less busy",
                reason="ANSWER_NOT_HELD",
            ) from None
        self._bytes += answer_bytes

    def release(self) -> None:
        """Give the place back."""
        admission, self._admission = self._admission, None
        if admission is not None:
            admission._leave(self._tenant_id, self._bytes)  # noqa: SLF001 - a slot is part of its admission
            for release in self._on_release:
                release()


class Admission:
    """Counts the runs in the house and their bytes against limits; refuses everyone once it is closed.

    Where there are several tenants, none may take more than `tenant_share` (asked each time) of the places
    or of the bytes: so there is room for another, whatever one of them does.
    """

    def __init__(
        self,
        max_concurrent_runs: int,
        max_concurrent_bytes: int,
        tenant_share: Callable[[], float] = lambda: 1.0,
    ) -> None:
        self._share = tenant_share
        self._counts: Counter[str] = Counter()
        self._bytes_of: Counter[str] = Counter()
        self._limit = max_concurrent_runs
        self._bytes_limit = max_concurrent_bytes
        self._count = 0
        self._bytes = 0
        self._closed = False
        self.is_draining = False
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def count(self) -> int:
        """How many are in the house."""
        return self._count

    @property
    def is_closed(self) -> bool:
        """Whether nobody may enter any more."""
        return self._closed

    def enter(self, tenant_id: str) -> Slot:
        """Return a place; raise PodiumError (RATE_LIMITED when full, UNAVAILABLE when closed)."""
        if self._closed:
            raise PodiumError(
                Code.UNAVAILABLE,
                "this gateway is shutting down; try again, another one will answer",
                reason="SHUTTING_DOWN",
                retry_after_s=_RETRY_AFTER_S,
            )
        if self._count >= self._limit:
            raise _full(f"all {self._limit} places of this gateway are taken", "TOO_MANY_RUNS")
        most = max(1, int(self._limit * self._share()))
        if self._counts[tenant_id] >= most:
            raise _full(f"this tenant has all {most} places that it may have here", "TENANT_BUSY")
        self._count += 1
        self._counts[tenant_id] += 1
        self._empty.clear()
        return Slot(self, tenant_id)

    def drain(self) -> None:
        """Tell load balancers to send nobody; who comes all the same is still let in."""
        self.is_draining = True

    def close(self) -> None:
        """Let nobody in any more."""
        self.is_draining = self._closed = True

    async def empty(self, timeout_s: float) -> bool:
        """Wait until everyone has left; return False when that took longer than `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._empty.wait()
        except TimeoutError:
            return False
        return True

    def _carry(self, tenant_id: str, more_bytes: int) -> None:
        if more_bytes > 0 and self._bytes + more_bytes > self._bytes_limit:
            raise _full("this gateway holds as many request bytes as it may", "TOO_MANY_BYTES")
        most = int(self._bytes_limit * self._share())
        if more_bytes > 0 and self._bytes_of[tenant_id] + more_bytes > most:
            raise _full("this tenant's requests hold as many bytes here as they may", "TENANT_BUSY")
        self._bytes += more_bytes
        self._bytes_of[tenant_id] += more_bytes

    def _leave(self, tenant_id: str, body_bytes: int) -> None:
        self._bytes -= body_bytes
        self._count -= 1
        self._counts[tenant_id] -= 1
        self._bytes_of[tenant_id] -= body_bytes
        if not self._counts[tenant_id]:
            del self._counts[tenant_id], self._bytes_of[tenant_id]
        if not self._count:
            self._empty.set()


def _full(what: str, reason: str) -> PodiumError:
    return PodiumError(
        Code.RATE_LIMITED, f"{what}; try again shortly", reason=reason, retry_after_s=_RETRY_AFTER_S
    )
