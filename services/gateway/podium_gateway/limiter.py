"""Limits per tenant and key at the edge: slices from audit, spent here without asking again.

One request claims all its limits at once or none: what one of them refuses costs the others nothing. Where
audit cannot be reached, nothing is let in.
"""

import asyncio
import logging
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager

from aiohttp import web

from podium_core.config.tenants import Principal
from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.limits import WINDOW_S, LimitKind, LimitName, Limits
from podium_core.orchestration.events import RunEvent, RunFinished
from podium_core.orchestration.request import RunRequest
from podium_gateway.ports import LimitPort
from podium_gateway.shares import Share

_log = logging.getLogger(__name__)

_NS_PER_S = 1_000_000_000
_NS_PER_MS = 1_000_000
_MS_PER_S = 1_000
_MS_PER_MINUTE = 60_000
_FIRST_PERIOD_S = 1.0
_TICKS_PER_SLICE = 3
_MAX_ROUNDS = 32
_MAX_AT_ONCE = 1_024
_FRESH_NS = WINDOW_S * _NS_PER_S // 2
_CHARS_PER_TOKEN = 4

CLAIMANT = web.RequestKey("claimant", Principal)
"""Who claims limits with a request: its answer, whatever it is, says what is left."""

Watch = Callable[[RunEvent], None]
Refused = Callable[[LimitName], None]
"""Hears which limit refused a request."""


class Claim:
    """What one request takes of its limits. Without limits it does nothing."""

    __slots__ = ("_clock", "_is_over", "_needs", "_taken_ns")

    def __init__(self, needs: list[tuple[Share, int]], clock: Clock) -> None:
        self._needs = needs
        self._clock = clock
        self._taken_ns = clock.monotonic_ns()
        self._is_over = False

    def watching(self, inner: AbstractContextManager[Watch]) -> AbstractContextManager[Watch]:
        """Return `inner`, which also counts the tokens that the run turns out to have used."""
        return self._watching(inner) if self._needs else inner

    def release(self) -> None:
        """The run has ended, or never began: give its place back. A second time does no harm."""
        if not self._is_over:
            self._is_over = True
            for share, _ in self._needs:
                share.release()

    def used(self, tokens: int) -> None:
        """Count the tokens that a run has used instead of those that were reckoned with.

        Fewer are counted only while the reckoned ones surely still count: else the difference would be
        taken off somebody else's.
        """
        is_fresh = self._clock.monotonic_ns() - self._taken_ns < _FRESH_NS
        for share, reckoned in self._needs:
            if share.name.kind is LimitKind.TOKENS and (is_fresh or tokens > reckoned):
                share.correct(tokens - reckoned)

    @contextmanager
    def _watching(self, inner: AbstractContextManager[Watch]) -> Generator[Watch, None, None]:
        with inner as told:

            def watch(event: RunEvent) -> None:
                told(event)
                if isinstance(event, RunFinished):
                    self.used((event.usage + event.other_usage).total_tokens)

            yield watch


class Limiter:
    """The shares of this gateway. One call to audit at a time asks for everything that is needed."""

    def __init__(self, port: LimitPort, clock: Clock, refused: Refused = lambda _: None) -> None:
        self._port = port
        self._clock = clock
        self._refused = refused
        self._shares: dict[LimitName, Share] = {}
        self._leasing: asyncio.Task[None] | None = None
        self._period_s = _FIRST_PERIOD_S

    async def claim(self, principal: Principal, request: RunRequest) -> Claim:
        """Take one request, one run and the tokens to reckon with from all limits of the key and its tenant.

        Reckoned with are the question at four characters a token and the output limit its client set; what
        the run uses beyond that is counted when it has ended. Raises PodiumError: RATE_LIMITED that names
        the limit, AUDIT_UNAVAILABLE while slices cannot be had.
        """
        needs = self._needs(principal, request)
        for _ in range(_MAX_ROUNDS):
            now_ns = self._clock.monotonic_ns()
            lacking = [(share, amount) for share, amount in needs if not share.has(amount, now_ns)]
            if not lacking:
                for share, amount in needs:
                    share.take(amount, now_ns)
                return Claim(needs, self._clock)
            for share, amount in lacking:
                if share.is_refused(amount, now_ns):
                    self._refused(share.name)
                    raise _refusal(share, amount, now_ns)
            await self._lease(lacking)
        raise _crowded()

    def headers(self, principal: Principal) -> dict[str, str]:
        """Return OpenAI's rate-limit headers: those of the limit with the least left, of key and tenant."""
        now_ns = self._clock.monotonic_ns()
        headers: dict[str, str] = {}
        for kind, word in ((LimitKind.REQUESTS, "requests"), (LimitKind.TOKENS, "tokens")):
            shares = [share for name in _names(principal, kind) if (share := self._shares.get(name))]
            known = [share for share in shares if share.limit is not None]
            if known:
                tightest = min(known, key=lambda share: share.remaining(now_ns))
                reset_ms = max(0, tightest.reset_at_ns - now_ns) // _NS_PER_MS
                headers[f"x-ratelimit-limit-{word}"] = str(tightest.limit)
                headers[f"x-ratelimit-remaining-{word}"] = str(tightest.remaining(now_ns))
                headers[f"x-ratelimit-reset-{word}"] = duration_text(reset_ms)
        return headers

    async def keep(self) -> None:
        """Until cancelled: report what was used, renew what is held, and give back what is not needed."""
        while True:
            await asyncio.sleep(self._period_s)
            await self.renew()

    async def renew(self) -> None:
        """Do so once. A failure is logged: slices that are not renewed end by themselves."""
        now_ns = self._clock.monotonic_ns()
        for name, share in tuple(self._shares.items()):
            share.is_due = not share.is_idle(now_ns)
            if not (share.is_due or share.claims):
                del self._shares[name]
        if any(share.is_due for share in self._shares.values()):
            try:
                await self._started()
            except PodiumError as error:
                _log.warning("slices of limits cannot be renewed", extra={"reason": error.reason})

    async def give_all_back(self) -> None:
        """Report once more and keep nothing but the places of runs under way."""
        for share in self._shares.values():
            share.taken = share.taken_before = 0
        await self.renew()

    def _needs(self, principal: Principal, request: RunRequest) -> list[tuple[Share, int]]:
        needs: list[tuple[Share, int]] = []
        for key_id, limits in _scopes(principal):
            for kind in LimitKind:
                limit = limits.of(kind)
                if limit is not None:
                    name = LimitName(principal.tenant.tenant_id, key_id, kind)
                    amount = _reckoned_tokens(request, limit) if kind is LimitKind.TOKENS else 1
                    needs.append((self._share(name), amount))
        return needs

    def _share(self, name: LimitName) -> Share:
        share = self._shares.get(name)
        if share is None:
            share = self._shares[name] = Share(name)
        return share

    async def _lease(self, lacking: list[tuple[Share, int]]) -> None:
        """Wait for new slices; a waiter that gives up leaves the call to the others."""
        for share, amount in lacking:
            share.waiting.append(amount)
        try:
            await self._started()
        finally:
            for share, amount in lacking:
                share.waiting.remove(amount)

    async def _started(self) -> None:
        if self._leasing is None or self._leasing.done():
            self._leasing = asyncio.create_task(self._lease_all())
            self._leasing.add_done_callback(_look_at)
        try:
            await asyncio.shield(self._leasing)
        except PodiumError as error:
            raise _unavailable(error) from None

    async def _lease_all(self) -> None:
        shares = [share for share in self._shares.values() if share.waiting or share.is_due][:_MAX_AT_ONCE]
        sent_ns = self._clock.monotonic_ns()
        asked = [share.request() for share in shares]
        try:
            slices = await self._port.lease(asked)
        except PodiumError:
            for share in shares:
                share.lose()
            raise
        now_ns = self._clock.monotonic_ns()
        for share, slice_ in zip(shares, slices, strict=True):
            share.receive(slice_, sent_ns, now_ns)
            if slice_.valid_ms:
                self._period_s = slice_.valid_ms / _MS_PER_S / _TICKS_PER_SLICE


def duration_text(milliseconds: int) -> str:
    """Return a duration as OpenAI's headers write it: `17ms`, `1.5s`, `6m0s`."""
    if milliseconds < _MS_PER_S:
        return f"{milliseconds}ms"
    minutes, rest_ms = divmod(milliseconds, _MS_PER_MINUTE)
    seconds = f"{rest_ms / _MS_PER_S:.3f}".rstrip("0").rstrip(".") + "s"
    return f"{minutes}m{seconds}" if minutes else seconds


def _scopes(principal: Principal) -> tuple[tuple[str, Limits], ...]:
    return (principal.key_id, principal.key_limits), ("", principal.tenant.limits)


def _names(principal: Principal, kind: LimitKind) -> list[LimitName]:
    tenant_id = principal.tenant.tenant_id
    return [
        LimitName(tenant_id, key_id, kind)
        for key_id, limits in _scopes(principal)
        if limits.of(kind) is not None
    ]


def _reckoned_tokens(request: RunRequest, limit: int) -> int:
    """Return the tokens to take at first. A large output limit alone keeps nobody out for ever."""
    inputs = 1 + sum(len(message.text) for message in request.question.messages) // _CHARS_PER_TOKEN
    return inputs if inputs > limit else min(limit, inputs + (request.max_output_tokens or 0))


def _refusal(share: Share, amount: int, now_ns: int) -> PodiumError:
    name = share.name
    who = f"the key {name.key_id}" if name.key_id else f"the tenant {name.tenant_id}"
    facts = {"limit": name.kind.value, "scope": name.scope}
    if share.retry_at_ns is None:
        return PodiumError(
            Code.RATE_LIMITED,
            f"this request counts {amount} tokens, and {who} may use {share.limit} per minute: send less,"
            f" or have {name.kind.value} raised",
            reason="REQUEST_OVER_LIMIT",
            metadata=facts,
        )
    wait_s = max(0, share.retry_at_ns - now_ns) / _NS_PER_S
    return PodiumError(
        Code.RATE_LIMITED,
        f"{who} may have {_amount(share)}, and has; try again in {max(1, round(wait_s))} s, send less at a"
        f" time, or have {name.kind.value} raised",
        reason="RATE_LIMIT_EXCEEDED",
        metadata=facts,
        retry_after_s=wait_s,
    )


def _amount(share: Share) -> str:
    match share.name.kind:
        case LimitKind.REQUESTS:
            return f"{share.limit} requests per minute"
        case LimitKind.TOKENS:
            return f"{share.limit} tokens per minute"
        case LimitKind.RUNS:
            return f"{share.limit} runs at a time"


def _crowded() -> PodiumError:
    return PodiumError(
        Code.RATE_LIMITED,
        "too many requests of this key wait for its limits; try again shortly",
        reason="RATE_LIMIT_EXCEEDED",
        retry_after_s=1.0,
    )


def _unavailable(error: PodiumError) -> PodiumError:
    return PodiumError(
        Code.AUDIT_UNAVAILABLE,
        "audit, which keeps the limits of this key, does not answer; try again shortly",
        reason="LIMITS_UNAVAILABLE",
        retry_after_s=error.retry_after_s or 1.0,
    )


def _look_at(task: asyncio.Task[None]) -> None:
    """Take note of a failure that nobody waits for any more."""
    if not task.cancelled():
        task.exception()
