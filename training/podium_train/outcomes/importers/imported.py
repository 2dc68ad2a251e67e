"""What an importer yields, and writing it whole or not at all."""

import json
import lzma
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from podium_core.domain.errors import Code, PodiumError, invalid
from podium_train.outcomes.questions import QUESTIONS

_XZ_PRESET = 6


@dataclass(frozen=True, slots=True)
class Imported:
    """Rows by file stem for one subfolder of a data folder, its `meta.json`, and what is worth saying."""

    folder: str
    files: Mapping[str, Sequence[Mapping[str, object]]]
    meta: Mapping[str, object] | None = None
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def row_count(self) -> int:
        """How many rows there are in all files."""
        return sum(len(rows) for rows in self.files.values())


def write(imported: Imported, root: Path, *, replace: bool = False) -> Path:
    """Write the subfolder under `root` and return it: whole, or not at all.

    Question sets share a folder and are written file by file. Raises PodiumError when it is there already
    and `replace` is off, and when the disk is full or the folder cannot be written.
    """
    target = root / imported.folder
    taken = [target] if imported.folder != QUESTIONS else [target / _name(stem) for stem in imported.files]
    there = next((path for path in taken if path.exists()), None)
    if there is not None and not replace:
        raise invalid(f"{there.name} is there already; remove it or say --replace")
    part = root / f".{imported.folder}.part"
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        _fill(part, imported)
        _put(part, target, imported)
    except OSError as error:
        raise PodiumError(
            Code.UNAVAILABLE,
            f"{imported.folder} cannot be written: {error.strerror or 'the disk fails'}; nothing was kept",
            reason="DATA_NOT_WRITTEN",
        ) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return target


def _put(part: Path, target: Path, imported: Imported) -> None:
    if imported.folder == QUESTIONS:
        target.mkdir(exist_ok=True)
        for stem in imported.files:
            (part / _name(stem)).replace(target / _name(stem))
        return
    former = part.with_suffix(".former")
    shutil.rmtree(former, ignore_errors=True)
    if target.exists():
        target.rename(former)
    part.rename(target)
    shutil.rmtree(former, ignore_errors=True)


def _fill(part: Path, imported: Imported) -> None:
    for stem, rows in imported.files.items():
        with lzma.open(part / _name(stem), "wt", encoding="utf-8", newline="\n", preset=_XZ_PRESET) as file:
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")
    if imported.meta is not None:
        text = json.dumps(imported.meta, ensure_ascii=False, indent=1) + "\n"
        (part / "meta.json").write_text(text, encoding="utf-8")


def _name(stem: str) -> str:
    return f"{stem}.jsonl.xz"
