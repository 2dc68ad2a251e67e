"""Small data folders and recorded sets, in the format that `podium-train import` writes."""

import json
import lzma
from collections.abc import Mapping, Sequence
from pathlib import Path

from podium_train.outcomes.cards import measure_cards
from podium_train.outcomes.items import RecordedAnswer, RecordedItem, RecordedSet, Source
from podium_train.outcomes.pools import TaskMaker

MODELS = ("a/one", "b/two", "c/three", "d/four")


def item(
    number: int,
    answers: Mapping[str, Sequence[tuple[float, str | None, int]]],
    family: str = "sums",
    difficulty: str = "easy",
) -> RecordedItem:
    return RecordedItem(
        item_id=f"reasoning_gym/{difficulty}/{family}/{number}",
        source=Source.REASONING_GYM,
        family=family,
        category="arithmetic",
        difficulty=difficulty,
        question=f"What is {family} number {number}?",
        reference=f"{number}",
        answers={
            model: tuple(RecordedAnswer(*fields) for fields in recorded)
            for model, recorded in answers.items()
        },
    )


def recorded(*items: RecordedItem) -> RecordedSet:
    return RecordedSet(items)


def maker(items: RecordedSet, models: Sequence[str] = MODELS) -> TaskMaker:
    return TaskMaker(measure_cards(items, split=None), tuple(models))


def write_lines(path: Path, rows: Sequence[object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)
    if path.name.endswith(".xz"):
        path.write_bytes(lzma.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")


def write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def write_folder(root: Path) -> Path:
    """Write all three sources, two items each, and return the folder."""
    gym = root / "reasoning_gym_outcomes"
    write_json(gym / "meta.json", {"models": list(MODELS)})
    write_lines(
        gym / "outcomes_easy.jsonl.xz",
        [
            {"id": "easy/sums/0", "c": "arithmetic", "w": {"0": [[1.0, "0", 9]], "1": [[0.1, None, 0]]}},
            {"id": "easy/sums/1", "c": "arithmetic", "w": {"0": [[0.99, "1", 9], [0.5, "2", 9]]}},
        ],
    )
    write_lines(
        gym / "questions_easy.jsonl.xz",
        [{"id": "easy/sums/0", "q": "0+0?", "a": "0"}, {"id": "easy/sums/1", "q": "0+1?", "a": "1"}],
    )
    pro = root / "mmlu_pro_outcomes"
    write_json(pro / "meta.json", {"models": ["x", "y"], "mean_response_chars": [40, 80]})
    write_lines(
        pro / "outcomes.jsonl.xz",
        [
            {"id": 7, "cat": "law", "q": "Which?", "o": ["this", "that"], "a": "B", "p": "B-"},
            {"id": 8, "cat": "law", "q": "Who?", "o": ["he", "she"], "a": "A", "p": "BA"},
        ],
    )
    zero = root / "zeroeval_outcomes"
    write_json(zero / "meta.json", {"gsm": {"models": ["x", "z"]}, "crux": {"models": ["x"]}})
    write_lines(zero / "gsm.jsonl", [{"id": "g1", "q": "2+2?", "a": "# 4", "w": [[1, "4", 5], [0, None, 7]]}])
    write_lines(zero / "crux.jsonl.xz", [{"id": "c1", "q": "f(1)?", "a": "1", "w": [[0, "", 5]]}])
    return root
