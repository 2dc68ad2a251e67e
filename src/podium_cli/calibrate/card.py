"""Writes measured skills into `pool.yaml` and leaves every other character of it as it is.

The text is edited at the places that the YAML parser names; what comes out must load to the same pool but for
the cards, or nothing is written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import yaml

from podium_cli.calibrate.results import WorkerScore
from podium_cli.failures import CliError
from podium_cli.yaml_edit import (
    Edit,
    appended,
    edited,
    is_filled,
    parse,
    read_text,
    rewrite,
    value_of,
    with_field,
    write_like,
)
from podium_core.config.pool import PoolFile, load_pool
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
    backup = path.with_name(f"{path.name}.bak")

    def change(text: str) -> str:
        load_pool(path)  # says by the line what is wrong with the file
        return with_cards(text, cards)

    def check(draft: Path) -> None:
        _check(load_pool(path), load_pool(draft), cards)
        write_like(backup, read_text(path), path.stat())

    rewrite(path, change, check)
    return backup


def with_cards(text: str, cards: Mapping[str, NewCard]) -> str:
    """Return the text of a valid pool file with the cards in it."""
    workers = value_of(parse(text), "workers")
    nodes = {
        name.value: node
        for node in (workers.value if isinstance(workers, yaml.SequenceNode) else ())
        if isinstance(name := value_of(node, "id"), yaml.ScalarNode)
    }
    edits: list[Edit] = []
    for worker_id, card in cards.items():
        if worker_id not in nodes:
            raise CliError(f"the pool file has no worker {worker_id} any more")
        edits += _card_edits(text, nodes[worker_id], card)
    return edited(text, edits)


def _card_edits(text: str, worker: yaml.Node, card: NewCard) -> list[Edit]:
    fields: dict[str, str | list[str]] = {}
    if card.skills:
        fields["skills"] = [_entry(skill) for skill in card.skills]
    if card.output_tokens_per_second:
        fields["output_tokens_per_second"] = str(card.output_tokens_per_second)
    old = value_of(worker, "card")
    if not fields:
        return []
    if not is_filled(old):
        return [with_field(text, worker, "card", fields)]
    skills = value_of(old, "skills")
    edits: list[Edit] = []
    if card.skills and isinstance(skills, yaml.SequenceNode) and skills.value:
        edits = _skill_edits(text, skills, card.skills)
        del fields["skills"]
    return edits + [with_field(text, old, key, value) for key, value in fields.items()]


def _skill_edits(text: str, sequence: yaml.SequenceNode, skills: Sequence[Skill]) -> list[Edit]:
    """Change the values of skills that are there, and add the others below."""
    known = {name.value: node for node in sequence.value if (name := value_of(node, "name")) is not None}
    edits: list[Edit] = []
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
        places = ((value_of(node, name), words) for name, words in values.items())
        edits += [Edit(p.start_mark.index, p.end_mark.index, words) for p, words in places if p is not None]
    if added:
        edits.append(appended(text, sequence, added))
    return edits


def _entry(skill: Skill) -> str:
    return (
        f'{{name: {skill.name}, accuracy: "{_share(skill.accuracy_ppm)}", n: {skill.sample_count},'
        f" measured_on: {skill.measured_on}}}"
    )


def _share(ppm: int) -> str:
    """Return millionths as a decimal with three to six places, exactly."""
    digits = f"{ppm:07d}"
    return f"{digits[:-6]}.{digits[-6:-3]}{digits[-3:].rstrip('0')}"


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
