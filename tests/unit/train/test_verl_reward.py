"""verl's rows and reward function: the same tasks on every machine, and failures that are never wrong answers."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from podium_core.domain.errors import PodiumError
from podium_core.domain.plan_prompt import PlanPrompt
from podium_core.domain.run import Caps
from podium_train.environments.port import Outcome, Task, Verdict
from podium_train.learning.prompts import ChatWriter, Draw, draws
from podium_train.learning.replayed import Replayed, replayed
from podium_train.learning.verl_reward import VerlReward, rows_of
from podium_train.outcomes.splits import HELD_OUT_WORKERS, Split
from tests.unit.train.gym_folder import write_gym
from tests.unit.train.test_prompts import WordTokenizer

FUNCTION = Path(__file__).parents[3] / "training" / "recipes" / "verl" / "reward.py"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gym(tmp_path_factory.mktemp("data"))


def drawn(made: Replayed, count: int, *, free_reasoning: bool = False) -> list[Draw]:
    writer = ChatWriter(WordTokenizer())
    return list(
        draws(
            made.tasks, count, writer, seed=1, room_tokens=9_999, caps=Caps(), free_reasoning=free_reasoning
        )
    )


def one_step(ordinal: int) -> str:
    return f'model_id = [{ordinal}]\nsubtasks = [""]\naccess_list = [[]]'


def test_the_same_folder_and_seed_make_the_same_tasks_and_another_seed_other_pools(data: Path) -> None:
    assert replayed(data, seed=4).tasks == replayed(data, seed=4).tasks
    assert replayed(data, seed=4).tasks != replayed(data, seed=5).tasks
    train, dev = (replayed(data, seed=4, split=split).tasks for split in (Split.TRAIN, Split.DEV))
    assert not {task.task_id for task in train} & {task.task_id for task in dev}
    assert all(len(task.workers) >= 3 for task in train)
    names = {worker.provider_model for task in train for worker in task.workers}
    assert not names & HELD_OUT_WORKERS


def test_a_folder_without_anything_to_choose_is_refused(data: Path) -> None:
    with pytest.raises(PodiumError, match="no task of the split unseen"):
        replayed(data, seed=4, split=Split.UNSEEN)


def as_verl_loads_it() -> Any:
    spec = importlib.util.spec_from_file_location("custom_module", FUNCTION)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.compute_score


async def test_a_reward_worker_scores_a_row_as_the_task_it_was_drawn_from(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODIUM_TRAIN_DATA", str(data))
    monkeypatch.setenv("PODIUM_TRAIN_SEED", "4")
    made = replayed(data, seed=4)
    compute_score = as_verl_loads_it()
    scores = []
    for draw, row in zip(drawn(made, 12), rows_of(drawn(made, 12), made.tasks, "train"), strict=True):
        assert [message["role"] for message in row["prompt"]] == ["system", "user"]
        assert draw.task.reference not in str(row["reward_model"])
        for ordinal in range(len(draw.task.workers)):
            completion = one_step(ordinal)
            given = await compute_score(
                "podium", completion, "", row["extra_info"], reward_router_address=None
            )
            outcome = await made.environment.score(draw.prompt, completion, draw.task)
            assert (given["score"], given["acc"], given["valid"]) == (outcome.reward, outcome.is_right, 1.0)
            scores.append(given["score"])
    assert set(scores) == {0.5, 1.0}
    assert (await compute_score("podium", "no plan", "", row["extra_info"]))["score"] == 0.0


async def test_what_cannot_be_scored_raises_so_that_verl_leaves_it_out(data: Path) -> None:
    import asyncio

    class Failing:
        async def score(self, prompt: PlanPrompt, completion: str, task: Task) -> Outcome:
            if completion == "hang":
                await asyncio.Event().wait()
            return Outcome(Verdict.UNSCORABLE, None, reason="PROVIDER_FAILED")

    reward = VerlReward(Failing(), replayed(data, seed=4).tasks, timeout_s=0.05, max_concurrent=2)
    for completion, why in (("hang", "DEADLINE"), ("plan", "PROVIDER_FAILED")):
        with pytest.raises(PodiumError, match=why) as caught:
            await reward.score(completion, {"index": 0, "worker_ids": ["a"]})
        assert caught.value.reason == "TRAIN_UNSCORABLE"


def test_a_prompt_that_begins_the_reply_is_no_row_for_verl(data: Path) -> None:
    made = replayed(data, seed=4)
    with pytest.raises(ValueError, match="beginning of a reply"):
        rows_of(drawn(made, 1, free_reasoning=True), made.tasks, "train")
