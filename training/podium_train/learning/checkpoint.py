"""Keeps a run's state, so that a killed run goes on along the same curve."""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from podium_core.domain.errors import Code, PodiumError, invalid

CHECKPOINT_FILE = "checkpoint.pt"


def save(folder: Path, state: Mapping[str, Any]) -> None:
    """Write the state; the one before stays until the new one is whole.

    Raises PodiumError TRAIN_NOT_SAVED when it cannot be written, for example on a full disk.
    """
    path = folder / CHECKPOINT_FILE
    fresh = path.with_suffix(".new")
    try:
        torch.save(dict(state), fresh)
        fresh.replace(path)
    except (OSError, RuntimeError) as error:
        fresh.unlink(missing_ok=True)
        raise PodiumError(
            Code.INTERNAL,
            "the checkpoint could not be written; free space in the output folder and run the same command "
            "again to go on from the one before",
            reason="TRAIN_NOT_SAVED",
        ) from error


def load(folder: Path) -> dict[str, Any] | None:
    """Return the state that was saved last; None when there is none.

    Raises PodiumError CHECKPOINT_CORRUPT for a file that is no checkpoint.
    """
    path = folder / CHECKPOINT_FILE
    if not path.is_file():
        return None
    try:
        # Our own file, in our own folder; arrays and optimiser moments are more than tensors.
        state = torch.load(path, weights_only=False)
    except (pickle.UnpicklingError, EOFError, RuntimeError, AttributeError):
        raise invalid(
            "the checkpoint in the output folder cannot be read; remove it to start anew",
            reason="CHECKPOINT_CORRUPT",
        ) from None
    assert isinstance(state, dict)
    return state
