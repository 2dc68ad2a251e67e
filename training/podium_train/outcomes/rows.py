"""JSON lines and JSON files read strictly: what is wrong is named by file and line, nothing is half-read."""

import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from podium_core.domain.errors import PodiumError, invalid

MAX_LINE_CHARS = 4_000_000
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Row:
    """One JSON object and where it stands, so that a complaint can say so."""

    place: str
    fields: Mapping[str, object]

    def error(self, message: str) -> PodiumError:
        """Return the error that names this row."""
        return malformed(self.place, message)

    def text(self, name: str) -> str:
        """Return a text field."""
        return self.text_of(self._get(name), f"{name!r}")

    def whole(self, name: str) -> int:
        """Return a whole-number field that is not negative."""
        return self.whole_of(self._get(name), f"{name!r}")

    def listed(self, name: str) -> Sequence[object]:
        """Return a list field."""
        return self.list_of(self._get(name), f"{name!r}")

    def mapping(self, name: str) -> Mapping[str, object]:
        """Return an object field."""
        value = self._get(name)
        if not isinstance(value, dict):
            raise self.error(f"{name!r} must be an object")
        return value

    def list_of(self, value: Any, what: str) -> Sequence[object]:
        """Return `value` if it is a list."""
        if not isinstance(value, list):
            raise self.error(f"{what} must be a list")
        return value

    def text_of(self, value: Any, what: str) -> str:
        """Return `value` if it is text."""
        if not isinstance(value, str):
            raise self.error(f"{what} must be text")
        return value

    def whole_of(self, value: Any, what: str) -> int:
        """Return `value` if it is a whole number, not negative."""
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.error(f"{what} must be a whole number, not negative")
        return value

    def score_of(self, value: Any, what: str) -> float:
        """Return `value` if it is a number in 0..1."""
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
            raise self.error(f"{what} must be a number in 0..1")
        return float(value)

    def _get(self, name: str) -> Any:
        value = self.fields.get(name, _MISSING)
        if value is _MISSING:
            raise self.error(f"{name!r} is missing")
        return value


def malformed(place: str, message: str) -> PodiumError:
    """Return the error for data that does not fit its format."""
    return invalid(f"{place}: {message}", reason="DATA_MALFORMED")


def missing(message: str) -> PodiumError:
    """Return the error for data that is not there."""
    return invalid(message, reason="DATA_MISSING")


def lines_file(folder: Path, stem: str) -> Path | None:
    """Return the file of JSON lines `stem`, compressed or not; None when there is neither."""
    found = [path for path in (folder / f"{stem}.jsonl.xz", folder / f"{stem}.jsonl") if path.is_file()]
    if len(found) > 1:
        raise malformed(_shown(found[0]), f"{found[1].name} stands beside it; keep one of the two")
    return found[0] if found else None


def stem_of(path: Path) -> str:
    """Return a file's name without `.jsonl` or `.jsonl.xz`."""
    return path.name.removesuffix(".xz").removesuffix(".jsonl")


def read_rows(path: Path) -> Iterator[Row]:
    """Yield the objects of a file of JSON lines (`.jsonl`, or `.jsonl.xz` compressed).

    Raises PodiumError (DATA_MISSING, DATA_MALFORMED) naming file and line. The caller uses no row before all
    of them were read.
    """
    shown = _shown(path)
    number = 0
    try:
        with _opened(path) as lines:
            while line := lines.readline(MAX_LINE_CHARS + 1):
                number += 1
                if len(line) > MAX_LINE_CHARS:
                    raise malformed(
                        f"{shown}:{number}", f"the line is longer than {MAX_LINE_CHARS} characters"
                    )
                yield _row(f"{shown}:{number}", line)
    except FileNotFoundError:
        raise missing(f"{shown} is not there") from None
    except (lzma.LZMAError, EOFError):
        raise malformed(f"{shown}:{number + 1}", "the compressed file is cut or damaged here") from None
    except UnicodeDecodeError:
        raise malformed(f"{shown}:{number + 1}", "the text from here on is not UTF-8") from None
    except OSError as error:
        raise missing(f"{shown} cannot be read: {error.strerror}") from None


def read_object(path: Path) -> Row:
    """Return the one JSON object that a file holds."""
    shown = _shown(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise missing(f"{shown} is not there") from None
    except UnicodeDecodeError:
        raise malformed(shown, "it is not UTF-8 text") from None
    except OSError as error:
        raise missing(f"{shown} cannot be read: {error.strerror}") from None
    return _row(shown, text)


def _opened(path: Path) -> TextIO:
    if path.name.endswith(".xz"):
        return lzma.open(path, "rt", encoding="utf-8", newline="\n")
    return path.open(encoding="utf-8", newline="\n")


def _row(place: str, text: str) -> Row:
    try:
        value = json.loads(text)
    except ValueError as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "it holds an impossible number"
        raise malformed(place, f"it is not JSON: {reason}") from None
    except RecursionError:
        raise malformed(place, "it is nested too deeply") from None
    if not isinstance(value, dict):
        raise malformed(place, "it must be a JSON object")
    return Row(place, value)


def _shown(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"
