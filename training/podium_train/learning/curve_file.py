"""A run's curve as a file: one JSON object per iteration, appended as it goes, cut back on resume."""

import json
from collections.abc import Mapping
from pathlib import Path


class CurveFile:
    """The lines of `path`. Each has `iteration` and the figures of that iteration."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, iteration: int, figures: Mapping[str, float]) -> None:
        """Write one line and hand it to the system, so that a reader sees it at once."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps({'iteration': iteration, **figures})}\n")

    def read(self) -> list[dict[str, float]]:
        """Return the lines, oldest first. A last line that was cut off while being written is left out."""
        if not self._path.is_file():
            return []
        lines: list[dict[str, float]] = []
        for line in self._path.read_text(encoding="utf-8").splitlines():
            try:
                lines.append(json.loads(line))
            except ValueError:
                break
        return lines

    def up_to(self, iteration: int) -> list[dict[str, float]]:
        """Return the lines up to and with `iteration`."""
        return [line for line in self.read() if line["iteration"] <= iteration]

    def cut_back(self, iteration: int) -> list[dict[str, float]]:
        """Drop what came after `iteration` and return the rest: a resumed run writes it again."""
        kept = self.up_to(iteration)
        if self._path.is_file():
            making = self._path.with_suffix(".making")
            making.write_text("".join(f"{json.dumps(line)}\n" for line in kept), encoding="utf-8")
            making.replace(self._path)
        return kept
