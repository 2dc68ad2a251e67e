"""The log as C2SP tlog-tiles: hash tiles and entry bundles, from which anybody can build any proof."""

import re
from dataclasses import dataclass

from podium_audit.ports import LogReader
from podium_audit.tree.tiles import TILE_HEIGHT, TILE_WIDTH, read_tile
from podium_core.domain.merkle import HASH_BYTES

MAX_LEVEL = 63 // TILE_HEIGHT
_INDEX = re.compile(r"(?:x\d{3}/)*\d{3}")
_WIDTH = re.compile(r"[1-9]\d{0,2}")
_LENGTH_BYTES = 2
_MAX_INDEX_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Place:
    """Which tile: its level, its index within the level, and how many of its hashes."""

    level: int
    index: int
    width: int = TILE_WIDTH


def parse_place(level: str, name: str) -> Place | None:
    """Return the place that a path names; None when it is not written as tlog-tiles demands.

    `level` is a decimal number, or `entries` for the bundles beside level 0; `name` is `<N>[.p/<W>]` with
    N in groups of three digits, all but the last after an `x`, none of the leading ones `x000`.
    """
    number = 0 if level == "entries" else int(level) if level.isascii() and level.isdigit() else -1
    path, separator, width = name.partition(".p/")
    if not 0 <= number <= MAX_LEVEL or (level != "entries" and level != str(number)):
        return None
    if not _INDEX.fullmatch(path) or path.startswith("x000/"):
        return None
    if separator and not (_WIDTH.fullmatch(width) and int(width) < TILE_WIDTH):
        return None
    digits = path.replace("x", "").replace("/", "")
    if len(digits) > _MAX_INDEX_DIGITS:
        return None
    return Place(number, int(digits), int(width) if separator else TILE_WIDTH)


def hashes(reader: LogReader, place: Place, size: int) -> bytes | None:
    """Return a tile of the log of `size` leaves; None when it is not that full yet. Raises StoreError."""
    if place.index * TILE_WIDTH + place.width > size >> place.level * TILE_HEIGHT:
        return None
    tile = read_tile(reader, place.level, place.index)[: place.width * HASH_BYTES]
    return tile if len(tile) == place.width * HASH_BYTES else None


def entries(reader: LogReader, place: Place, size: int) -> bytes | None:
    """Return the leaves below a tile of level 0, each after its length as two bytes, big end first.

    None when there are not that many yet. Raises StoreError.
    """
    begin = place.index * TILE_WIDTH
    if begin + place.width > size:
        return None
    leaves = reader.leaves(begin, begin + place.width)
    if len(leaves) < place.width:
        return None
    return b"".join(len(leaf).to_bytes(_LENGTH_BYTES) + leaf for leaf in leaves)
