"""What a tenant is told of its budget: nothing until it matters, and nothing of last month."""

from podium_gateway.budgets import Budget, Budgets
from tests.fakes.ids import FakeClock


def test_a_warning_is_told_until_the_month_is_over() -> None:
    clock = FakeClock(wall_ns=1_796_000_000 * 10**9)  # 2026-11-30
    budgets = Budgets(clock)
    assert (budgets.headers("acme"), budgets.shown("acme")) == ({}, None)
    budgets.heard("acme", Budget("2026-11", 1_000, 700, 100, 0))
    assert (budgets.headers("acme"), budgets.shown("acme")) == ({}, None)
    budgets.heard("acme", Budget("2026-11", 1_000, 850, 100, 80))
    assert budgets.headers("acme") == {"x-podium-budget-warning": "80%"}
    assert budgets.shown("acme") == {
        "month": "2026-11",
        "warning_percent": 80,
        "limit_usd_micros": 1_000,
        "spent_usd_micros": 850,
        "left_usd_micros": 50,
    }
    assert budgets.headers("other") == {}
    clock.advance(2 * 86_400)
    assert (budgets.headers("acme"), budgets.shown("acme")) == ({}, None)
