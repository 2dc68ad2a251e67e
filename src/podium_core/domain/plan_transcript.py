"""A conversation as the Conductor reads it: trimmed by a stated rule, images announced, text kept as data.

The rule: system messages get at most a quarter of the room and the last message all the rest that it needs;
what is over is cut from the middle, visibly. Of the turns between, the newest that fit whole are kept.
"""

import re
from collections.abc import Sequence

from podium_core.domain.run import Message, Question

_SYSTEM_ROLES = frozenset({"system", "developer"})
_MARK_CHARS = 48
_ROLE_CHARS = 24

# What chat templates use as control tokens. A tokenizer would turn them into real boundaries, so the
# Conductor sees them broken up; the workers get the original.
_CONTROL = re.compile(
    r"<(?=[|\uff5c]|/?think\b|/?s>|bos>|eos>|pad>|unk>|(?:start|end)_of_turn>|begin_of_|end_of_)"
    r"|\[(?=/?INST\])|(?<=[|\uff5c])>",
    re.IGNORECASE,
)


def plain(text: str) -> str:
    """Return `text` as data: valid Unicode, and no sequence that a tokenizer takes for a control token."""
    valid = text.encode("utf-8", "replace").decode("utf-8")
    return _CONTROL.sub(lambda match: f"{match[0]} " if match[0] != ">" else " >", valid)


def broken_up(text: str, special_tokens: Sequence[str]) -> str:
    """Return `text` with a space inside each of `special_tokens`, so that none acts as one.

    Serving and training both pass a whole prompt through here before the chat template. Tokens of one
    character stay: there is no inside.
    """
    for token in sorted(special_tokens, key=len, reverse=True):
        if len(token) > 1 and token in text:
            text = text.replace(token, f"{token[0]} {token[1:]}")
    return text


def elided(text: str, max_chars: int) -> str:
    """Return `text`, or its two ends with a visible mark between them when it is over `max_chars`."""
    if len(text) <= max_chars:
        return text
    kept = max(0, max_chars - _MARK_CHARS)
    head, tail = kept - kept // 2, kept // 2
    return f"{text[:head]} [... {len(text) - kept} characters left out ...] {text[len(text) - tail :]}"


def cropped(text: str, max_chars: int) -> str:
    """Return the end of `text`, with a visible mark when something before it was left out."""
    if len(text) <= max_chars:
        return text
    kept = max(1, max_chars - _MARK_CHARS)
    return f"[... {len(text) - kept} characters left out ...] {text[-kept:]}"


def transcript(question: Question, max_chars: int) -> str:
    """Return the conversation as lines `role: text`, in about `max_chars` characters."""
    system = [m for m in question.history if m.role in _SYSTEM_ROLES]
    turns = [m for m in question.history if m.role not in _SYSTEM_ROLES]
    told = _joined_system(system, max_chars // 4)
    room = max_chars - len(told)
    last = _line(question.last, room)
    kept = _newest(turns, room - len(last))
    parts = [told] if told else []
    if len(kept) < len(turns):
        parts.append(f"[... {len(turns) - len(kept)} earlier messages left out ...]")
    return "\n".join([*parts, *kept, last])


def _joined_system(messages: Sequence[Message], max_chars: int) -> str:
    return elided("\n".join(_line(message, max_chars) for message in messages), max_chars)


def _newest(turns: Sequence[Message], room: int) -> list[str]:
    kept: list[str] = []
    for message in reversed(turns):
        # Longer than the room even before it is made plain: do not scan it.
        if len(message.text) > room:
            break
        line = _line(message, max(room, _MARK_CHARS))
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept[::-1]


def _line(message: Message, max_chars: int) -> str:
    # Cut before and after: the first keeps a megabyte from being scanned, the second keeps the bound.
    text = elided(plain(elided(message.text, max_chars)), max_chars)
    role = re.sub(r"[^a-z]", "", message.role.lower())[:_ROLE_CHARS] or "user"
    images = message.image_count
    shown = (
        f" [with {images} image{'s' if images > 1 else ''} that only the models can see]" if images else ""
    )
    return f"{role}: {text}{shown}"
