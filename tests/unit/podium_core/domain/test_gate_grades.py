"""How grades move the gate's table: by a bounded, weighed step, and only where something was measured."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_core.domain.gate import MAX_MOVE_PPM, MIN_GRADES, GateRow, GateTable, GradeTally
from podium_core.domain.plan import Plan, PlanSource, Step

PPM = 1_000_000
TWO_STEPS = Plan((Step("a", "x"), Step("b", "y")), PlanSource.EMBEDDED)


def _table(low_ppm: int, n: int = 100) -> GateTable:
    return GateTable((GateRow("podium", 2, low_ppm, n, "2026-11-30"),), "digest")


def _tally(steps: int, count: int, right: int) -> GradeTally:
    return GradeTally("podium", steps, count, right * PPM, right * PPM)


def _keeps(table: GateTable, *tallies: GradeTally) -> bool:
    decision = table.with_grades(tallies).decide(TWO_STEPS, "podium")
    assert decision is not None
    return decision.keeps


def test_many_bad_grades_close_a_row_and_many_good_ones_open_one_nearby() -> None:
    good, bad = _tally(2, 400, 380), _tally(2, 400, 100)
    alone = _tally(1, 400, 240)
    assert _keeps(_table(20_000))
    assert not _keeps(_table(20_000), bad, alone)
    assert not _keeps(_table(-20_000))
    assert _keeps(_table(-20_000), good, alone)
    assert not _keeps(_table(-60_000), good, alone), "no grades move a row by more than five points"


@pytest.mark.parametrize(
    "tallies",
    [
        (),
        (_tally(2, 400, 0),),
        (_tally(1, 400, 400),),
        (_tally(2, MIN_GRADES - 1, 0), _tally(1, 400, 400)),
        (_tally(3, 400, 0), _tally(1, 400, 400)),
    ],
)
def test_too_few_grades_or_those_of_other_plans_move_nothing(tallies: tuple[GradeTally, ...]) -> None:
    assert _table(10_000).with_grades(tallies) == _table(10_000)


def test_grades_never_make_up_for_a_missing_measurement() -> None:
    assert not _keeps(GateTable(), _tally(2, 10_000, 10_000), _tally(1, 10_000, 0))


def test_the_decision_tells_what_moved_it() -> None:
    moved = _table(20_000).with_grades((_tally(2, 400, 100), _tally(1, 300, 240)))
    decision = moved.decide(TWO_STEPS, "podium")
    assert decision is not None
    assert decision.facts["difference_low_ppm"] == "20000"
    assert decision.facts["grade_move_ppm"] == str(-MAX_MOVE_PPM)
    assert decision.facts["grade_count"] == "300"


@given(
    low=st.integers(-PPM, PPM),
    n=st.integers(1, 10_000),
    plans=st.tuples(st.integers(1, 5_000), st.floats(0, 1)),
    alone=st.tuples(st.integers(1, 5_000), st.floats(0, 1)),
)
def test_no_grades_whatever_move_a_row_beyond_its_bound(
    low: int, n: int, plans: tuple[int, float], alone: tuple[int, float]
) -> None:
    tallies = [_tally(s, c, int(c * share)) for s, (c, share) in ((2, plans), (1, alone))]
    (row,) = _table(low, n).with_grades(tallies).rows
    assert abs(row.grade_move_ppm) <= MAX_MOVE_PPM
    assert row.difference_low_ppm == low
