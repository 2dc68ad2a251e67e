"""Whether the services behind the gateway answer, by the standard gRPC health service."""

import asyncio
from collections.abc import Mapping

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]

from podium_core.domain.clock import Clock
from podium_gateway.adapters.pool_cache import PoolCache
from podium_gateway.ports import Readiness

_TIMEOUT_S = 1.0
_KEPT_NS = 1_000_000_000
_UP = "up"
_DOWN = "down"


class ServiceReadiness:
    """Ready means: audit answers and the pool is known. A missing conductor only costs better plans."""

    def __init__(self, channels: Mapping[str, grpc.aio.Channel], pool: PoolCache, clock: Clock) -> None:
        self._stubs = {name: health_pb2_grpc.HealthStub(channel) for name, channel in channels.items()}
        self._pool = pool
        self._clock = clock
        self._found: Readiness | None = None
        self._found_ns = 0
        self._lock = asyncio.Lock()

    async def check(self) -> Readiness:
        """Return what is reachable; an answer is kept for a second, so that probes cost nothing."""
        async with self._lock:
            now_ns = self._clock.monotonic_ns()
            if self._found is None or now_ns - self._found_ns >= _KEPT_NS:
                self._found = await self._look()
                self._found_ns = self._clock.monotonic_ns()
            return self._found

    async def _look(self) -> Readiness:
        states = await asyncio.gather(*(self._state(stub) for stub in self._stubs.values()))
        checks = dict(zip(self._stubs, states, strict=True))
        checks["pool"] = _UP if self._pool.is_loaded else _DOWN
        return Readiness(checks["audit"] == _UP and self._pool.is_loaded, checks)

    @staticmethod
    async def _state(stub: "health_pb2_grpc.HealthStub") -> str:
        try:
            answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=_TIMEOUT_S)
        except grpc.aio.AioRpcError:
            return _DOWN
        return _UP if answer.status == health_pb2.HealthCheckResponse.SERVING else _DOWN
