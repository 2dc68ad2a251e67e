"""Limits of request, tenant and server: the tightest holds."""

import pytest

from podium_core.domain.errors import PodiumError
from podium_core.domain.run import Caps
from podium_gateway.caps import MaxTier, effective_caps
from podium_gateway.codecs.openai_podium import Wishes

SERVER = Caps(max_calls=32, max_rounds=2)


def test_without_wishes_tenant_and_server_decide() -> None:
    assert effective_caps(Wishes(), Caps(max_cost_usd_micros=5, max_rounds=2), SERVER) == Caps(
        max_calls=32, max_cost_usd_micros=5, max_rounds=2
    )


def test_the_tightest_holds_for_every_limit() -> None:
    wishes = Wishes(
        max_steps=3, max_calls=50, max_tokens=10, max_cost_usd_micros=0, max_duration_s=9.0, rounds=1
    )
    tenant = Caps(max_steps=4, max_tokens=20, max_cost_usd_micros=7, max_duration_s=1.5, max_rounds=2)
    assert effective_caps(wishes, tenant, SERVER) == Caps(3, 32, 10, 0, 1.5, 1, 3)


def test_more_rounds_than_given_are_refused() -> None:
    with pytest.raises(PodiumError, match=r"podium.rounds: may be at most 1 here, not 2"):
        effective_caps(Wishes(rounds=2), Caps(max_rounds=1), SERVER)


@pytest.mark.parametrize(
    ("tier", "max_tier", "rule"),
    [
        ("podium", MaxTier(3, 4, 60.0), (2, 5.0)),
        ("podium-max", MaxTier(3, 4, 60.0), (4, 60.0)),
        ("podium-max", MaxTier(3), (2, 5.0)),
        ("podium-max", MaxTier(3, quorum=4), (4, 5.0)),
        ("plan/mine", MaxTier(3, 4, 60.0), (2, 5.0)),
    ],
)
def test_podium_max_may_wait_longer_for_more_of_its_steps(
    tier: str, max_tier: MaxTier, rule: tuple[int, float]
) -> None:
    server = Caps(quorum=2, straggler_wait_s=5.0)
    caps = effective_caps(Wishes(), Caps(), server, tier, max_tier)
    assert (caps.quorum, caps.straggler_wait_s) == rule
