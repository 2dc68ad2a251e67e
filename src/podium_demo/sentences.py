"""Splits an instruction into the commands it strings together: `multiply 2 by 3, then reverse it`."""

import re

from podium_core.domain.quotes import mask_quotes

_STARTERS = frozenset(
    """
    add average calculate capitalise capitalize change compute concatenate convert count decrease divide
    double evaluate express find give halve how increase is join list lowercase make multiply negate put
    raise remove render replace reverse round sort spell square subtract sum take tell total translate triple
    turn uppercase what what's when which who whose work write
    """.split()  # noqa: SIM905 - a list of 50 quoted words reads worse
)
_FILLERS = frozenset(
    {"and", "then", "finally", "also", "next", "afterwards", "please", "now", "after", "that"}
)
_BREAK = re.compile(r"[,;.?!]+(?=\s|$)|(?<=\s)(?:and|then)(?=\s)", re.IGNORECASE)
_WORD = re.compile(r"[a-z']+", re.IGNORECASE)


def split_commands(text: str) -> list[str]:
    """Return the commands in `text`, in order, without the words that only connect them.

    A break counts only where a new command starts after it, so `add 3, 4 and 5` stays whole.
    """
    masked = mask_quotes(text)
    starts = [0]
    cuts: list[int] = []
    for match in _BREAK.finditer(masked):
        begin = _command_start(masked, match.end())
        if begin is not None and begin > starts[-1]:
            cuts.append(match.start())
            starts.append(begin)
    pieces = [text[start:end] for start, end in zip(starts, [*cuts, len(text)], strict=True) if end > start]
    return [piece for piece in (_trimmed(piece) for piece in pieces) if piece]


def _command_start(masked: str, position: int) -> int | None:
    """Return where the command after `position` starts, or None when no command follows."""
    for match in _WORD.finditer(masked, position, position + 80):
        if masked[position : match.start()].strip(" ,\n\t\r"):
            return None
        word = match.group().lower()
        if word not in _FILLERS:
            return match.start() if word in _STARTERS else None
        position = match.end()
    return None


def _trimmed(piece: str) -> str:
    return piece.strip().strip(",;").strip()
