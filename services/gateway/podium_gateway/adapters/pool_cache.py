"""The router's pool, looked at every few seconds, so that no request waits for it."""

import asyncio
import logging

import grpc

from podium.router.v1 import router_service_pb2, router_service_pb2_grpc
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.pool import Pool
from podium_core.wire.pool import pool_from_proto
from podium_gateway.adapters.inside import Inside

_log = logging.getLogger(__name__)
_FIRST_PAUSE_S = 0.1
_TIMEOUT_S = 5.0


class PoolCache:
    """Keeps the last pool that the router listed. The last good one serves while the router is away."""

    def __init__(self, channel: grpc.aio.Channel, refresh_s: float) -> None:
        self._stub: router_service_pb2_grpc.RouterServiceAsyncStub = (
            router_service_pb2_grpc.RouterServiceStub(channel)
        )
        self._refresh_s = refresh_s
        self._pool: Pool | None = None
        self._wanted = asyncio.Event()
        self._failed = False
        self._looking = asyncio.Lock()

    @property
    def is_loaded(self) -> bool:
        """Whether there is a pool at all."""
        return self._pool is not None

    def current(self) -> Pool:
        """Return the pool; raise PodiumError (UNAVAILABLE) while it was never loaded."""
        if self._pool is None:
            raise PodiumError(
                Code.UNAVAILABLE,
                "the workers are not known yet; try again shortly",
                reason="POOL_NOT_LOADED",
                retry_after_s=1.0,
            )
        return self._pool

    def refresh_soon(self) -> None:
        """Look again now: somebody met a newer pool."""
        self._wanted.set()

    async def newer(self, pool_digest: str, timeout_s: float) -> Pool | None:
        """Return the pool of now unless it is that one; look again as long as it is, for `timeout_s`.

        Many runs may ask at once when the pool changes: they share one look.
        """
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    if (pool := await self._other_than(pool_digest)) is not None:
                        return pool
                    await asyncio.sleep(_FIRST_PAUSE_S)
        except TimeoutError:
            return None

    async def _other_than(self, pool_digest: str) -> Pool | None:
        async with self._looking:
            if self._pool is None or self._pool.pool_digest == pool_digest:
                await self.refresh()
        return self._pool if self._pool is not None and self._pool.pool_digest != pool_digest else None

    async def keep(self) -> None:
        """Refresh until cancelled; often while there is no pool yet."""
        while True:
            await self.refresh()
            pause_s = self._refresh_s if self._pool is not None else min(_FIRST_PAUSE_S, self._refresh_s)
            try:
                async with asyncio.timeout(pause_s):
                    await self._wanted.wait()
            except TimeoutError:
                continue
            self._wanted.clear()

    async def refresh(self) -> None:
        """Look once. A failure changes nothing and is logged when it is the first in a row."""
        try:
            with Inside("router"):
                message = await self._stub.ListWorkers(
                    router_service_pb2.ListWorkersRequest(), timeout=_TIMEOUT_S
                )
            self._pool = pool_from_proto(message)
        except PodiumError as error:
            if not self._failed:
                _log.warning("the pool cannot be listed", extra={"reason": error.reason})
            self._failed = True
        else:
            self._failed = False
