"""Conductors as systems: plan text in, lines out; rounds, seeds and what ablations take away."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

pytest.importorskip("numpy", reason="cards are measured with numpy")

from hypothesis import given
from hypothesis import strategies as st

from podium_core.domain.plan import Access
from podium_core.domain.plan_format import parse_plan, render_plan
from podium_core.domain.plan_prompt import PlanPrompt
from podium_core.domain.run import Caps
from podium_core.domain.usage import Usage
from podium_core.plan_model.choices import likeliest
from podium_core.plan_model.deciding import Deciding, Seen
from podium_core.plan_model.weights import packed, unpacked
from podium_core.plan_model.writing import written as written_plan
from podium_train.baselines.rules.writer import RulesPlanner
from podium_train.environments.port import Task, Verdict
from podium_train.environments.replay import ReplayEnvironment
from podium_train.environments.roles import EXAMPLES, Role
from podium_train.evaluation.ablations import (
    FixedTopology,
    OneStep,
    ShuffledCards,
    ShuffledIds,
    WithoutSubtasks,
)
from podium_train.evaluation.embedded import embedded_writer
from podium_train.evaluation.prompted import PromptedWriter, Reply
from podium_train.evaluation.systems import (
    Conducted,
    PlanQuestion,
    PlanWriter,
    WrittenPlan,
)
from podium_train.evaluation.trials import EnvironmentTrial, ReplayTrial
from tests.fakes.plan_models import random_model
from tests.unit.train.recorded import MODELS, item, maker, recorded

R, W = (1.0, "right", 40), (0.0, "wrong", 80)
ONE = item(1, {"a/one": [W], "b/two": [R], "c/three": [R], "d/four": [W]})
IDS = ("one", "two", "three", "four")


def task() -> Task:
    return maker(recorded(ONE)).task(ONE, MODELS, 5)


@dataclass
class Says:
    """Writes the given texts, one per round, and remembers what it was asked."""

    texts: Sequence[str]
    usage: Usage = Usage(30, 12)
    asked: list[PlanQuestion] = field(default_factory=list)

    async def write(self, asked: PlanQuestion) -> WrittenPlan:
        self.asked.append(asked)
        return WrittenPlan(self.texts[min(asked.round, len(self.texts) - 1)], IDS, self.usage, 3)


def plan(*steps: tuple[int, str, tuple[int, ...]]) -> str:
    return render_plan(
        [number for number, _, _ in steps],
        [subtask for _, subtask, _ in steps],
        [Access(seen) for _, _, seen in steps],
    )


def conducted(*writers: PlanWriter, rounds: int = 1) -> Conducted:
    trial = ReplayTrial(ReplayEnvironment(recorded(ONE)))
    return Conducted("c", writers, trial, max_rounds=rounds)


def test_a_plan_is_tried_and_the_conductors_own_tokens_and_money_are_kept() -> None:
    found = asyncio.run(conducted(Says([plan((1, "", ()))])).answer(task(), 0))
    assert (found.is_right, found.worker_ids, found.conductor_usage) == (True, ("two",), Usage(30, 12))
    alone = asyncio.run(conducted(Says([plan((1, "", ()))], Usage())).answer(task(), 0))
    assert found.cost_usd_micros == alone.cost_usd_micros > 3
    assert found.tokens == found.worker_usage.total_tokens + 42


def test_a_text_that_is_no_plan_is_invalid_and_still_costs_its_tokens() -> None:
    found = asyncio.run(conducted(Says(["I would ask model two."])).answer(task(), 0))
    assert (found.verdict, found.is_right, found.worker_ids) == (Verdict.INVALID, False, ())
    assert found.conductor_usage == Usage(30, 12)


def test_each_run_has_its_seeds_weights() -> None:
    system = conducted(Says([plan((0, "", ()))]), Says([plan((1, "", ()))]))
    assert [asyncio.run(system.answer(task(), run)).is_right for run in range(2)] == [False, True]


def test_a_later_round_sees_the_answer_and_may_replace_it() -> None:
    says = Says([plan((0, "", ())), plan((1, "", ()))])
    found = asyncio.run(conducted(says, rounds=2).answer(task(), 0))
    assert (found.is_right, found.rounds, found.worker_ids) == (True, 2, ("one", "two"))
    assert found.conductor_usage == Usage(60, 24)
    later = says.asked[1]
    assert (later.round, later.previous_answer) == (1, "wrong")
    assert later.previous_plan is not None


def test_a_later_round_may_accept_or_fail_and_the_answer_stays() -> None:
    for second in (plan(), "no plan at all"):
        says = Says([plan((1, "", ())), second])
        found = asyncio.run(conducted(says, rounds=2).answer(task(), 0))
        assert (found.is_right, found.worker_ids) == (True, ("two",))
        assert len(says.asked) == 2


def written(writer: PlanWriter) -> WrittenPlan:
    one = task()
    return asyncio.run(writer.write(PlanQuestion(one.question, one.workers, Caps(), one.seed)))


CHAIN = plan((0, "Draft the idea.", ()), (1, "Solve it.", (0,)), (2, "Check what you see.", (1,)))


def test_without_subtasks_workers_and_access_stay() -> None:
    steps = parse_plan(written(WithoutSubtasks(Says([CHAIN]))).completion, IDS)
    assert [step.worker_id for step in steps] == ["one", "two", "three"]
    assert {step.subtask for step in steps} == {EXAMPLES[Role.SOLVE]}
    assert [step.access.steps for step in steps] == [(), (0,), (1,)]


def test_the_fixed_topology_is_a_vote_and_leaves_single_steps_alone() -> None:
    steps = parse_plan(written(FixedTopology(Says([CHAIN]))).completion, IDS)
    assert [step.access.steps for step in steps] == [(), (), (0, 1)]
    single = plan((3, "Solve it.", ()))
    assert written(FixedTopology(Says([single]))).completion == single


def test_ablations_leave_invalid_texts_invalid() -> None:
    assert written(WithoutSubtasks(Says(["nothing"]))).completion == "nothing"


def test_shuffled_ids_and_cards_keep_the_pool() -> None:
    assert sorted(written(ShuffledIds(Says([CHAIN]))).worker_ids) == sorted(IDS)
    says = Says([CHAIN])
    written(ShuffledCards(says))
    (asked,) = says.asked
    assert [worker.worker_id for worker in asked.workers] == list(IDS)
    assert {worker.card for worker in asked.workers} == {worker.card for worker in task().workers}


def test_one_step_caps_the_conductor() -> None:
    says = Says([CHAIN])
    written(OneStep(says))
    assert says.asked[0].caps.max_steps == 1


def test_other_environments_get_the_plan_as_text() -> None:
    trial = EnvironmentTrial(ReplayEnvironment(recorded(ONE)))
    outcome = asyncio.run(trial.perform([parse_plan(plan((1, "", ())), IDS)], task()))
    assert outcome.is_right


@given(st.text(max_size=200), st.integers(0, 2**32))
def test_the_rules_planner_writes_a_plan_for_any_question(question: str, seed: int) -> None:
    plan_text = asyncio.run(RulesPlanner().write(PlanQuestion(question, task().workers, Caps(), seed)))
    assert 1 <= len(parse_plan(plan_text.completion, plan_text.worker_ids)) <= 5
    assert plan_text.usage.total_tokens == 0


@dataclass
class Model:
    """A language model that always replies with the first listed worker."""

    prompts: list[PlanPrompt] = field(default_factory=list)

    async def reply(self, prompt: PlanPrompt, seed: int) -> Reply:
        self.prompts.append(prompt)
        return Reply(f"\n{plan((0, '', ()))}", Usage(900, 20), 7)


def test_a_prompted_model_gets_the_serving_prompt_and_its_numbers_mean_the_listed_workers() -> None:
    model = Model()
    found = asyncio.run(conducted(PromptedWriter(model)).answer(task(), 0))
    (prompt,) = model.prompts
    assert ONE.question in prompt.user
    assert found.worker_ids == prompt.worker_ids[:1]
    assert found.conductor_usage == Usage(900, 20)


def test_an_embedded_conductor_writes_what_serving_would_and_remembers_it(tmp_path: Path) -> None:
    for name, data in packed(random_model(3)).items():
        (tmp_path / name).write_bytes(data)
    writer = embedded_writer(tmp_path)
    one = task()
    asked = PlanQuestion(one.question, one.workers, Caps(), one.seed)
    first = asyncio.run(writer.write(asked))
    pool = sorted(one.workers, key=lambda worker: worker.worker_id)
    served = written_plan(
        Deciding(Seen(unpacked(packed(random_model(3))), one.question, pool, 5), likeliest).decide()
    )
    assert first.completion == served
    assert first.worker_ids == tuple(worker.worker_id for worker in pool)
    assert first.usage.output_tokens == -(-len(served) // 4)
    assert asyncio.run(writer.write(asked)) is first
    other = asyncio.run(writer.write(replace(asked, question="Something else?")))
    assert parse_plan(other.completion, other.worker_ids)
    later = asyncio.run(writer.write(replace(asked, round=1, previous_answer="7")))
    assert parse_plan(later.completion, later.worker_ids, round_index=1) == ()
