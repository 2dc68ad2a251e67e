"""Writes measured skills into `pool.yaml` and leaves every other character of it as it is.

The text is edited at the places that the YAML parser names; what comes out must load to the same pool but for
the cards, or nothing is written.
"""

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import yaml

from podium_cli.calibrate.results import WorkerScore
from podium_cli.failures import CliError
from podium_core.config.pool import PoolFile, load_pool
from podium_core.domain.errors import PodiumError
from podium_core.domain.pool import Skill


@dataclass(frozen=True, slots=True)
class NewCard:
    """What to put on one worker's card. Skills that are not named stay; speed 0 stays too."""

    skills: tuple[Skill, ...]
    output_tokens_per_second: int


def new_card(score: WorkerScore, measured_on: date) -> NewCard:
    """Return the card that a score makes; skills without a graded answer are left out."""
    skills = tuple(
        Skill(name, skill.accuracy_ppm, skill.count, measured_on.isoformat())
        for name, skill in score.skills.items()
        if skill.count
    )
    return NewCard(skills, score.output_tokens_per_second)


def write_cards(path: Path, cards: Mapping[str, NewCard]) -> Path:
    """Put the cards into the pool file, all or nothing; return where its former text is kept.

    Raises CliError, with the file untouched.
    """
    path = path.resolve()
    try:
        before, text = load_pool(path), _read(path)
        draft = path.with_name(f".{path.name}.new")
        _write(draft, with_cards(text, cards), path.stat())
        try:
            _check(before, load_pool(draft), cards)
            if _read(path) != text:
                raise CliError(f"{path} was changed meanwhile; run the same command again")
            backup = path.with_name(f"{path.name}.bak")
            _write(backup, text, path.stat())
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except PodiumError as error:
        raise CliError(error.message) from None
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error.strerror}") from None
    return backup


def with_cards(text: str, cards: Mapping[str, NewCard]) -> str:
    """Return the text of a valid pool file with the cards in it."""
    workers = _value(yaml.compose(text, Loader=yaml.BaseLoader), "workers")
    nodes = {
        name.value: node
        for node in (workers.value if isinstance(workers, yaml.SequenceNode) else ())
        if isinstance(name := _value(node, "id"), yaml.ScalarNode)
    }
    edits: list[_Edit] = []
    for worker_id, card in cards.items():
        if worker_id not in nodes:
            raise CliError(f"the pool file has no worker {worker_id} any more")
        edits += _card_edits(text, nodes[worker_id], card)
    pieces: list[str] = []
    position = 0
    for edit in sorted(edits, key=lambda edit: edit.start):  # stable: those of one place keep their order
        pieces += [text[position : edit.start], edit.words]
        position = edit.end
    return "".join([*pieces, text[position:]])


@dataclass(frozen=True, slots=True)
class _Edit:
    """The characters from `start` to before `end` become `words`."""

    start: int
    end: int
    words: str


def _card_edits(text: str, worker: yaml.Node, card: NewCard) -> list[_Edit]:
    fields: dict[str, str | list[str]] = {}
    if card.skills:
        fields["skills"] = [_entry(skill) for skill in card.skills]
    if card.output_tokens_per_second:
        fields["output_tokens_per_second"] = str(card.output_tokens_per_second)
    old = _value(worker, "card")
    if not fields:
        return []
    if not _is_filled(old):
        return [_set(text, worker, "card", fields)]
    skills = _value(old, "skills")
    edits: list[_Edit] = []
    if card.skills and isinstance(skills, yaml.SequenceNode) and skills.value:
        edits = _skill_edits(text, skills, card.skills)
        del fields["skills"]
    return edits + [_set(text, old, key, value) for key, value in fields.items()]


def _skill_edits(text: str, sequence: yaml.SequenceNode, skills: Sequence[Skill]) -> list[_Edit]:
    """Change the values of skills that are there, and add the others below."""
    known = {name.value: node for node in sequence.value if (name := _value(node, "name")) is not None}
    edits: list[_Edit] = []
    added: list[str] = []
    for skill in skills:
        node = known.get(skill.name)
        if node is None:
            added.append(_entry(skill))
            continue
        values = {
            "accuracy": f'"{_share(skill.accuracy_ppm)}"',
            "n": str(skill.sample_count),
            "measured_on": skill.measured_on,
        }
        places = ((_value(node, name), words) for name, words in values.items())
        edits += [_Edit(p.start_mark.index, p.end_mark.index, words) for p, words in places if p is not None]
    if added:
        edits.append(_append(text, sequence, added))
    return edits


def _append(text: str, sequence: yaml.SequenceNode, entries: Sequence[str]) -> _Edit:
    end = _end(sequence.value[-1])
    if sequence.flow_style:
        return _Edit(end, end, "".join(f", {entry}" for entry in entries))
    return _new_lines(text, end, sequence.start_mark.column, [f"- {entry}" for entry in entries])


_Content = str | list[str] | dict[str, str | list[str]]


def _set(text: str, mapping: yaml.Node | None, key: str, content: _Content) -> _Edit:
    """Give a field of a mapping its content, in the style that the mapping has."""
    assert isinstance(mapping, yaml.MappingNode)
    old = _value(mapping, key)
    if old is not None:
        start, end = old.start_mark.index, _end(old)
        space = " " if start == end else ""  # the field was there without a value
        return _Edit(start, end, f"{space}{_flow(content)}")
    if not mapping.value:
        start = mapping.start_mark.index + 1
        return _Edit(start, start, f"{key}: {_flow(content)}")
    end = _end(mapping.value[-1][1])
    if mapping.flow_style:
        return _Edit(end, end, f", {key}: {_flow(content)}")
    return _new_lines(text, end, mapping.start_mark.column, _block(key, content))


def _flow(content: _Content) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return f"[{', '.join(content)}]"
    return "{" + ", ".join(f"{key}: {_flow(value)}" for key, value in content.items()) + "}"


def _block(key: str, content: _Content) -> list[str]:
    if isinstance(content, str):
        return [f"{key}: {content}"]
    if isinstance(content, list):
        return [f"{key}:", *(f"  - {entry}" for entry in content)]
    inner = [line for name, value in content.items() for line in _block(name, value)]
    return [f"{key}:", *(f"  {line}" for line in inner)]


def _new_lines(text: str, position: int, column: int, lines: Sequence[str]) -> _Edit:
    """Add lines below the one that holds `position`, so that a comment there stays with its line."""
    newline = "\r\n" if "\r\n" in text else "\n"
    end = text.find(newline, position)
    end = len(text) if end < 0 else end
    return _Edit(end, end, "".join(f"{newline}{' ' * column}{line}" for line in lines))


def _entry(skill: Skill) -> str:
    return (
        f'{{name: {skill.name}, accuracy: "{_share(skill.accuracy_ppm)}", n: {skill.sample_count},'
        f" measured_on: {skill.measured_on}}}"
    )


def _share(ppm: int) -> str:
    """Return millionths as a decimal with three to six places, exactly."""
    digits = f"{ppm:07d}"
    return f"{digits[:-6]}.{digits[-6:-3]}{digits[-3:].rstrip('0')}"


def _value(node: yaml.Node | None, key: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for name, value in node.value if name.value == key), None)


def _is_filled(node: yaml.Node | None) -> bool:
    return isinstance(node, yaml.CollectionNode) and bool(node.value)


def _end(node: yaml.Node) -> int:
    """Return where a node's own text ends; a block's end mark lies beyond comments that follow it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(node, yaml.MappingNode) else last)
    end: int = node.end_mark.index
    return end


def _check(before: PoolFile, after: PoolFile, cards: Mapping[str, NewCard]) -> None:
    """Refuse a text that says anything but the old pool with the new cards."""
    is_same = len(before.entries) == len(after.entries)
    for old, new in zip(before.entries, after.entries, strict=False):
        card = cards.get(old.worker.worker_id, NewCard((), 0))
        is_same = is_same and replace(old, worker=replace(old.worker, card=new.worker.card)) == new
        kept = {s.name: s for s in old.worker.card.skills} | {s.name: s for s in card.skills}
        wanted = replace(
            old.worker.card,
            skills=tuple(kept.values()),
            output_tokens_per_second=card.output_tokens_per_second
            or old.worker.card.output_tokens_per_second,
        )
        is_same = is_same and wanted == new.worker.card
    if not is_same:
        raise CliError(
            "the pool file is written in a way that cannot be edited safely; it is unchanged",
            hint="write each worker's card as a list of skills, as docs/config.md shows it",
        )


def _read(path: Path) -> str:
    with path.open(encoding="utf-8", newline="") as file:
        return file.read()


def _write(path: Path, text: str, like: os.stat_result) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IMODE(like.st_mode))
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
