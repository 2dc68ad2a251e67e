"""What replay assumes is swept over recorded answers, and said to be assumed."""

import random
from pathlib import Path

import pytest

from podium_core.domain.errors import PodiumError
from podium_train.__main__ import main
from podium_train.environments.assumptions import REPLAY_SWEEP, SimulatedEffects
from podium_train.environments.replay_sweep import swept_replay
from podium_train.outcomes.splits import Split, split_of
from tests.unit.train.recorded import MODELS, item, maker, recorded, write_json, write_lines

RNG = random.Random(3)
DATA = recorded(
    *(
        item(
            number,
            {
                model: [(float(RNG.random() < share), RNG.choice("abc"), 40)]
                for model, share in zip(MODELS, (0.8, 0.6, 0.4, 0.3), strict=True)
            },
        )
        for number in range(120)
    )
)
TASKS = maker(DATA).draw_all(DATA, seed=1)


def test_every_assumed_effect_is_swept_and_its_assumed_value_is_among_those_tried() -> None:
    fields = set(SimulatedEffects.__dataclass_fields__)
    assert set(REPLAY_SWEEP) == fields
    assert all(getattr(SimulatedEffects(), name) in values for name, values in REPLAY_SWEEP.items())


def test_only_what_rests_on_an_effect_moves_with_it() -> None:
    rows = swept_replay(DATA, TASKS, ["refine_lift"])
    assert [row.is_assumed for row in rows] == [False, True, False]
    exact = {(row.accuracies["best single"], row.accuracies["three, compare"]) for row in rows}
    assert len(exact) == 1
    refined = [row.accuracies["solve, verify, refine"] for row in rows]
    assert refined == sorted(refined)
    assert refined[0] < refined[-1]


def test_an_unknown_effect_is_refused() -> None:
    with pytest.raises(PodiumError, match="nothing called 'luck'"):
        swept_replay(DATA, TASKS, ["luck"])
    with pytest.raises(PodiumError, match="a task at least"):
        swept_replay(DATA, [])


def test_the_table_says_that_it_is_not_exact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "reasoning_gym_outcomes"
    dev = [one for one in DATA.items if split_of(one) is Split.DEV]
    write_json(folder / "meta.json", {"models": list(MODELS)})
    rows = [(one.item_id.removeprefix("reasoning_gym/"), one) for one in dev]
    write_lines(
        folder / "outcomes_easy.jsonl",
        [
            {
                "id": name,
                "c": one.category,
                "w": {
                    str(k): [[a.score, a.answer, a.chars] for a in one.answers[model]]
                    for k, model in enumerate(MODELS)
                },
            }
            for name, one in rows
        ],
    )
    write_lines(
        folder / "questions_easy.jsonl",
        [{"id": name, "q": one.question, "a": one.reference} for name, one in rows],
    )
    assert main(["sweep", "--data", str(tmp_path), "--only", "plan_lift"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"Replay with simulated effects (not exact), {len(dev)} recorded dev items")
    assert "| plan_lift | **0.05** |" in said
