"""`pins.yaml`: what a dated model name such as `podium@2026-11-30` stands for."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints

from podium_core.config.yaml_file import ListOf, Section, read_document

_MAX_PINS = 1_000

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


@dataclass(frozen=True, slots=True)
class Pin:
    """What was loaded on one day: the pool, and the Conductor's model, by digest."""

    day: str
    pool_digest: str
    model_digest: str


@dataclass(frozen=True, slots=True)
class Pins:
    """All pins of one version of the file, by day."""

    by_day: Mapping[str, Pin]


NO_PINS = Pins({})


def load_pins(path: Path) -> Pins:
    """Return what `pins.yaml` says; raise PodiumError (INVALID_REQUEST) naming line and mistake."""
    document = read_document(path, _PinsFile)
    pins: dict[str, Pin] = {}
    for index, section in enumerate(document.content.pins):
        day = section.date.isoformat()
        if day in pins:
            raise document.error(("pins", index, "date"), f"there are two pins of {day}; keep one")
        pins[day] = Pin(day, section.pool_digest, section.model_digest)
    return Pins(pins)


class _PinSection(Section):
    date: date
    pool_digest: Digest
    model_digest: Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[\x21-\x7e]+$")]


class _PinsFile(Section):
    pins: Annotated[ListOf[_PinSection], Field(max_length=_MAX_PINS)] = ()
