"""How this command says amounts, marks and receipts, the same in every view."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

_MICROS = 1_000_000


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
    leaves = [str(index) for index in receipt.get("leaf_indices") or ()]
    origin, size = [*str(receipt.get("checkpoint", "")).split("\n"), "?", "?"][:2]
    return f"leaves {', '.join(leaves)}; checkpoint of {size} leaves signed by {origin}"
