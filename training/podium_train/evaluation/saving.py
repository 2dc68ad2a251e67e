"""Writes measurements so that a full disk leaves what was there before, and says what to do."""

from contextlib import suppress
from pathlib import Path

from podium_core.domain.errors import Code, PodiumError


def save(path: Path, text: str) -> None:
    """Replace `path` by `text`, making its folder; raise PodiumError TRAIN_NOT_SAVED."""
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise not_saved(path, error) from None


def not_saved(path: Path, error: OSError) -> PodiumError:
    """Return the error for a file that could not be written."""
    return PodiumError(
        Code.INTERNAL,
        f"{path.name} could not be written ({error.strerror}); free space or name another folder",
        reason="TRAIN_NOT_SAVED",
    )
