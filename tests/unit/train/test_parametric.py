"""Simulated workers: what they assume holds of what they do, and results depend on content, never on order."""

import random
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import PodiumError
from podium_core.domain.ids import RandomIds
from podium_core.domain.plan import Access, Step
from podium_core.domain.plan_format import render_plan
from podium_core.domain.plan_prompt import build_prompt
from podium_core.domain.run import Caps
from podium_train.__main__ import main
from podium_train.environments.assumptions import SWEEP, Assumptions
from podium_train.environments.parametric import ParametricEnvironment, accuracy_by_card
from podium_train.environments.parametric_pools import MadeUpPool
from podium_train.environments.parametric_run import AccuracyOf, ParametricRun
from podium_train.environments.parametric_sweep import STRATEGIES, swept
from podium_train.environments.performing import Performer, question_of
from podium_train.environments.port import Outcome, Task, Verdict
from podium_train.environments.roles import EXAMPLES, Role

FLAWLESS = Assumptions(
    rate_limit_rate=0.0, failure_rate=0.0, empty_rate=0.0, refusal_rate=0.0, format_break_rate=0.0
)
POOL = MadeUpPool(seed=3, worker_count=5, family_count=6)
CLOCK = SystemClock()
BY_RUNNER = ParametricEnvironment(
    seed=3, accuracy_of=POOL.accuracy, performer=Performer(CLOCK, RandomIds(CLOCK))
)
DIRECT = ParametricEnvironment(seed=3, accuracy_of=POOL.accuracy)


def solve(worker_id: str, *seen: int) -> Step:
    return Step(worker_id, EXAMPLES[Role.SOLVE], Access(seen))


def always(accuracy: float) -> AccuracyOf:
    return lambda worker, task: accuracy


def random_rounds(task: Task, rng: random.Random) -> list[list[Step]]:
    rounds = []
    for number in range(rng.choice([1, 1, 2])):
        steps = []
        for index in range(rng.randint(1, 5)):
            seen = tuple(sorted(rng.sample(range(index), rng.randint(0, index))))
            access = Access(seen, previous_round=number > 0 and rng.random() < 0.5)
            steps.append(
                Step(rng.choice(task.workers).worker_id, rng.choice(["", *EXAMPLES.values()]), access)
            )
        rounds.append(steps)
    if rng.random() < 0.2:
        rounds.append([])
    return rounds


def share(outcomes: list[Outcome]) -> float:
    return sum(one.is_right for one in outcomes) / len(outcomes)


# --- what is assumed, is so ---------------------------------------------------------------------


def test_a_worker_alone_is_right_as_often_as_its_accuracy_says() -> None:
    for accuracy in (0.15, 0.5, 0.9):
        environment = ParametricEnvironment(seed=1, assumptions=FLAWLESS, accuracy_of=always(accuracy))
        outcomes = [environment.score_plan([solve(t.workers[0].worker_id)], t) for t in POOL.tasks(3_000)]
        assert share(outcomes) == pytest.approx(accuracy, abs=0.03)


def test_samples_and_workers_agree_as_recorded_ones_do() -> None:
    environment = ParametricEnvironment(seed=1, assumptions=FLAWLESS, accuracy_of=always(0.5))
    first, again, other = [], [], []
    for task in POOL.tasks(3_000):
        one, two = task.workers[0].worker_id, task.workers[1].worker_id
        first.append(environment.score_plan([solve(one)], task).is_right)
        again.append(environment.score_plan([solve(one)], task, rollout=1).is_right)
        other.append(environment.score_plan([solve(two)], task).is_right)
    after_wrong = [late for early, late in zip(first, again, strict=True) if not early]
    after_right = [late for early, late in zip(first, again, strict=True) if early]
    assert 0.04 <= sum(after_wrong) / len(after_wrong) <= 0.21
    assert 0.82 <= sum(after_right) / len(after_right) <= 0.95
    both = sum(a and b for a, b in zip(first, other, strict=True)) / len(first)
    assert 0.12 <= (both - 0.25) / 0.25 <= 0.23  # the phi coefficient at one half


def test_two_wrong_workers_rarely_say_the_same() -> None:
    environment = ParametricEnvironment(seed=1, assumptions=FLAWLESS, accuracy_of=always(0.2))
    same, pairs = 0, 0
    for task in POOL.tasks(2_000):
        steps = [solve(task.workers[0].worker_id), solve(task.workers[1].worker_id)]
        one, two = environment.score_plan(steps, task).steps
        if not one.is_right and not two.is_right:
            pairs += 1
            same += one.answer == two.answer
    assert 0.1 <= same / pairs <= 0.31


def test_checking_pays_only_with_a_good_checker() -> None:
    def gain(detect: float, false_alarm: float) -> float:
        assumed = replace(FLAWLESS, detect_base=detect, detect_slope=0.0, false_alarm_base=false_alarm, false_alarm_slope=0.0)  # fmt: skip
        environment = ParametricEnvironment(seed=2, assumptions=assumed, accuracy_of=always(0.6))
        alone, chain = [], []
        for task in POOL.tasks(1_500):
            first, second = task.workers[0].worker_id, task.workers[1].worker_id
            steps = [
                solve(first),
                Step(second, EXAMPLES[Role.VERIFY], Access((0,))),
                Step(second, EXAMPLES[Role.REFINE], Access((0, 1))),
            ]
            alone.append(environment.score_plan(steps[:1], task))
            chain.append(environment.score_plan(steps, task))
        return share(chain) - share(alone)

    assert gain(0.9, 0.05) > 0.08
    assert gain(0.2, 0.4) < 0.05


def test_wrong_answers_in_sight_distract_and_right_ones_help() -> None:
    def accuracy(distraction: float, attraction: float) -> float:
        assumed = replace(FLAWLESS, distraction=distraction, attraction=attraction)
        environment = ParametricEnvironment(seed=2, assumptions=assumed, accuracy_of=lambda w, t: 0.5)
        return share(
            [
                environment.score_plan([solve(t.workers[0].worker_id), solve(t.workers[1].worker_id, 0)], t)
                for t in POOL.tasks(1_000)
            ]
        )

    assert accuracy(1.0, 0.0) < accuracy(0.0, 0.0) < accuracy(0.0, 1.0)


def test_right_and_wrong_answers_cannot_be_told_by_their_looks() -> None:
    task = replace(POOL.tasks(1)[0], reference="the secret reference")
    texts = set()
    for rollout in range(200):
        run = ParametricRun(task, FLAWLESS, lambda w, t: 0.5, 1, rollout)
        texts.add(run.say([[solve(task.workers[0].worker_id)]], 0, 0).text)
    assert not any("secret" in text for text in texts)
    assert {len(text) for text in texts} == {len("Final answer: answer-00000000")}


def test_a_card_tells_the_finest_skill_that_fits() -> None:
    task = POOL.tasks(1)[0]
    worker = task.workers[0]
    known = {skill.name: skill.accuracy_ppm / 1e6 for skill in worker.card.skills}
    assert accuracy_by_card(worker, task) == known[task.family]
    strange = replace(task, family="never seen", category="neither")
    assert accuracy_by_card(worker, strange) == pytest.approx(sum(known.values()) / len(known), abs=1e-5)
    assert accuracy_by_card(replace(worker, card=replace(worker.card, skills=())), task) == 0.5


# --- content, not order -------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6))
def test_results_do_not_depend_on_the_order_in_which_steps_are_performed(seed: int) -> None:
    rng = random.Random(seed)
    task = POOL.tasks(1, start=seed)[0]
    rounds = [each for each in random_rounds(task, rng) if each]
    keys = [(number, index) for number, steps in enumerate(rounds) for index in range(len(steps))]
    straight = ParametricRun(task, Assumptions(), POOL.accuracy, 3, 0)
    shuffled = ParametricRun(task, Assumptions(), POOL.accuracy, 3, 0)
    for key in keys:
        straight.say(rounds, *key)
    rng.shuffle(keys)
    for key in keys:
        shuffled.say(rounds, *key)
    assert straight.said == shuffled.said


async def test_the_runner_and_the_direct_path_agree() -> None:
    rng = random.Random(11)
    for number, task in enumerate(POOL.tasks(150, start=500)):
        rounds = random_rounds(task, rng)
        by_runner = await BY_RUNNER.score_by_runner(rounds, task, number)
        assert by_runner == DIRECT.score_rounds(rounds, task, number)


async def test_completions_are_scored_as_serving_reads_them() -> None:
    task = POOL.tasks(1)[0]
    prompt = build_prompt(question_of(task), task.workers, Caps(), seed=task.seed)
    completion = render_plan([0, 1], ["Solve it.", "Compare the answers."], [Access(), Access((0,))])
    for environment in (DIRECT, BY_RUNNER):
        outcome = await environment.score(prompt, completion, task)
        assert outcome.verdict is Verdict.SCORED
        assert outcome.reward in {0.5, 1.0}
        assert not outcome.is_exact
        assert [step.role for step in outcome.steps] == ["solve", "aggregate"]
        assert all(step.latency_us > 0 and step.cost_usd_micros > 0 for step in outcome.steps)
        nonsense = await environment.score(prompt, "I would rather not.", task)
        assert (nonsense.verdict, nonsense.reward) == (Verdict.INVALID, 0.0)


async def test_failed_calls_are_masked_not_counted_as_wrong() -> None:
    task = POOL.tasks(1)[0]
    for name, reason in (("rate_limit_rate", "RATE_LIMITED"), ("failure_rate", "PROVIDER_FAILED")):
        assumed = FLAWLESS.changed(name, 1.0)
        environment = ParametricEnvironment(
            seed=1, assumptions=assumed, performer=Performer(CLOCK, RandomIds(CLOCK))
        )
        steps = [solve(task.workers[0].worker_id)]
        for outcome in (
            environment.score_plan(steps, task),
            await environment.score_by_runner((steps,), task),
        ):
            assert (outcome.verdict, outcome.reward, outcome.reason) == (Verdict.UNSCORABLE, None, reason)


def test_unreadable_replies_are_wrong() -> None:
    task = POOL.tasks(1)[0]
    for name in ("empty_rate", "refusal_rate", "format_break_rate"):
        environment = ParametricEnvironment(
            seed=1, assumptions=FLAWLESS.changed(name, 1.0), accuracy_of=lambda w, t: 0.99
        )
        outcome = environment.score_plan([solve(task.workers[0].worker_id)], task)
        assert (outcome.reward, outcome.steps[0].answer) == (0.5, "")


def test_a_plan_that_cannot_be_performed_is_refused() -> None:
    task = POOL.tasks(1)[0]
    with pytest.raises(PodiumError, match="no worker 'stranger'"):
        DIRECT.score_plan([solve("stranger")], task)
    with pytest.raises(PodiumError, match="needs a step"):
        DIRECT.score_rounds([], task)


# --- pools and sweep ----------------------------------------------------------------------------


def test_made_up_pools_follow_from_their_seed_and_have_no_master_of_all() -> None:
    assert POOL.workers == MadeUpPool(seed=3, worker_count=5, family_count=6).workers
    assert POOL.workers != MadeUpPool(seed=4, worker_count=5, family_count=6).workers
    tasks = POOL.tasks(200)
    assert {len(task.workers) for task in tasks} == {3, 4, 5}
    assert len({task.family for task in tasks}) == 6
    for seed in range(5):
        pool = MadeUpPool(seed)
        best = {
            max(pool.workers, key=lambda w: pool._accuracy(w.worker_id, f)).worker_id for f in pool.families
        }
        assert len(best) > 2


def test_families_and_workers_can_be_held_out() -> None:
    pool = MadeUpPool(seed=2, worker_count=6, family_count=10, unseen_families=4)
    assert (len(pool.seen), len(pool.unseen)) == (6, 4)
    assert {skill.name for worker in pool.workers for skill in worker.card.skills} == set(pool.seen)
    known, others = pool.workers[:4], pool.workers[4:]
    for tasks, families, workers in (
        (pool.tasks(100, families=pool.seen, workers=known), pool.seen, known),
        (pool.tasks(100, at_least=1, at_most=2, families=pool.unseen, workers=others), pool.unseen, others),
    ):
        assert {task.family for task in tasks} == set(families)
        assert {worker.worker_id for task in tasks for worker in task.workers} == {
            w.worker_id for w in workers
        }
    with pytest.raises(PodiumError, match="must be seen"):
        MadeUpPool(seed=1, family_count=3, unseen_families=3)


def test_every_assumption_is_swept_around_its_value() -> None:
    assumed = Assumptions()
    assert set(SWEEP) == {each.name for each in fields(assumed)}
    for name, values in SWEEP.items():
        assert getattr(assumed, name) in values, name
        for value in values:
            assumed.changed(name, value)


def test_impossible_assumptions_are_refused_by_name() -> None:
    for name, value in (
        ("trap_rate", 1.5),
        ("plan_lift", float("nan")),
        ("wrong_answers", 0),
        ("item_share", 0.95),
    ):
        with pytest.raises(PodiumError, match=name):
            Assumptions().changed(name, value)


def test_the_sweep_shows_what_depends_on_an_assumption(capsys: pytest.CaptureFixture[str]) -> None:
    rows = swept(item_count=200, seed=1, constants=["detect_base"])
    chain = [row.accuracies["solve, verify, refine"] for row in rows]
    assert chain == sorted(chain)
    assert chain[-1] > chain[0]
    assert len({row.accuracies["best single"] for row in rows}) == 1
    for constant in ("first_token_s", "straggler_factor", "solve_tokens", "thinking_multiplier"):
        times = [row.times_s["three, compare"] for row in swept(item_count=100, seed=1, constants=[constant])]
        assert times == sorted(times)
        assert times[0] < times[-1]
    assert main(["sweep", "--items", "20", "--only", "trap_rate"]) == 0
    printed = capsys.readouterr().out
    assert "| trap_rate | **0.4** |" in printed
    assert all(label in printed for label in STRATEGIES)
    assert main(["sweep", "--only", "nothing_such"]) == 1
    assert "nothing_such" in capsys.readouterr().err
