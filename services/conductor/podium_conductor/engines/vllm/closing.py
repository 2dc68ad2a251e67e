"""Closes a plan text that the token limit cut short, by rule, so that a served plan always parses.

The model's own words are kept. What it did not get to write is filled in plainly: a subtask that was begun
ends where it was cut, later ones are empty (the worker gets the question as it stands), and a step whose
access was not written reads every earlier step. The text says that this was done.
"""

import re

_IDS = re.compile(r"model_id = \[(\d+(?:, \d+)*)\]\n")
_SUBTASKS = "subtasks = ["
_ACCESS = "access_list = ["
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ENTRY = re.compile(r"\[[^\[\]]*\]")
CLOSED = "\n# closed by rule: the token limit cut the plan here"


def close_plan(cut: str) -> str:
    """Return the whole plan text for one that was cut; unchanged when even its worker ids are missing."""
    ids = _IDS.search(cut)
    if ids is None:
        return cut
    count = len(ids[1].split(","))
    head, rest = cut[: ids.end()], cut[ids.end() :]
    strings, _, access = rest.removeprefix(_SUBTASKS).partition(f"]\n{_ACCESS}")
    subtasks = [match[0] for match in _STRING.finditer(strings)][:count]
    begun = _STRING.sub("", strings).lstrip(", ")
    if len(subtasks) < count and begun.startswith('"'):
        subtasks.append(f'{_whole_escapes(begun)}"')
    subtasks += ['""'] * (count - len(subtasks))
    entries = [match[0] for match in _ENTRY.finditer(access)][:count]
    entries += ['["all"]' if step else "[]" for step in range(len(entries), count)]
    return f"{head}{_SUBTASKS}{', '.join(subtasks)}]\n{_ACCESS}{', '.join(entries)}]{CLOSED}"


def _whole_escapes(begun: str) -> str:
    """Return the begun string without an escape that was cut in half."""
    backslashes = len(begun) - len(begun.rstrip("\\"))
    return begun[:-1] if backslashes % 2 else begun
