"""A run's folder: whose it is, and which of its checkpoints can be trusted after a kill."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from podium_core.domain.errors import invalid
from podium_train.learning.grpo_recipe import GrpoRecipe

_RECIPE = "recipe.json"
_MAY_CHANGE = frozenset(
    {
        "name",
        "score_timeout_s",
        "max_concurrent_scores",
        "max_unscorable_share",
        "checkpoint_every",
        "kept_checkpoints",
        "limits",
    }
)
"""Settings that do not shape the curve."""
_FOLDER = re.compile(r"checkpoint-(\d+)")
_WRITTEN_LAST = "trainer_state.json"


def claim(run: Path, recipe: GrpoRecipe, *, resume: bool) -> Path | None:
    """Take the folder for a run and return the checkpoint to go on from; None to begin.

    Raises PodiumError INVALID_REQUEST when the folder holds a run and `resume` is not set, or a run with
    other settings: their curves would be joined into one that nobody can repeat.
    """
    kept = run / _RECIPE
    settings = json.loads(json.dumps(asdict(recipe)))
    if kept.is_file():
        if not resume:
            raise invalid("the output folder holds a run; resume it, or name a new folder")
        changed = _changed(json.loads(kept.read_text(encoding="utf-8")), settings)
        if changed:
            raise invalid(f"the run in the output folder has another {', '.join(changed)}; name a new folder")
        return last_whole_checkpoint(run)
    if last_whole_checkpoint(run) is not None:
        raise invalid("the output folder holds checkpoints of something else; name a new folder")
    run.mkdir(parents=True, exist_ok=True)
    kept.write_text(f"{json.dumps(settings, indent=2)}\n", encoding="utf-8")
    return None


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    names = sorted((before.keys() | now.keys()) - _MAY_CHANGE)
    return [name for name in names if before.get(name) != now.get(name)]


def last_whole_checkpoint(run: Path) -> Path | None:
    """Return the newest checkpoint of a run that was written to its end; None without one.

    The trainer writes a checkpoint in place and its state file last.
    """
    if not run.is_dir():
        return None
    numbered = sorted(
        ((int(found[1]), path) for path in run.iterdir() if (found := _FOLDER.fullmatch(path.name))),
        reverse=True,
    )
    return next((path for number, path in numbered if _is_whole(path, number)), None)


def _is_whole(folder: Path, number: int) -> bool:
    try:
        state = json.loads((folder / _WRITTEN_LAST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(state, dict) and state.get("global_step") == number
