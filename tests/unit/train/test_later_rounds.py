"""Second rounds as rows: the prompt tells of the first, and accepting, mending and spoiling are worth what they are."""

from pathlib import Path

import pytest

from podium_core.domain.run import Caps
from podium_train.environments.port import Outcome
from podium_train.learning.environment_reward import EnvironmentReward
from podium_train.learning.later_rounds import FirstAttempts
from podium_train.learning.prompts import ChatWriter, Draw, draws
from podium_train.learning.replayed import Replayed, replayed
from tests.unit.train.gym_folder import write_gym
from tests.unit.train.test_prompts import WordTokenizer

ACCEPT = "model_id = []\nsubtasks = []\naccess_list = []"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    data: Path = write_gym(tmp_path_factory.mktemp("data"))
    return replayed(data, seed=1)


def later(made: Replayed, count: int, share: float = 1.0) -> list[Draw]:
    return list(
        draws(
            made.tasks,
            count,
            ChatWriter(WordTokenizer()),
            seed=1,
            room_tokens=9_999,
            caps=Caps(),
            first_round=FirstAttempts(made.environment),
            later_share=share,
        )
    )


def first_outcome(made: Replayed, draw: Draw) -> Outcome:
    assert draw.earlier is not None
    return made.environment.score_plan(draw.earlier.plan.steps, draw.task)


async def reward(made: Replayed, draw: Draw, completion: str) -> float | None:
    seam = EnvironmentReward(
        made.environment, [draw], timeout_s=5, max_concurrent=1, max_unscorable_share=0.2
    )
    (given,) = await seam(completions=[completion], row=[0], log_metric=lambda *_: None)
    return given


def test_the_prompt_tells_the_first_plan_and_its_answer_and_never_the_reference(made: Replayed) -> None:
    for draw in later(made, 10):
        assert draw.earlier is not None
        assert "last workflow and its answer" in draw.text
        assert draw.earlier.answer in draw.text
        if not first_outcome(made, draw).is_right:
            assert f"answer is {draw.task.reference}" not in draw.text


def test_the_share_of_second_rounds_is_kept(made: Replayed) -> None:
    count = sum(draw.earlier is not None for draw in later(made, 200, share=0.5))
    assert 70 < count < 130
    assert all(draw.earlier is None for draw in later(made, 20, share=0.0))


async def test_accepting_is_worth_the_first_answer(made: Replayed) -> None:
    seen = set()
    for draw in later(made, 30):
        right = first_outcome(made, draw).is_right
        assert await reward(made, draw, ACCEPT) == (1.0 if right else 0.5)
        seen.add(right)
    assert seen == {True, False}


async def test_a_second_round_that_asks_who_knows_it_mends_a_wrong_answer(made: Replayed) -> None:
    mended = 0
    for draw in later(made, 30):
        if first_outcome(made, draw).is_right:
            continue
        for ordinal in range(len(draw.prompt.worker_ids)):
            again = f'model_id = [{ordinal}]\nsubtasks = [""]\naccess_list = [[]]'
            mended += await reward(made, draw, again) == 1.0
    assert mended > 0


async def test_three_empty_lists_are_no_plan_in_a_first_round(made: Replayed) -> None:
    (draw,) = later(made, 1, share=0.0)
    assert await reward(made, draw, ACCEPT) == 0.0
