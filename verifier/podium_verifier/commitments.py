"""Content against its commitments: HMAC-SHA256(salt, data), one salt per part.

The commitment stands in the leaf; salt and data travel in the export. An attempt's sent body is not
stored again: its layout names the byte ranges of parts that, joined, are what was sent.
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from podium_verifier.export_format import Export, PartLine
from podium_verifier.faults import ExitCode, fail
from podium_verifier.leaf_format import Leaf

_SALT_SIZE = 32


def check_contents(export: Export, leaves: Sequence[Leaf]) -> None:
    """Check that every part a leaf lists is here and fits, and every sent body with it.

    An export without content must hold none; then there is nothing to check.
    """
    if not export.header.with_content:
        for part in (*export.contents, *export.bodies):
            fail(ExitCode.MALFORMED, "the header says that no content is included", line=part.line)
        return
    for leaf in leaves:
        if leaf.type == "erased":
            fail(
                ExitCode.CONTENT,
                "the content is here although this leaf says that it is erased",
                line=leaf.line,
                leaf_index=leaf.index,
            )
    entries = [(leaf.index, entry) for leaf in leaves for entry in leaf.contents]
    _check_same_parts(
        [(index, entry.part_id) for index, entry in entries], export.contents, export.end_line, "content"
    )
    parts: dict[str, tuple[int, memoryview]] = {}
    for (index, entry), part in zip(entries, export.contents, strict=True):
        data = memoryview(part.data or b"")
        if part.part_id in parts:
            _fail(part, f"the part id {part.part_id!r} is used twice")
        _check_commitment(part, [data], entry.length, entry.commitment)
        parts[part.part_id] = (index, data)
    _check_bodies(export, leaves, parts)


def _check_bodies(
    export: Export, leaves: Sequence[Leaf], parts: Mapping[str, tuple[int, memoryview]]
) -> None:
    begun = [leaf for leaf in leaves if leaf.type == "attempt_begun"]
    wanted = [(leaf.index, str(leaf.facts["body"]["salt_part_id"])) for leaf in begun]
    _check_same_parts(wanted, export.bodies, export.end_line, "body")
    for leaf, salt in zip(begun, export.bodies, strict=True):
        body = leaf.facts["body"]
        pieces = [_piece(salt, leaf.index, piece, parts) for piece in body["layout"]]
        _check_commitment(salt, pieces, body["length"], bytes.fromhex(body["commitment"]))


def _piece(
    salt: PartLine, leaf_index: int, piece: Mapping[str, Any], parts: Mapping[str, tuple[int, memoryview]]
) -> memoryview:
    index, data = parts.get(piece["part_id"], (None, memoryview(b"")))
    if index is None or index > leaf_index:
        _fail(salt, f"the body uses the part {piece['part_id']!r}, which no earlier leaf lists")
    if not piece["from"] <= piece["to"] <= len(data):
        _fail(salt, f"the body uses bytes outside the part {piece['part_id']!r}")
    return data[piece["from"] : piece["to"]]


def _check_same_parts(
    wanted: Sequence[tuple[int, str]], present: Sequence[PartLine], end_line: int, kind: str
) -> None:
    for (index, part_id), part in zip(wanted, present, strict=False):
        if (part.index, part.part_id) != (index, part_id):
            _fail(part, f"{kind} {part_id!r} of leaf {index} must stand here, not {part.part_id!r}")
    if len(present) > len(wanted):
        _fail(present[len(wanted)], f"no leaf lists this {kind}")
    if len(present) < len(wanted):
        index, part_id = wanted[len(present)]
        fail(ExitCode.CONTENT, f"{kind} {part_id!r} is missing", line=end_line, leaf_index=index)


def _check_commitment(part: PartLine, pieces: Sequence[memoryview], length: int, commitment: bytes) -> None:
    if len(part.salt) != _SALT_SIZE:
        _fail(part, f"the salt of {part.part_id!r} must be {_SALT_SIZE} bytes")
    actual = sum(len(piece) for piece in pieces)
    if actual != length:
        _fail(part, f"{part.part_id!r} has {actual} bytes, the leaf says {length}")
    code = hmac.new(part.salt, digestmod=hashlib.sha256)
    for piece in pieces:
        code.update(piece)
    if not hmac.compare_digest(code.digest(), commitment):
        _fail(part, f"{part.part_id!r} does not match its commitment")


def _fail(part: PartLine, message: str) -> NoReturn:
    fail(ExitCode.CONTENT, message, line=part.line, leaf_index=part.index)
