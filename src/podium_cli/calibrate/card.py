"""Writes measured skills into `pool.yaml` and leaves every other character of it as it is.

The text is edited at the places that the YAML parser names; what comes out must load to the same pool but for
the cards, or nothing is written.
"""

import os
import stat
from collections.abc import Mapping
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
    for worker_id, card in cards.items():
        if card.output_tokens_per_second:
            text = _set_speed(text, worker_id, card.output_tokens_per_second)
        for skill in card.skills:
            text = _set_skill(text, worker_id, skill)
    return text


def _set_speed(text: str, worker_id: str, speed: int) -> str:
    worker = _worker(text, worker_id)
    card = _value(worker, "card")
    if not _is_filled(card):
        return _set(text, worker, "card", f"{{output_tokens_per_second: {speed}}}")
    return _set(text, card, "output_tokens_per_second", str(speed))


def _set_skill(text: str, worker_id: str, skill: Skill) -> str:
    accuracy = _share(skill.accuracy_ppm)
    entry = (
        f'{{name: {skill.name}, accuracy: "{accuracy}", n: {skill.sample_count},'
        f" measured_on: {skill.measured_on}}}"
    )
    worker = _worker(text, worker_id)
    card = _value(worker, "card")
    if not _is_filled(card):
        return _set(text, worker, "card", f"{{skills: [{entry}]}}")
    skills = _value(card, "skills")
    if not _is_filled(skills):
        return _set(text, card, "skills", f"[{entry}]")
    assert isinstance(skills, yaml.SequenceNode)
    for node in skills.value:
        name = _value(node, "name")
        if isinstance(name, yaml.ScalarNode) and name.value == skill.name:
            return _update(text, node, accuracy, skill)
    return _append(text, skills, entry)


def _share(ppm: int) -> str:
    """Return millionths as a decimal with three to six places, exactly."""
    digits = f"{ppm:07d}"
    return f"{digits[:-6]}.{digits[-6:-3]}{digits[-3:].rstrip('0')}"


def _update(text: str, node: yaml.Node, accuracy: str, skill: Skill) -> str:
    values = {"accuracy": f'"{accuracy}"', "n": str(skill.sample_count), "measured_on": skill.measured_on}
    places = [(value, words) for name, words in values.items() if (value := _value(node, name)) is not None]
    for value, words in sorted(places, key=lambda place: -place[0].start_mark.index):
        text = text[: value.start_mark.index] + words + text[value.end_mark.index :]
    return text


def _append(text: str, sequence: yaml.SequenceNode, entry: str) -> str:
    end = _end(sequence.value[-1])
    if sequence.flow_style:
        return f"{text[:end]}, {entry}{text[end:]}"
    return _insert_line(text, end, sequence.start_mark.column, f"- {entry}")


def _set(text: str, mapping: yaml.Node | None, key: str, value: str) -> str:
    """Give a field of a mapping a value, in the style that the mapping has."""
    assert isinstance(mapping, yaml.MappingNode)
    old = _value(mapping, key)
    if old is not None:
        start, end = old.start_mark.index, _end(old)
        space = " " if start == end else ""  # the field was there without a value
        return f"{text[:start]}{space}{value}{text[end:]}"
    if not mapping.value:
        start = mapping.start_mark.index + 1
        return f"{text[:start]}{key}: {value}{text[start:]}"
    end = _end(mapping.value[-1][1])
    if mapping.flow_style:
        return f"{text[:end]}, {key}: {value}{text[end:]}"
    return _insert_line(text, end, mapping.start_mark.column, f"{key}: {value}")


def _insert_line(text: str, position: int, column: int, words: str) -> str:
    """Add a line below the one that holds `position`, so that a comment there stays with its line."""
    newline = "\r\n" if "\r\n" in text else "\n"
    end = text.find(newline, position)
    end = len(text) if end < 0 else end
    return f"{text[:end]}{newline}{' ' * column}{words}{text[end:]}"


def _worker(text: str, worker_id: str) -> yaml.Node:
    workers = _value(yaml.compose(text, Loader=yaml.BaseLoader), "workers")
    nodes = workers.value if isinstance(workers, yaml.SequenceNode) else []
    for node in nodes:
        name = _value(node, "id")
        if isinstance(name, yaml.ScalarNode) and name.value == worker_id:
            assert isinstance(node, yaml.Node)
            return node
    raise CliError(f"the pool file has no worker {worker_id} any more")


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
