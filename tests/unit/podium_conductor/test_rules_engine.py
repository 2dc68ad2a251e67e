"""The rules engine: valid plans for any text, read back from the text it wrote."""

import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium_conductor.engines.rules.workflow import JOIN
from podium_core.domain.plan import Plan, PlanSource, Step
from podium_core.domain.plan_format import parse_plan
from podium_core.domain.pool import Worker
from tests.fakes.pools import worker

from .planned import ENGINE, WORKERS, at_once, plan, query, shape


def test_a_chain_of_three_specialists() -> None:
    asked = "Multiply 17 by 23, write the result as a Roman numeral, and reverse the letters."
    assert shape(asked) == [
        ("arithmetic", "Multiply 17 by 23.", ()),
        ("numerals", "Write the result as a Roman numeral.", (0,)),
        ("text", "Using the earlier result: reverse the letters.", (1,)),
    ]


def test_independent_parts_run_side_by_side() -> None:
    asked = "What is 12*12, and how many days are there from 2026-01-01 to 2026-03-01? Then add both results."
    assert shape(asked) == [
        ("arithmetic", "What is 12*12?", ()),
        ("dates", "How many days are there from 2026-01-01 to 2026-03-01?", ()),
        ("arithmetic", "Add both results.", (0, 1)),
    ]


def test_one_part_is_one_step_that_passes_the_question_through() -> None:
    assert shape("Write 2026 in Roman numerals.") == [("numerals", "", ())]


def test_results_that_stand_side_by_side_are_joined() -> None:
    steps = shape("What is 7*6? How many letters are in banana?")
    assert steps[-1] == ("text", JOIN, (0, 1))


def test_remarks_make_no_step() -> None:
    assert shape("Hello there! How many inches are in 3 feet? Thanks a lot.") == [
        ("dates", "How many inches are in 3 feet?", ())
    ]


def test_what_no_card_shows_goes_to_the_best_mean_card() -> None:
    for asked in ("Who wrote Hamlet?", "", "\N{CJK UNIFIED IDEOGRAPH-4E2D}" * 40, "x" * 9_000):
        assert shape(asked) == [("dates", "", ())]


@pytest.mark.parametrize("max_steps", [1, 2, 3, 4, 5])
def test_caps_are_kept(max_steps: int) -> None:
    asked = (
        "Add 2 and 3, double it, write it in binary, and reverse the digits. What is 5*5? Uppercase 'abc'."
    )
    steps = shape(asked, max_steps)
    assert 1 <= len(steps) <= max_steps
    if max_steps == 1:
        assert steps == [("text", "", ())], "the whole question passes through"
    if max_steps == 4:
        assert steps[0] == ("arithmetic", "Add 2 and 3. Then double it.", ())
        assert steps[-1][2] == (0, 1, 2), "the last step sees everything that it must put together"


def test_the_best_card_for_the_skill_is_chosen_not_a_name() -> None:
    workers = (
        worker("alpha", skills={"text": 400_000, "math": 990_000}),
        worker("beta", skills={"text": 900_000, "math": 100_000}),
        worker("gamma"),
    )
    reply = plan("Multiply 17 by 23, then reverse it.", workers)
    assert [s.worker_id for s in reply.plan.steps] == ["alpha", "beta"]


def test_a_skill_at_zero_is_no_skill() -> None:
    workers = (worker("alpha", skills={"numerals": 0}), worker("beta", skills={"poetry": 500_000}))
    reply = plan("Write 12 in binary.", workers)
    assert [s.worker_id for s in reply.plan.steps] == ["beta"]


def test_a_later_round_accepts() -> None:
    first = Plan((Step("demo-text", ""),), PlanSource.RULES)
    later = replace(query("anything"), round=1, previous_plan=first, previous_answer="42")
    reply = at_once(ENGINE.plan(later, 0))
    assert (reply.plan.steps, reply.plan.round, reply.plan.source) == ((), 1, PlanSource.RULES)
    assert reply.raw_text.endswith("model_id = []\nsubtasks = []\naccess_list = []")


def test_the_seed_shuffles_ordinals_and_replays() -> None:
    asked = "Multiply 17 by 23, then reverse it."
    texts = {seed: (plan(asked, seed=seed)).raw_text for seed in range(30)}
    assert len(set(texts.values())) > 3
    replays = [(plan(asked, tuple(reversed(WORKERS)), seed=seed)).raw_text for seed in range(30)]
    assert replays == list(texts.values()), "the order of the cards carries no meaning"
    plans = {(plan(asked, seed=seed)).plan for seed in range(30)}
    assert len(plans) == 1


def test_it_describes_itself_by_its_sources() -> None:
    described = ENGINE.describe()
    assert (described.engine, described.source) == ("rules", PlanSource.RULES)
    assert len(described.model_digest) == 64
    assert plan("What is 2+2?").model_digest == described.model_digest


@pytest.mark.parametrize(
    "text",
    [
        "add " * 2_000,
        "count " * 1_330,
        ", then " * 1_140,
        "'" * 8_000,
        "1-" * 4_000,
        "and add 2 " * 39 + "days " * 1_500,
    ],
)
def test_hostile_questions_are_planned_quickly(text: str) -> None:
    started = time.thread_time()
    assert plan(text).plan.steps
    assert time.thread_time() - started < 1.0


_PIECES = st.sampled_from(
    [
        "multiply 3 by 4",
        "write it in binary",
        "reverse the letters",
        "what is 2+2",
        "how many days are in May 2026",
        "and",
        "then",
        ", ",
        ". ",
        "\n? ",
        "; ",
        "add both results",
        "the result",
        '"quoted, then reverse it"',
        "`ticks`",
        "<think>",
        "</think>",
        "model_id = [0]",
        'subtasks = ["x"]\n',
        'access_list = [["all"]]',
        "\\",
        "\\u0041",
        "'",
        '"',
        "“",
        "\n",
        "who wrote Hamlet",
        "join them",
        "[",
        "]",
        "\x00",
        "😀",
        "First,",
    ]
)
_TEXTS = st.one_of(st.text(max_size=400), st.lists(_PIECES, max_size=60).map(" ".join))


@st.composite
def _pools(draw: st.DrawFn) -> tuple[Worker, ...]:
    names = draw(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6, unique=True))
    skill = st.sampled_from(["arithmetic", "text", "dates", "units", "numerals", "math", "poetry"])
    cards = st.dictionaries(skill, st.integers(0, 1_000_000), max_size=4)
    return tuple(worker(name, skills=draw(cards)) for name in names)


@settings(max_examples=300)
@given(_TEXTS, _pools(), st.integers(1, 5), st.integers(0, 2**63 - 1))
def test_any_text_gets_a_valid_plan_within_the_caps(
    text: str, workers: tuple[Worker, ...], max_steps: int, seed: int
) -> None:
    reply = plan(text, workers, max_steps=max_steps, seed=seed)
    steps = reply.plan.steps
    assert 1 <= len(steps) <= max_steps
    assert reply.plan.source is PlanSource.RULES
    assert {step.worker_id for step in steps} <= {w.worker_id for w in workers}
    seen = {index for step in steps for index in step.access.steps}
    assert seen == set(range(len(steps) - 1)), "no step works for nothing"
    assert len(steps) == 1 or all(step.subtask for step in steps)
    ordinals = sorted(w.worker_id for w in workers)
    parse_plan(reply.raw_text, ordinals, max_steps=max_steps)


@given(_TEXTS)
def test_the_users_words_survive_the_plan_text(text: str) -> None:
    quoted = text.replace('"', "").replace("\x00", "")
    steps = shape(f'Reverse "{quoted}", then count the letters.')
    if len(steps) == 2:
        assert steps[0][1] == f'Reverse "{quoted}".'
