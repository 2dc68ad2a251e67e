"""Plans over recorded answers: what is exact, what is assumed, and that the runner and the direct path agree."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium_core.domain.errors import PodiumError
from podium_core.domain.plan import Access, Step
from podium_core.domain.plan_format import render_plan
from podium_core.domain.plan_prompt import build_prompt
from podium_core.domain.run import Caps
from podium_core.domain.usage import UsageSource
from podium_train.environments.assumptions import SimulatedEffects
from podium_train.environments.performing import Performer, Rounds, question_of
from podium_train.environments.port import Outcome, Task, Verdict
from podium_train.environments.replay import NOT_RECORDED, ReplayEnvironment
from podium_train.environments.roles import EXAMPLES, Role
from podium_train.outcomes.items import RecordedItem
from tests.fakes.ids import CountingIds, FakeClock
from tests.unit.train.recorded import MODELS, item, maker, recorded

SURE = SimulatedEffects(1, 0, 0, 0, refine_lift=1, plan_lift=1)
"""Verifiers never err, corrections and plans always help."""

R, W, V = (1.0, "right", 40), (0.0, "wrong", 80), (0.0, "other", 120)
SILENT, SPEECHLESS = (0.0, None, 40), (0.0, None, 0)


def task_of(one: RecordedItem, seed: int = 1, models: tuple[str, ...] = MODELS) -> Task:
    return maker(recorded(one)).task(one, [m for m in models if m in one.answers], seed)


def step(worker: str, role: Role | None = None, *seen: int, previous: bool = False) -> Step:
    return Step(worker, EXAMPLES[role] if role else "", Access(seen, previous))


def played(one: RecordedItem, *steps: Step, effects: SimulatedEffects = SURE, rollout: int = 0) -> Outcome:
    return ReplayEnvironment(recorded(one), effects=effects).score_plan(steps, task_of(one), rollout)


MIXED = item(1, {"a/one": [R], "b/two": [W], "c/three": [V], "d/four": [W]})


def test_a_single_step_is_its_workers_recorded_answer() -> None:
    outcome = played(MIXED, step("one"))
    assert (outcome.verdict, outcome.reward, outcome.is_right, outcome.is_exact) == (
        Verdict.SCORED,
        1.0,
        True,
        True,
    )
    (done,) = outcome.steps
    assert (done.worker_id, done.answer, done.role) == ("one", "right", "solve")
    assert done.usage.output_tokens == 10
    assert done.usage.input_tokens == -(-len(MIXED.question) // 4)
    assert done.usage.source is UsageSource.ESTIMATED
    assert done.cost_usd_micros > 0 < done.latency_us
    assert played(MIXED, step("two")).reward == 0.5


def test_samples_differ_between_rollouts_and_repeat_within_one() -> None:
    one = item(2, {"a/one": [R, W, V]})
    said = [played(one, step("one"), rollout=number).steps[0].answer for number in range(200)]
    assert said == [played(one, step("one"), rollout=number).steps[0].answer for number in range(200)]
    assert {said.count(answer) > 40 for answer in ("right", "wrong", "other")} == {True}


def test_an_aggregate_is_the_vote_of_what_it_sees() -> None:
    two_right = item(3, {"a/one": [R], "b/two": [W], "c/three": [(1.0, " RIGHT", 40)], "d/four": [V]})
    chain = (step("one"), step("two"), step("three"), step("four", Role.AGGREGATE, 0, 1, 2))
    outcome = played(two_right, *chain)
    assert (outcome.is_right, outcome.is_exact, outcome.steps[3].answer) == (True, True, "right")
    assert outcome.steps[3].usage.output_tokens == 30  # its own recorded length
    unseen = (*chain[:3], step("four", Role.AGGREGATE, 1))
    assert played(two_right, *unseen).steps[3].answer == "wrong"


def test_on_a_tie_or_without_votes_the_aggregators_own_answer_counts() -> None:
    chain = (step("one"), step("two"), step("three", Role.AGGREGATE, 0, 1))
    assert played(MIXED, *chain).steps[2].answer == "other"
    nobody = item(4, {"a/one": [SILENT], "b/two": [SILENT], "c/three": [R]})
    outcome = played(nobody, *chain)
    assert (outcome.steps[2].answer, outcome.is_exact) == ("right", True)


@pytest.mark.parametrize(
    "steps",
    [
        (step("two"), step("one", None, 0)),
        (step("two"), step("one", Role.VERIFY, 0)),
        (step("two"), step("one", Role.REFINE, 0)),
        (step("two", Role.PLAN), step("one", None, 0)),
        (step("two"), step("one", Role.VERIFY, 0), step("three"), step("one", Role.AGGREGATE, 1, 2)),
    ],
    ids=["solve after reading", "verify", "refine", "plan", "vote on a checked answer"],
)
def test_effects_that_nobody_recorded_are_marked(steps: tuple[Step, ...]) -> None:
    assert not played(MIXED, *steps).is_exact


def test_a_sure_verifier_replaces_a_wrong_answer_by_its_own_and_keeps_a_right_one() -> None:
    assert played(MIXED, step("two"), step("one", Role.VERIFY, 0)).steps[1].answer == "right"
    assert played(MIXED, step("one"), step("two", Role.VERIFY, 0)).steps[1].answer == "right"


def test_a_refiner_follows_the_flag_it_sees() -> None:
    flagged = (step("two"), step("three", Role.VERIFY, 0), step("four", Role.REFINE, 0, 1))
    assert played(MIXED, *flagged).is_right
    unlucky = SimulatedEffects(1, 0, 0, 0, refine_lift=0, plan_lift=0)
    assert not played(MIXED, *flagged, effects=unlucky).is_right
    never = SimulatedEffects(0, 0, 0, 0)
    kept = (step("one"), step("three", Role.VERIFY, 0), step("four", Role.REFINE, 0, 1))
    assert played(MIXED, *kept, effects=never).is_right


def test_no_lift_invents_an_answer_that_no_model_ever_gave() -> None:
    hopeless = item(5, {"a/one": [W], "b/two": [V]})
    outcome = played(hopeless, step("one", Role.PLAN), step("two", None, 0))
    assert (outcome.is_right, outcome.steps[1].answer) == (False, "other")
    assert played(MIXED, step("one", Role.PLAN), step("two", None, 0)).is_right


def test_rates_of_a_verifier_are_met() -> None:
    half = SimulatedEffects(0.5, 0, 0, 0)
    one = step("two"), step("one", Role.VERIFY, 0)
    kept = sum(not played(MIXED, *one, effects=half, rollout=number).is_right for number in range(400))
    assert 150 < kept < 250


def test_an_empty_last_reply_is_walked_back_from() -> None:
    mute = item(6, {"a/one": [R], "b/two": [SPEECHLESS]})
    assert played(mute, step("one"), step("two")).is_right
    spoke = item(6, {"a/one": [R], "b/two": [SILENT]})
    assert not played(spoke, step("one"), step("two")).is_right


def test_a_worker_without_a_record_makes_the_outcome_unscorable_not_wrong() -> None:
    some = item(7, {"a/one": [R]})
    outcome = played(some, step("two"))
    assert (outcome.verdict, outcome.reward, outcome.reason) == (Verdict.UNSCORABLE, None, NOT_RECORDED)


def test_a_later_round_may_accept_or_correct_the_answer() -> None:
    environment = ReplayEnvironment(recorded(MIXED), effects=SURE)
    task = task_of(MIXED)
    first = [step("two")]
    accepted = environment.score_rounds([first, []], task)
    assert (accepted.is_right, accepted.rounds, len(accepted.steps)) == (False, 2, 1)
    corrected = environment.score_rounds([first, [step("one", Role.VERIFY, previous=True)]], task)
    assert (corrected.is_right, corrected.rounds, corrected.is_exact) == (True, 2, False)


def test_defects_of_the_caller_are_raised() -> None:
    environment = ReplayEnvironment(recorded(MIXED))
    task = task_of(MIXED)
    with pytest.raises(PodiumError, match="needs a step"):
        environment.score_plan([], task)
    with pytest.raises(PodiumError, match="more than 5"):
        environment.score_plan([step("one")] * 6, task)
    with pytest.raises(PodiumError, match="nothing is recorded"):
        environment.score_plan([step("one")], task_of(item(99, {"a/one": [R]})))


async def test_completions_are_read_as_serving_reads_them() -> None:
    environment, task = ReplayEnvironment(recorded(MIXED)), task_of(MIXED)
    prompt = build_prompt(question_of(task), task.workers, Caps(), seed=3)
    ordinal = prompt.worker_ids.index("one")
    good = await environment.score(prompt, f"Easy.\n{render_plan([ordinal], [''], [Access()])}", task)
    assert (good.verdict, good.reward) == (Verdict.SCORED, 1.0)
    bad = await environment.score(prompt, "model_id = [9]\nsubtasks = ['']\naccess_list = [[]]", task)
    assert (bad.verdict, bad.reward, bad.reason) == (Verdict.INVALID, 0.0, "PLAN_WORKER_OUT_OF_RANGE")
    none = await environment.score(prompt, "I would rather not.", task)
    assert (none.verdict, none.reason) == (Verdict.INVALID, "PLAN_NO_TRIPLE")


# --- the two paths --------------------------------------------------------------------------------------

answers = st.lists(
    st.sampled_from([R, W, V, SILENT, SPEECHLESS, (1.0, "Right", 8), (0.0, "", 3)]), min_size=1, max_size=3
)
items = st.builds(
    lambda drawn: item(1, dict(zip(MODELS, drawn, strict=False))), st.lists(answers, min_size=3, max_size=4)
)
subtasks = st.sampled_from(["", *EXAMPLES.values(), "Solve it.", "Vote, then check."])


@st.composite
def a_round(draw: st.DrawFn, number: int) -> tuple[Step, ...]:
    count = draw(st.integers(0 if number else 1, 5))
    return tuple(
        Step(
            draw(st.sampled_from(("one", "two", "three", "four") if draw(st.booleans()) else ("one", "two"))),
            draw(subtasks),
            Access(
                tuple(sorted(draw(st.sets(st.integers(0, index - 1))))) if index else (),
                previous_round=bool(number) and draw(st.booleans()),
            ),
        )
        for index in range(count)
    )


@st.composite
def some_rounds(draw: st.DrawFn) -> Rounds:
    return [draw(a_round(number)) for number in range(draw(st.integers(1, 3)))]


@settings(max_examples=150)
@given(one=items, rounds=some_rounds(), seed=st.integers(0, 9), rollout=st.integers(0, 9))
def test_the_direct_path_equals_the_runner(
    one: RecordedItem, rounds: Rounds, seed: int, rollout: int
) -> None:
    data = recorded(one)
    served = ReplayEnvironment(data, performer=Performer(FakeClock(), CountingIds()))
    direct = ReplayEnvironment(data)
    task = task_of(one, seed)
    expected = asyncio.run(served.score_by_runner(rounds, task, rollout))
    assert direct.score_rounds(rounds, task, rollout) == expected


async def test_score_goes_through_the_runner_where_a_performer_is_given() -> None:
    data, task = recorded(MIXED), task_of(MIXED)
    prompt = build_prompt(question_of(task), task.workers, Caps(), seed=3)
    completion = render_plan([0, 1], ["", EXAMPLES[Role.AGGREGATE]], [Access(), Access((0,))])
    served = ReplayEnvironment(data, performer=Performer(FakeClock(), CountingIds()))
    assert await served.score(prompt, completion, task) == await ReplayEnvironment(data).score(
        prompt, completion, task
    )
    with pytest.raises(PodiumError, match="without a performer"):
        await ReplayEnvironment(data).score_by_runner([[step("one")]], task)
