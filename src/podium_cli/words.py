"""How this command says amounts, marks and receipts, the same in every view."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, TextIO

DEMO_NOTE = (
    "[demo] workers are small exact programs that stand in for language models; their prices are"
    " invented, nobody is charged. For real models see: podium up --help"
)

_MICROS = 1_000_000
_SHORTEST_RANGE = 3
_TRAILING_BLANKS = re.compile(r"[ \t]+(?=\n)")


class TidyLines:
    """Writes on without the blanks that a terminal's layout leaves at the ends of lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write whole lines."""
        self._stream.write(_TRAILING_BLANKS.sub("", text))
        return len(text)

    def flush(self) -> None:
        """Pass on what is buffered."""
        self._stream.flush()


def usd(micros: object) -> str:
    """Return a cost in dollars, exact to the millionth."""
    if not isinstance(micros, int):
        return "unknown"
    return f"${micros // _MICROS}.{micros % _MICROS:06d}"


def plain(text: str) -> str:
    """Return text of others without the control characters that could steer a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def demo_mark(is_demo: bool) -> str:  # noqa: FBT001 - reads well where it is used
    """Return what follows the name of a worker that only demonstrates."""
    return " [demo]" if is_demo else ""


def moment(time_us: object) -> str:
    """Return a moment given in microseconds since 1970, in UTC."""
    if not isinstance(time_us, int):
        return "unknown"
    seconds, micros = divmod(time_us, _MICROS)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{micros // 1000:03d} UTC"


def receipt_words(receipt: Mapping[str, Any] | None) -> str:
    """Return a receipt in one line: which leaves, under which signed checkpoint."""
    if not receipt:
        return "none: the run is not sealed"
    leaves = _ranges(receipt.get("leaf_indices") or ())
    origin, size = [*str(receipt.get("checkpoint", "")).split("\n"), "?", "?"][:2]
    return f"leaves {leaves}; checkpoint of {size} leaves signed by {origin}"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural where it must be."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _ranges(indices: Sequence[int]) -> str:
    """Return `3, 4, 9 to 12`: neighbours in a row as a range."""
    cuts = [0, *(at for at, (a, b) in enumerate(pairwise(indices), start=1) if b != a + 1), len(indices)]
    runs = [indices[start:end] for start, end in pairwise(cuts) if start < end]
    parts = (
        [f"{run[0]} to {run[-1]}"] if len(run) >= _SHORTEST_RANGE else [str(index) for index in run]
        for run in runs
    )
    return ", ".join(part for each in parts for part in each)
