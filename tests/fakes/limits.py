"""The limit port without a network: audit's own arithmetic, or an audit that is away."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from podium_audit.slices import Granted, Slices, Wanted, Wish
from podium_core.config.tenants import Tenants
from podium_core.domain.clock import Clock
from podium_core.domain.errors import PodiumError
from podium_gateway.ports import Slice, SliceRequest

_NS_PER_MS = 1_000_000


def slices_of(tenants: Callable[[], Tenants], clock: Clock, *, valid_s: float = 5.0) -> Slices:
    """Return the meters of audit over the limits of `tenants`."""
    return Slices(
        lambda name: tenants().limits_of(name.tenant_id, name.key_id).of(name.kind),
        clock,
        valid_ns=round(valid_s * 1e9),
    )


@dataclass(slots=True)
class FakeLimits:
    """One holder's line to `slices`. `error` is what every call raises while it is set."""

    slices: Slices
    holder_id: str = "gateway_1"
    error: PodiumError | None = None
    calls: list[Sequence[SliceRequest]] = field(default_factory=list)

    async def lease(self, wanted: Sequence[SliceRequest]) -> Sequence[Slice]:
        """Answer as audit would."""
        self.calls.append(wanted)
        if self.error is not None:
            raise self.error
        leases = await self.slices.lease(self.holder_id, [_wish(request) for request in wanted])
        return [self._slice(*lease) for lease in leases]

    def _slice(self, limit: int | None, granted: Granted) -> Slice:
        return Slice(
            granted.granted,
            self.slices.valid_ns // _NS_PER_MS,
            limit,
            granted.left,
            granted.reset_ns // _NS_PER_MS,
            -(-(granted.retry_after_ns or 0) // _NS_PER_MS),
        )


def _wish(request: SliceRequest) -> Wish:
    return request.name, Wanted(
        request.used_total, request.reported_total, request.in_use, request.needed, request.wanted
    )
