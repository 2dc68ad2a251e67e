"""Which checkpoint of an interrupted run can be trusted: the trainer writes them in place, not at once."""

import json
import re
from pathlib import Path

_FOLDER = re.compile(r"checkpoint-(\d+)")
_WRITTEN_LAST = "trainer_state.json"


def last_whole_checkpoint(run: Path) -> Path | None:
    """Return the newest checkpoint of a run that was written to its end; None without one."""
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
