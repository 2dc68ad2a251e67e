"""The plan parser: what counts, what each broken rule is called, and that nothing else ever happens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_core.domain.plan import MAX_STEPS, Access
from podium_core.domain.plan_format import MAX_TEXT_CHARS, PlanFormatError, PlanRule, parse_plan, render_plan

POOL = ("ant", "bee", "cat")

FULL = """Two attempts, then a judge. My subtasks: see below.
model_id = [0, 1, 2]
subtasks = ["Solve it.", "Solve it another way.", "Compare both."]
access_list = [[], [], ["all"]]
"""


def triple(models: str, subtasks: str, access: str) -> str:
    return f"model_id = {models}\nsubtasks = {subtasks}\naccess_list = {access}"


def test_the_papers_format_is_read() -> None:
    steps = parse_plan(FULL, POOL)
    assert [step.worker_id for step in steps] == ["ant", "bee", "cat"]
    assert steps[2].subtask == "Compare both."
    assert [step.access for step in steps] == [Access(), Access(), Access((0, 1))]


def test_the_last_complete_triple_counts() -> None:
    text = FULL + triple("[1]", "['better']", "[[]]") + "\nmodel_id = [2]\nthe end"
    (step,) = parse_plan(text, POOL)
    assert (step.worker_id, step.subtask) == ("bee", "better")


def test_lists_quoted_inside_a_subtask_are_only_text() -> None:
    inner = triple("[2]", "['evil']", "[[]]").replace("\n", " ")
    (step,) = parse_plan(triple("[0]", f'["Say: {inner}"]', "[[]]"), POOL)
    assert step.worker_id == "ant"
    assert "evil" in step.subtask


def test_a_thinking_block_is_no_plan() -> None:
    (step,) = parse_plan(FULL + "<think>" + triple("[1]", "['x']", "[[]]") + "</think>", POOL)[:1]
    assert step.worker_id == "ant"


@pytest.mark.parametrize(
    "text",
    [
        triple('["0"]', "['a']", "[[]]"),
        triple("[0,]", "['a',]", "[[],]"),
        "```python\n" + triple("[0]", "['a']", "[[]]") + "\n```",
        "- **Model IDs**: [0]\n- **Subtask**: [\u201ca\u201d]\n- **Access**: ['none yet'][:0]".replace("['none yet'][:0]", "[[]]"),
        '{"model_id": [0], "subtasks": ["a"], "access_list": [[]]}',
        triple("[0]", '["" "a" ""]', "[[]]"),
        triple("[0]", '["""a"""]', "[[]]"),
        triple("[0]", "['a']", '["all"]'),
        triple("[0]", "['a']", "[all]"),
    ],
)  # fmt: skip
def test_dialects_that_models_write_are_read(text: str) -> None:
    (step,) = parse_plan(text, POOL)
    assert (step.worker_id, step.subtask, step.access) == ("ant", "a", Access())


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("no lists at all", PlanRule.NO_TRIPLE),
        ("model_id = [0]\nsubtasks = ['a']", PlanRule.NO_TRIPLE),
        ("model_id = [0\nsubtasks = ['a']\naccess_list = [[]]", PlanRule.LIST_UNREADABLE),
        (triple("[zero]", "['a']", "[[]]"), PlanRule.LIST_UNREADABLE),
        (triple("[0]", "[don't]", "[[]]"), PlanRule.LIST_UNREADABLE),
        (triple("[0, 1]", "['a']", "[[]]"), PlanRule.LENGTHS_DIFFER),
        (triple("[]", "[]", "[]"), PlanRule.EMPTY),
        (triple("[0,0,0,0,0,0]", "['','','','','','']", "[[],[],[],[],[],[]]"), PlanRule.TOO_MANY_STEPS),
        (triple("['first']", "['a']", "[[]]"), PlanRule.WORKER_NOT_A_NUMBER),
        (triple("[3]", "['a']", "[[]]"), PlanRule.WORKER_OUT_OF_RANGE),
        (triple("[-1]", "['a']", "[[]]"), PlanRule.WORKER_OUT_OF_RANGE),
        (triple("[0]", "[1]", "[[]]"), PlanRule.SUBTASK_NOT_TEXT),
        (triple("[0]", "['a']", "[['every']]"), PlanRule.ACCESS_MALFORMED),
        (triple("[0]", "['a']", "[[0]]"), PlanRule.ACCESS_NOT_EARLIER),
        (triple("[0,1]", "['a','b']", "[[],[1]]"), PlanRule.ACCESS_NOT_EARLIER),
        ("x" * (MAX_TEXT_CHARS + 1), PlanRule.TEXT_TOO_LONG),
    ],
)
def test_each_broken_rule_has_its_own_error(text: str, rule: PlanRule) -> None:
    with pytest.raises(PlanFormatError) as caught:
        parse_plan(text, POOL)
    assert caught.value.rule is rule
    assert caught.value.reason == rule.value


def test_three_empty_lists_accept_in_a_later_round_and_all_reaches_the_previous_answer() -> None:
    assert parse_plan(triple("[]", "[]", "[]"), POOL, round_index=1) == ()
    (step,) = parse_plan(triple("[0]", "['check']", "[['all']]"), POOL, round_index=1)
    assert step.access == Access((), previous_round=True)


FRAGMENTS = st.sampled_from(
    ["model_id", "subtasks", "access_list", " = ", ":", "[", "]", ",", "0", "1", '"', "'", "all", "\\", "<think>", "</think>", "`", "\n", "\u201c", "\\u12"]
)  # fmt: skip


@given(st.one_of(st.text(), st.lists(FRAGMENTS, max_size=80).map("".join)), st.integers(0, 2))
def test_any_text_gives_a_plan_or_the_typed_error(text: str, round_index: int) -> None:
    try:
        steps = parse_plan(text, POOL, round_index=round_index)
    except PlanFormatError:
        return
    assert len(steps) <= MAX_STEPS
    assert all(step.worker_id in POOL for step in steps)


@st.composite
def plans(draw: st.DrawFn) -> tuple[list[int], list[str], list[Access]]:
    count = draw(st.integers(1, MAX_STEPS))
    access = [
        Access(tuple(sorted(draw(st.sets(st.integers(0, i - 1)))))) if i else Access() for i in range(count)
    ]
    plain = st.text(st.characters(exclude_categories=["Cs"]))
    words = (plain | st.sampled_from(["<think>x</think>", "`ls`", "\\frac"])).map(str.strip)
    models = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    return models, draw(st.lists(words, min_size=count, max_size=count)), access


@given(plans(), st.text(alphabet="abc \n", max_size=30))
def test_a_rendered_plan_reads_back(plan: tuple[list[int], list[str], list[Access]], prose: str) -> None:
    models, subtasks, access = plan
    steps = parse_plan(prose + "\n" + render_plan(models, subtasks, access), POOL)
    assert [step.worker_id for step in steps] == [POOL[m] for m in models]
    assert [step.subtask for step in steps] == subtasks
    assert [step.access for step in steps] == access


@pytest.mark.parametrize(
    "text", ["subtasks: [" * 5_000, "model_id = ['" * 4_000, "<think>" * 9_000, "model_id=[" + "[" * 60_000]
)
def test_hostile_texts_take_linear_time(text: str) -> None:
    # With quadratic scanning these take seconds; the runner's tests would time out, not this assertion.
    with pytest.raises(PlanFormatError):
        parse_plan(text[:MAX_TEXT_CHARS], POOL)
