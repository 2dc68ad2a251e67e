"""Edits a YAML file's text at the places that the parser names, and leaves every other character as it is.

Comments, quotes and order stay. Whoever edits checks that the draft loads to what was meant before it takes
the file's place, all or nothing.
"""

import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from podium_cli.failures import CliError
from podium_core.domain.errors import PodiumError

Content = str | Sequence[str] | Mapping[str, str | Sequence[str]]
"""A scalar as it is written, a list of entries in flow style, or fields."""


@dataclass(frozen=True, slots=True)
class Edit:
    """The characters from `start` to before `end` become `words`."""

    start: int
    end: int
    words: str


def parse(text: str) -> yaml.Node | None:
    """Return the nodes of a text that is known to be valid."""
    node: yaml.Node | None = yaml.compose(text, Loader=yaml.BaseLoader)
    return node


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with edits that do not overlap; those of one place keep their order."""
    pieces: list[str] = []
    position = 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        pieces += [text[position : edit.start], edit.words]
        position = edit.end
    return "".join([*pieces, text[position:]])


def value_of(node: yaml.Node | None, key: str) -> yaml.Node | None:
    """Return the node of a mapping's field; None when there is none."""
    if not isinstance(node, yaml.MappingNode):
        return None
    found: yaml.Node | None = next((value for name, value in node.value if name.value == key), None)
    return found


def item_named(sequence: yaml.Node | None, name: str) -> yaml.Node | None:
    """Return the item of a list of mappings whose `id` is `name`."""
    items: list[yaml.Node] = sequence.value if isinstance(sequence, yaml.SequenceNode) else []
    for item in items:
        found = value_of(item, "id")
        if isinstance(found, yaml.ScalarNode) and found.value == name:
            return item
    return None


def is_filled(node: yaml.Node | None) -> bool:
    """Whether the node is a list or mapping that holds something."""
    return isinstance(node, yaml.CollectionNode) and bool(node.value)


def appended(text: str, sequence: yaml.SequenceNode, entries: Sequence[str]) -> Edit:
    """Add entries, each one line, below the last one of a list that is not empty."""
    end = _end(sequence.value[-1])
    if sequence.flow_style:
        return Edit(end, end, "".join(f", {entry}" for entry in entries))
    return _new_lines(text, end, sequence.start_mark.column, [f"- {entry}" for entry in entries])


def with_field(text: str, mapping: yaml.Node | None, key: str, content: Content) -> Edit:
    """Give a field of a mapping its content, in the style that the mapping has."""
    assert isinstance(mapping, yaml.MappingNode)
    old = value_of(mapping, key)
    if old is not None:
        start, end = old.start_mark.index, _end(old)
        space = " " if start == end else ""  # the field was there without a value
        return Edit(start, end, f"{space}{_flow(content)}")
    if not mapping.value:
        start = mapping.start_mark.index + 1
        return Edit(start, start, f"{key}: {_flow(content)}")
    end = _end(mapping.value[-1][1])
    if mapping.flow_style:
        return Edit(end, end, f", {key}: {_flow(content)}")
    return _new_lines(text, end, mapping.start_mark.column, _block(key, content))


def without_item(text: str, sequence: yaml.SequenceNode, item: yaml.Node) -> Edit:
    """Take an item out of a list, with its lines or its comma."""
    place = sequence.value.index(item)
    if sequence.flow_style:
        if place:
            return Edit(_end(sequence.value[place - 1]), _end(item), "")
        following = sequence.value[1] if len(sequence.value) > 1 else None
        start: int = item.start_mark.index
        return Edit(start, _end(item) if following is None else following.start_mark.index, "")
    start = text.rfind("\n", 0, item.start_mark.index) + 1
    end = text.find("\n", _end(item))
    return Edit(start, len(text) if end < 0 else end + 1, "")


def rewrite(path: Path, change: Callable[[str], str], check: Callable[[Path], None]) -> str:
    """Put the changed text in the file's place once `check` accepts the draft; return the former text.

    Raises CliError, with the file untouched. A link is followed and the file's mode is kept.
    """
    path = path.resolve()
    draft = path.with_name(f".{path.name}.new")
    try:
        text = read_text(path)
        write_like(draft, change(text), path.stat())
        try:
            check(draft)
            if read_text(path) != text:
                raise CliError(f"{path} was changed meanwhile; run the same command again")
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except PodiumError as error:
        raise CliError(error.message) from None
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error.strerror}") from None
    return text


def read_text(path: Path) -> str:
    """Return a file's text with its line ends as they are."""
    with path.open(encoding="utf-8", newline="") as file:
        return file.read()


def write_like(path: Path, text: str, like: os.stat_result) -> None:
    """Write a new file durably with another one's mode."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IMODE(like.st_mode))
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _flow(content: Content) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(value)}" for key, value in content.items()) + "}"
    return f"[{', '.join(content)}]"


def _block(key: str, content: Content) -> list[str]:
    if isinstance(content, str):
        return [f"{key}: {content}"]
    if isinstance(content, Mapping):
        inner = [line for name, value in content.items() for line in _block(name, value)]
        return [f"{key}:", *(f"  {line}" for line in inner)]
    return [f"{key}:", *(f"  - {entry}" for entry in content)]


def _new_lines(text: str, position: int, column: int, lines: Sequence[str]) -> Edit:
    """Add lines below the one that holds `position`, so that a comment there stays with its line."""
    newline = "\r\n" if "\r\n" in text else "\n"
    end = text.find(newline, position)
    end = len(text) if end < 0 else end
    return Edit(end, end, "".join(f"{newline}{' ' * column}{line}" for line in lines))


def _end(node: yaml.Node) -> int:
    """Return where a node's own text ends; a block's end mark lies beyond comments that follow it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(node, yaml.MappingNode) else last)
    end: int = node.end_mark.index
    return end
