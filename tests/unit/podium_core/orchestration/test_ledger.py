"""What a run's caps leave: the worst case before a call, what was really used after it."""

import pytest

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.run import Caps
from podium_core.domain.usage import Price, Usage
from podium_core.orchestration.ledger import Ledger, Reservation

PRICE = Price(input_usd_micros_per_mtok=1_000_000, output_usd_micros_per_mtok=2_000_000)


def refusal(ledger: Ledger, price: Price | None = PRICE) -> str:
    with pytest.raises(PodiumError) as caught:
        ledger.reserve(10, 20, price)
    assert caught.value.code is Code.BUDGET_EXHAUSTED
    return caught.value.reason


def test_the_worst_case_is_held_until_the_call_is_over() -> None:
    ledger = Ledger(Caps(max_tokens=40, max_cost_usd_micros=60))
    assert ledger.reserve(10, 20, PRICE) == Reservation(30, 50, 20)
    assert refusal(ledger) == "CAP_MAX_TOKENS"


def test_tokens_that_a_call_did_not_use_are_free_again() -> None:
    ledger = Ledger(Caps(max_tokens=40))
    first = ledger.reserve(10, 20, PRICE)
    ledger.settle(first, Usage(input_tokens=3, output_tokens=2), 7)
    assert ledger.reserve(10, 50, PRICE).max_output_tokens == 40 - 5 - 10


def test_money_that_a_call_did_not_use_is_free_again() -> None:
    ledger = Ledger(Caps(max_cost_usd_micros=60))
    first = ledger.reserve(10, 20, PRICE)
    ledger.settle(first, Usage(), 7)
    assert ledger.reserve(10, 50, PRICE).max_output_tokens == (60 - 7 - 10) // 2


def test_a_call_that_used_more_than_was_foreseen_counts_in_full() -> None:
    ledger = Ledger(Caps(max_tokens=40, max_cost_usd_micros=1_000))
    ledger.settle(ledger.reserve(10, 20, PRICE), Usage(input_tokens=25, output_tokens=15), 999)
    assert refusal(ledger) == "CAP_MAX_TOKENS"


def test_the_conductors_tokens_count_too() -> None:
    ledger = Ledger(Caps(max_tokens=40))
    ledger.spend_tokens(Usage(input_tokens=20, output_tokens=5))
    assert ledger.reserve(10, 20, PRICE).max_output_tokens == 5


def test_a_finished_call_stays_counted() -> None:
    ledger = Ledger(Caps(max_calls=1))
    ledger.settle(ledger.reserve(10, 20, PRICE), Usage(), 0)
    assert refusal(ledger) == "CAP_MAX_CALLS"


def test_a_refused_reservation_takes_nothing() -> None:
    ledger = Ledger(Caps(max_calls=1, max_tokens=40))
    with pytest.raises(PodiumError):
        ledger.reserve(100, 20, PRICE)
    assert ledger.reserve(10, 20, PRICE).max_output_tokens == 20


def test_under_a_money_cap_every_worker_needs_a_price() -> None:
    assert refusal(Ledger(Caps(max_cost_usd_micros=60)), price=None) == "CAP_MAX_USD"


def test_without_caps_nothing_shrinks() -> None:
    assert Ledger(Caps()).reserve(10, 20, None) == Reservation(30, 0, 20)
