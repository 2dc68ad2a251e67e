"""Channels to other services, and the only retry there is between services."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import grpc
from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.grpc_errors import rpc_errors
from podium_core.runtime.grpc_transport import client_options
from podium_core.runtime.identity import TlsFiles, dns_name
from podium_core.runtime.live_tls import LiveTls, Pems, client_credentials
from podium_core.runtime.renewing_channel import RenewingChannel
from podium_core.runtime.settings_base import is_one_place, target_of

T = TypeVar("T")

_NANOS = 1_000_000_000
_FIRST_PAUSE_S = 0.02
_MAX_PAUSE_S = 1.0
_RETRIED = frozenset({Code.UNAVAILABLE, Code.AUDIT_UNAVAILABLE})
_trace_context = TraceContextTextMapPropagator()


def open_channel(address: str, service: str, tls: TlsFiles) -> grpc.aio.Channel:
    """Return a channel to `service` at `address`; it connects on first use.

    The address is `host:port`, or several of them, separated by commas, whose hosts are IP addresses. Calls
    go round all replicas that a name or a list stands for, of those that say they serve. Whatever the
    address, a server must present that service's own certificate. A certificate that is renewed on disk is
    used from the next calls on. Raises PodiumError when the TLS files cannot be used.
    """
    options = client_options(dns_name(service), may_be_several=not is_one_place(address))

    def connect(pems: Pems) -> grpc.aio.Channel:
        return grpc.aio.secure_channel(target_of(address), client_credentials(pems), options=options)

    return RenewingChannel(connect, LiveTls(tls))


def call_metadata() -> tuple[tuple[str, str], ...]:
    """Return the current trace as call metadata; nothing when no span is being recorded."""
    if not trace.get_current_span().is_recording():
        return ()
    carrier: dict[str, str] = {}
    _trace_context.inject(carrier)
    return tuple(carrier.items())


async def retry_unary(
    call: Callable[[float], Awaitable[T]],
    *,
    service: str,
    budget_s: float,
    clock: Clock,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """Make an idempotent call, again while the service is unavailable, for `budget_s` seconds in all.

    `call` gets the seconds that are left and must use them as its timeout. Raises PodiumError: what the
    service said, or its last unavailability once the budget does not allow another try.
    """
    now_ns = clock.monotonic_ns()
    end_ns = now_ns + int(budget_s * _NANOS)
    pause_s = _FIRST_PAUSE_S
    while True:
        try:
            with rpc_errors(service):
                return await call((end_ns - now_ns) / _NANOS)
        except PodiumError as error:
            if error.code not in _RETRIED:
                raise
            failure = error
        jitter = random.Random(now_ns).uniform(0.5, 1.0)  # noqa: S311 - spreads retries, guards nothing
        wait_s = max(pause_s * jitter, failure.retry_after_s or 0.0)
        if clock.monotonic_ns() + int(wait_s * _NANOS) >= end_ns:
            raise failure
        await sleep(wait_s)
        now_ns = clock.monotonic_ns()
        if now_ns >= end_ns:
            raise failure
        pause_s = min(2 * pause_s, _MAX_PAUSE_S)
