"""The grammar and the parser agree: whatever the grammar generates is a plan within pool and caps."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_core.domain.plan import MAX_STEPS
from podium_core.domain.plan_format import parse_plan, render_plan
from podium_core.domain.plan_grammar import plan_grammar
from tests.fakes.gbnf import generate, rules_of


@given(
    worker_count=st.integers(1, 40),
    max_steps=st.integers(1, MAX_STEPS),
    round_index=st.integers(0, 2),
    reasoning=st.sampled_from([0, 1, 80]),
    subtask=st.sampled_from([0, 1, 400]),
    seed=st.integers(0, 2**32),
)
def test_every_generated_text_is_a_plan(
    worker_count: int, max_steps: int, round_index: int, reasoning: int, subtask: int, seed: int
) -> None:
    grammar = plan_grammar(
        worker_count,
        max_steps,
        round_index=round_index,
        max_subtask_chars=subtask,
        free_reasoning_chars=reasoning,
    )
    rules, random = rules_of(grammar), Random(seed)
    ids = [f"worker-{ordinal}" for ordinal in range(worker_count)]
    for _ in range(5):
        text = generate(rules, random)
        steps = parse_plan(text, ids, max_steps=max_steps, round_index=round_index)
        assert len(steps) <= max_steps
        assert steps or round_index > 0
        assert all(len(step.subtask) <= 2 * subtask for step in steps)


def test_every_shape_can_be_generated() -> None:
    rules = rules_of(plan_grammar(3, 3))
    texts = {generate(rules, Random(seed)) for seed in range(300)}
    steps = [parse_plan(text, ["a", "b", "c"], max_steps=3) for text in texts]
    assert {len(plan) for plan in steps} == {1, 2, 3}
    assert {plan[2].access.steps for plan in steps if len(plan) == 3} == {(), (0,), (1,), (0, 1)}
    assert {step.worker_id for plan in steps for step in plan} == {"a", "b", "c"}


def test_a_later_round_may_accept() -> None:
    accepting = render_plan([], [], [])
    assert f'"{accepting}"' in plan_grammar(2, 2, round_index=1).replace("\\n", "\n")
    assert "plan-0" not in plan_grammar(2, 2)


@pytest.mark.parametrize(("workers", "steps"), [(0, 1), (1, 0), (1, MAX_STEPS + 1)])
def test_a_grammar_without_plans_is_refused(workers: int, steps: int) -> None:
    with pytest.raises(ValueError, match="a plan needs"):
        plan_grammar(workers, steps)


def test_a_subtask_without_a_limit_is_repeated_freely() -> None:
    """A bounded repetition of hundreds costs xgrammar half a second for each token."""
    grammar = plan_grammar(2, 2, max_subtask_chars=None)
    assert 'subtask ::= "\\"" char* "\\""' in grammar
    assert "{0," not in grammar
