"""What a tenant is told of its budget: nothing until it matters, and nothing of last month."""

from podium_gateway.budgets import Budget, Budgets
from tests.fakes.ids import FakeClock


def test_a_warning_is_told_until_the_month_is_over() -> None:
    clock = FakeClock(wall_ns=1_796_000_000 * 10**9)  # 2026-11-30
    budgets = Budgets(clock)
    assert (budgets.headers("acme", "k1"), budgets.shown("acme", "k1")) == ({}, None)
    budgets.heard("acme", "", Budget("2026-11", 1_000, 700, 100, 0))
    assert (budgets.headers("acme", "k1"), budgets.shown("acme", "k1")) == ({}, None)
    budgets.heard("acme", "", Budget("2026-11", 1_000, 850, 100, 80))
    assert budgets.headers("acme", "k1") == {"x-podium-budget-warning": "80%"}
    assert budgets.shown("acme", "k1") == {
        "scope": "tenant",
        "month": "2026-11",
        "warning_percent": 80,
        "limit_usd_micros": 1_000,
        "spent_usd_micros": 850,
        "left_usd_micros": 50,
    }
    assert budgets.headers("other", "k1") == {}
    clock.advance(2 * 86_400)
    assert (budgets.headers("acme", "k1"), budgets.shown("acme", "k1")) == ({}, None)


def test_a_key_hears_of_its_own_budget_or_its_tenants_whichever_is_used_further() -> None:
    budgets = Budgets(FakeClock(wall_ns=1_796_000_000 * 10**9))
    budgets.heard("acme", "k1", Budget("2026-11", 100, 55, 0, 50))
    budgets.heard("acme", "", Budget("2026-11", 1_000, 850, 100, 80))
    told = {key: budgets.shown("acme", key) for key in ("k1", "k2")}
    assert [shown and (shown["scope"], shown["warning_percent"]) for shown in told.values()] == [
        ("tenant", 80)
    ] * 2
    budgets.heard("acme", "k1", Budget("2026-11", 100, 95, 0, 90))
    mine = budgets.shown("acme", "k1")
    assert mine is not None
    assert (mine["scope"], mine["left_usd_micros"]) == ("key", 5)
    assert budgets.headers("acme", "k1") == {"x-podium-budget-warning": "90%"}
    assert budgets.headers("acme", "k2") == {"x-podium-budget-warning": "80%"}
    assert budgets.headers("other", "k1") == {}
