"""One writer of several replicas: whoever renews the lease. No clock of another machine is trusted."""

from datetime import UTC, datetime

from podium_core.domain.clock import Clock
from podium_core.resources.objects import Cluster, ConflictError, Lease

_NANOS = 1_000_000_000
_MICROS = 1_000


class LeasedTurn:
    """Has the turn while its name stands in the lease; takes over when the lease has stood still too long."""

    def __init__(self, cluster: Cluster, name: str, holder: str, clock: Clock, *, duration_s: int) -> None:
        self._cluster = cluster
        self._name = name
        self._holder = holder
        self._clock = clock
        self._duration_s = duration_s
        self._seen: tuple[str, str] = ("", "")
        self._seen_ns = 0

    async def is_mine(self) -> bool:
        """Renew the lease, or take it where nobody renews it. Raises PodiumError."""
        lease = await self._cluster.read_lease(self._name)
        now_ns = self._clock.monotonic_ns()
        if (lease.holder, lease.renewed) != self._seen:
            self._seen, self._seen_ns = (lease.holder, lease.renewed), now_ns
        is_old = now_ns - self._seen_ns >= self._duration_s * _NANOS
        if lease.holder not in ("", self._holder) and not is_old:
            return False
        wall_ns = self._clock.now_ns()
        renewed = datetime.fromtimestamp(wall_ns // _NANOS, UTC).replace(
            microsecond=wall_ns % _NANOS // _MICROS
        )
        mine = Lease(lease.version, self._holder, renewed.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
        try:
            await self._cluster.write_lease(self._name, mine, self._duration_s)
        except ConflictError:
            return False
        return True
