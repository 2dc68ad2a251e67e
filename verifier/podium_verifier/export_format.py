"""The export file: one canonical JSON object per line, in one order, nothing else.

    header, checkpoint, history…, anchor…, consistency…, leaf…, content…, body…, end

Reading it checks form only: which lines, which keys, which encodings. What the lines claim is checked by
the modules for the checkpoint, the tree, the run's order and the content.
"""

import hashlib
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podium_verifier import canonical_json, shape
from podium_verifier.faults import ExitCode, fail

FORMAT = "podium-export/1"
"""The record of one run."""
RECORDS_FORMAT = "podium-records/1"
"""A tenant's records without a gap: `run_id` is empty, and there is no content."""

_LEAF_LINE = {"index": shape.count, "leaf": shape.text, "proof": shape.list_of(shape.text)}
_FIELDS: dict[str, Mapping[str, shape.Check]] = {
    "header": {
        "format": shape.one_of(FORMAT, RECORDS_FORMAT),
        "origin": shape.text,
        "run_id": shape.text,
        "tenant_id": shape.text,
        "vkey": shape.text,
        "with_content": shape.flag,
    },
    "checkpoint": {"note": shape.text},
    "history": _LEAF_LINE,
    "anchor": {"note": shape.text, "proof": shape.list_of(shape.text)},
    "consistency": {"from": shape.count, "proof": shape.list_of(shape.text)},
    "leaf": _LEAF_LINE,
    "content": {"index": shape.count, "part_id": shape.text, "data": shape.text, "salt": shape.text},
    "body": {"index": shape.count, "part_id": shape.text, "salt": shape.text},
    "end": {"lines": shape.count, "sha256": shape.digest},
}
_ORDER = tuple(_FIELDS)
_LINE = {kind: shape.record({"line": shape.exactly(kind), **fields}) for kind, fields in _FIELDS.items()}
_ONCE = frozenset({"header", "checkpoint", "end"})


@dataclass(frozen=True, slots=True)
class Header:
    """What the export says it is."""

    format: str
    origin: str
    run_id: str
    tenant_id: str
    vkey: str
    with_content: bool


@dataclass(frozen=True, slots=True)
class LeafLine:
    """One leaf, its place in the log and the proof of it."""

    line: int
    index: int
    data: bytes
    proof: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class PartLine:
    """The salt of one commitment, with the content itself unless it is a joined body (`data` is None)."""

    line: int
    index: int
    part_id: str
    data: bytes | None
    salt: bytes


@dataclass(frozen=True, slots=True)
class EarlierLine:
    """The proof that the export's checkpoint continues an earlier one: a whole note, or only its size."""

    line: int
    proof: tuple[bytes, ...]
    note: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True)
class Export:
    """The lines of an export, decoded. `history` are leaves about the log itself."""

    header: Header
    note: str
    history: tuple[LeafLine, ...]
    anchors: tuple[EarlierLine, ...]
    consistency: tuple[EarlierLine, ...]
    leaves: tuple[LeafLine, ...]
    contents: tuple[PartLine, ...]
    bodies: tuple[PartLine, ...]
    end_line: int
    stated_digest: str
    digest: str


def read_export(data: bytes) -> Export:
    """Decode an export; raise FaultError at the first line that is not as it must be."""
    lines = data.split(b"\n")
    if not data:
        fail(ExitCode.MALFORMED, "the file is empty")
    if lines.pop():
        fail(
            ExitCode.TAIL,
            "the last line is cut off: it does not end with a newline",
            line=len(lines) + 1,
        )
    decoded: dict[str, list[tuple[int, dict[str, Any]]]] = {kind: [] for kind in _ORDER}
    rank = 0
    for number, line in enumerate(lines, 1):
        kind, fields = _read_line(number, line)
        rank = _next_rank(number, kind, rank, is_first=not decoded[kind])
        decoded[kind].append((number, fields))
    if not decoded["end"]:
        fail(ExitCode.TAIL, "the tail is missing: no end line follows", line=len(lines))
    end = decoded["end"][0][1]
    if end["lines"] != len(lines):
        fail(ExitCode.MALFORMED, f"says {end['lines']} lines, {len(lines)} are here", line=len(lines))
    if not decoded["leaf"]:
        fail(ExitCode.MALFORMED, "the export holds no leaf")
    return Export(
        header=Header(**{key: decoded["header"][0][1][key] for key in Header.__slots__}),
        note=decoded["checkpoint"][0][1]["note"],
        history=_ascending([_leaf_line(number, fields) for number, fields in decoded["history"]]),
        anchors=tuple(_earlier_line(number, fields) for number, fields in decoded["anchor"]),
        consistency=tuple(_earlier_line(number, fields) for number, fields in decoded["consistency"]),
        leaves=_ascending([_leaf_line(number, fields) for number, fields in decoded["leaf"]]),
        contents=tuple(_part_line(number, fields) for number, fields in decoded["content"]),
        bodies=tuple(_part_line(number, fields) for number, fields in decoded["body"]),
        end_line=len(lines),
        stated_digest=end["sha256"],
        digest=hashlib.sha256(data[: len(data) - len(lines[-1]) - 1]).hexdigest(),
    )


def _read_line(number: int, line: bytes) -> tuple[str, dict[str, Any]]:
    try:
        fields = canonical_json.parse_object(line)
        kind = fields.get("line")
        if not isinstance(kind, str) or kind not in _LINE:
            raise ValueError(f"the key 'line' must name one of {', '.join(_ORDER)}")  # noqa: TRY301 - one exit
        _LINE[kind](fields, f"the {kind} line")
    except ValueError as error:
        fail(ExitCode.MALFORMED, str(error), line=number)
    return kind, fields


def _next_rank(number: int, kind: str, rank: int, *, is_first: bool) -> int:
    """Hold the order of kinds: the first two lines each once, then the others in order, then the end."""
    if number <= 2 and kind != _ORDER[number - 1]:  # noqa: PLR2004 - header, checkpoint
        fail(ExitCode.MALFORMED, f"must be the {_ORDER[number - 1]} line, is a {kind} line", line=number)
    here = _ORDER.index(kind)
    if here < rank or (kind in _ONCE and not is_first):
        fail(ExitCode.MALFORMED, f"a {kind} line cannot stand here", line=number)
    return here


def _leaf_line(number: int, fields: dict[str, Any]) -> LeafLine:
    return LeafLine(number, fields["index"], fields["leaf"].encode(), _proof(number, fields))


def _earlier_line(number: int, fields: dict[str, Any]) -> EarlierLine:
    return EarlierLine(number, _proof(number, fields), fields.get("note", ""), fields.get("from", 0))


def _proof(number: int, fields: dict[str, Any]) -> tuple[bytes, ...]:
    try:
        return tuple(shape.decode_base64(item, f"proof[{at}]") for at, item in enumerate(fields["proof"]))
    except ValueError as error:
        fail(ExitCode.MALFORMED, str(error), line=number, leaf_index=fields.get("index"))


def _part_line(number: int, fields: dict[str, Any]) -> PartLine:
    try:
        data = shape.decode_base64(fields["data"], "data") if "data" in fields else None
        salt = shape.decode_base64(fields["salt"], "salt")
    except ValueError as error:
        fail(ExitCode.MALFORMED, str(error), line=number, leaf_index=fields["index"])
    return PartLine(number, fields["index"], fields["part_id"], data, salt)


def _ascending(leaves: list[LeafLine]) -> tuple[LeafLine, ...]:
    for before, leaf in itertools.pairwise(leaves):
        if leaf.index <= before.index:
            fail(ExitCode.MALFORMED, "leaves must ascend", line=leaf.line, leaf_index=leaf.index)
    return tuple(leaves)
