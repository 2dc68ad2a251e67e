"""The limits that hold for one run: of request, tenant and server, always the tightest."""

from dataclasses import dataclass
from typing import TypeVar

from podium_core.domain.plan import MAX_STEPS
from podium_core.domain.plan_prompt import FAST_TIER, MAX_TIER, TIER
from podium_core.domain.run import Caps
from podium_gateway.codecs.fields import refuse
from podium_gateway.codecs.openai_podium import Wishes

T = TypeVar("T", int, float)


@dataclass(frozen=True, slots=True)
class MaxTier:
    """What `podium-max` has of its own: rounds, and when a step goes on; None: as in every tier."""

    rounds: int = 1
    quorum: int | None = None
    straggler_wait_s: float | None = None


_AS_ALL = MaxTier()


def effective_caps(
    wishes: Wishes, tenant: Caps, server: Caps, tier: str = TIER, max_tier: MaxTier = _AS_ALL
) -> Caps:
    """Return the caps of a run; raise PodiumError (INVALID_REQUEST) when more rounds are asked than given.

    `podium-fast` has one step, `podium-max` what `max_tier` says; what the Conductor does not plan has one
    round. Every other wish above a limit is cut to the limit, and the answer says what held.
    """
    max_rounds = min(tenant.max_rounds, _tier_rounds(server, tier, max_tier.rounds))
    if wishes.rounds is not None and wishes.rounds > max_rounds:
        raise refuse("podium.rounds", f"may be at most {max_rounds} here, not {wishes.rounds}")
    own = max_tier if tier == MAX_TIER else _AS_ALL
    return Caps(
        max_steps=1
        if tier == FAST_TIER
        else min(wishes.max_steps or MAX_STEPS, tenant.max_steps, server.max_steps),
        max_calls=_least(wishes.max_calls, tenant.max_calls, server.max_calls),
        max_tokens=_least(wishes.max_tokens, tenant.max_tokens, server.max_tokens),
        max_cost_usd_micros=_least(
            wishes.max_cost_usd_micros, tenant.max_cost_usd_micros, server.max_cost_usd_micros
        ),
        max_duration_s=_least(wishes.max_duration_s, tenant.max_duration_s, server.max_duration_s),
        max_rounds=wishes.rounds or max_rounds,
        max_attempts_per_step=min(tenant.max_attempts_per_step, server.max_attempts_per_step),
        quorum=own.quorum or server.quorum,
        straggler_wait_s=own.straggler_wait_s or server.straggler_wait_s,
    )


def _tier_rounds(server: Caps, tier: str, tier_rounds: int) -> int:
    if tier not in (TIER, MAX_TIER):
        return 1  # one worker, or a plan that an operator wrote: there is nobody to revise it
    return max(server.max_rounds, tier_rounds) if tier == MAX_TIER else server.max_rounds


def _least(*limits: T | None) -> T | None:
    return min((limit for limit in limits if limit is not None), default=None)
