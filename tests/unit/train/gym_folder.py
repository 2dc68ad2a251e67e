"""A data folder of one source with enough items for training tasks of its every split."""

from pathlib import Path

from tests.unit.train.recorded import MODELS, write_json, write_lines

ITEMS = 80


def write_gym(root: Path) -> Path:
    """Write sums of which each model knows its own residues, and return the folder."""
    gym = root / "reasoning_gym_outcomes"
    ids = [f"easy/sums/{n}" for n in range(ITEMS)]
    write_json(gym / "meta.json", {"models": list(MODELS)})
    write_lines(
        gym / "outcomes_easy.jsonl.xz",
        [
            {
                "id": item_id, "c": "arithmetic",
                "w": {str(m): [[1.0, f"{2 * n}", 9]] if n % 4 == m else [[0.0, "7", 9]] for m in range(4)},
            }
            for n, item_id in enumerate(ids)
        ],
    )  # fmt: skip
    write_lines(
        gym / "questions_easy.jsonl.xz",
        [{"id": item_id, "q": f"What is {n} plus {n}?", "a": f"{2 * n}"} for n, item_id in enumerate(ids)],
    )
    return root
