"""Everything the router can be told, as environment variables `PODIUM_ROUTER_*`."""

import os
from typing import Annotated

from pydantic import AfterValidator, Field

from podium_core.resources.settings import PoolSettings
from podium_core.runtime.settings_base import GrpcServiceSettings, check_listen, check_target, settings_config
from podium_router.breaker import BreakerLimits
from podium_router.calls import CallTimeouts
from podium_router.dispatch import DispatchLimits
from podium_router.lanes import LaneLimits
from podium_router.outbox import BatchLimits
from podium_router.providers.exchange import ProviderLimits

Seconds = Annotated[float, Field(gt=0, le=3_600, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
ByteCount = Annotated[int, Field(ge=1_024, le=60 * 1024 * 1024)]


class RouterSettings(PoolSettings, GrpcServiceSettings):
    """The router: reaches the workers, holds the provider keys, lets nothing out without a permit."""

    model_config = settings_config("ROUTER")

    listen: Annotated[str, AfterValidator(check_listen)] = "127.0.0.1:7052"
    """host:port of the gRPC server."""
    audit_address: Annotated[str, AfterValidator(check_target)] = "127.0.0.1:7053"
    """host:port of the audit service: a name that stands for all replicas, or IP addresses with commas."""
    permit_timeout_s: Seconds = 5.0
    """Longest wait for the log's permit. Without it nothing is sent."""
    end_budget_s: Seconds = 30.0
    """How long the end of an attempt is offered to the log before the log settles it itself."""
    max_pending_ends: Count = 4_096
    """Unconfirmed ends above which no new attempt begins."""
    connect_timeout_s: Seconds = 5.0
    """Longest wait for a connection to a provider."""
    first_token_timeout_s: Seconds = 120.0
    """Longest wait for a stream's first output. The whole call is bounded by the worker's timeout_s."""
    idle_timeout_s: Seconds = 120.0
    """Longest pause within a provider's stream."""
    max_body_bytes: ByteCount = 32 * 1024 * 1024
    """Largest request that is sent to a provider."""
    max_answer_bytes: ByteCount = 8 * 1024 * 1024
    """Largest answer that is taken from a provider."""
    max_waiting_per_worker: Annotated[int, Field(ge=0, le=100_000)] = 256
    """Calls that may wait for a place at one worker; more are refused."""
    max_wait_s: Seconds = 10.0
    """Longest wait for a place at a worker."""
    max_provider_pause_s: Seconds = 60.0
    """Longest that a provider's Retry-After keeps all calls off its worker."""
    breaker_failures: Count = 5
    """Failures in a row after which a worker is paused."""
    breaker_pause_s: Seconds = 5.0
    """First pause of a failing worker; it doubles with each failed probe."""
    breaker_max_pause_s: Seconds = 60.0
    """Longest pause of a failing worker."""
    flush_interval_s: Annotated[float, Field(ge=0, le=1)] = 0.025
    """How long streamed output gathers before it is sent on. The first piece goes at once."""
    flush_chars: Count = 1_024
    """How much streamed output gathers before it is sent on."""
    allow_cli: bool = False
    """Let the command line's certificate make attempts."""
    drain_s: Seconds = 20.0
    """How long running attempts may take to end when the service stops."""

    @property
    def lane_limits(self) -> LaneLimits:
        """Bounds of the queue in front of each worker."""
        return LaneLimits(self.max_waiting_per_worker, self.max_wait_s, self.max_provider_pause_s)

    @property
    def breaker_limits(self) -> BreakerLimits:
        """When a failing worker is paused, and for how long."""
        return BreakerLimits(self.breaker_failures, self.breaker_pause_s, self.breaker_max_pause_s)

    @property
    def provider_limits(self) -> ProviderLimits:
        """Bounds of one provider call."""
        return ProviderLimits(max_answer_bytes=self.max_answer_bytes, max_event_bytes=self.max_answer_bytes)

    @property
    def call_timeouts(self) -> CallTimeouts:
        """How long a call may take where its worker says nothing."""
        return CallTimeouts(
            connect_s=self.connect_timeout_s,
            first_token_s=self.first_token_timeout_s,
            idle_s=self.idle_timeout_s,
        )

    @property
    def dispatch_limits(self) -> DispatchLimits:
        """Bounds of one attempt."""
        return DispatchLimits(self.permit_timeout_s, self.max_body_bytes)

    @property
    def batch_limits(self) -> BatchLimits:
        """When gathered output is sent on."""
        return BatchLimits(self.flush_interval_s, self.flush_chars)


def environment_variable(name: str) -> str | None:
    """Return a provider key's variable, as `pool.yaml` names it."""
    return os.environ.get(name)  # noqa: TID251 - settings
