"""What a plan can cost, said before anything is spent."""

from podium_core.orchestration.ports import PlanReply
from podium_gateway.dry_run import CostRange, cost_range
from tests.fakes.planner import plan_of
from tests.fakes.pools import pool, question, worker


def test_the_range_spans_one_token_to_the_output_limits() -> None:
    # Input costs 1 micro-dollar a token, output 2; both workers stop at 100 tokens.
    reply = PlanReply(plan_of(("alpha", "", ()), ("beta", "", (0,))))
    asked = question("x" * 84)
    cost = cost_range(reply, asked, pool(worker("alpha"), worker("beta")), 50, 10)
    assert cost == CostRange(2 * (25 + 2), (100 + 2 * 50) + (100 + 50 + 2 * 10))


def test_an_unknown_price_has_no_range() -> None:
    reply = PlanReply(plan_of(("alpha", "", ())))
    cost = cost_range(reply, question(), pool(worker("alpha", price=None)), 50, 10)
    assert cost == CostRange(None, None)
