"""What a worker is told of a request, and what is shown of the difference."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_core.domain.effort import EFFORTS, nearest_effort
from podium_core.domain.pool import Card
from podium_core.orchestration.adaptation import Change, adapt

ALL = {
    "temperature": 0.5,
    "reasoning_effort": "xhigh",
    "prompt_cache_key": "k",
    "user": "u",
    "stop": ["x"],
    "tools": [{}],
}
THINKER = Card(reasoning_efforts=("low", "medium", "high"), features=frozenset({"prompt_cache_key"}))


def test_the_answering_step_is_told_everything_in_the_workers_words() -> None:
    told = adapt(ALL, THINKER, is_answer=True)
    assert told.parameters == {**ALL, "reasoning_effort": "high"}
    assert told.changes == {"reasoning_effort": Change("xhigh", "high")}


def test_a_hint_that_a_worker_does_not_take_is_not_sent_and_that_is_said() -> None:
    told = adapt(ALL, Card(), is_answer=True)
    assert "prompt_cache_key" not in told.parameters
    assert "reasoning_effort" not in told.parameters
    assert told.changes == {
        "reasoning_effort": Change("xhigh", None),
        "prompt_cache_key": Change("k", None),
    }


def test_other_steps_get_nothing_that_shapes_an_answer() -> None:
    told = adapt(ALL, THINKER, is_answer=False)
    assert set(told.parameters) == {"temperature", "reasoning_effort", "prompt_cache_key", "user"}


@pytest.mark.parametrize(
    ("asked", "taken", "told"),
    [
        ("none", ("minimal", "low"), "minimal"),
        ("max", ("low", "high"), "high"),
        ("medium", ("low", "high"), "low"),
        ("xhigh", ("high", "max"), "high"),
        ("low", (), None),
    ],
)
def test_the_nearest_effort_is_told(asked: str, taken: tuple[str, ...], told: str | None) -> None:
    assert nearest_effort(asked, taken) == told


@given(st.sampled_from(EFFORTS), st.sets(st.sampled_from(EFFORTS), min_size=1))
def test_every_effort_becomes_one_that_is_taken(asked: str, taken: set[str]) -> None:
    told = nearest_effort(asked, taken)
    assert told in taken
    assert asked not in taken or told == asked
