"""The export of one run, `podium-export/1`: everything a stranger needs to check it without this service.

Lines of canonical JSON, built from one checkpoint. They are made one by one, since content may be large.
"""

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from podium_audit import contents
from podium_audit.anchors import COSIGNATURE, AnchorRow
from podium_audit.ports import StoreError
from podium_audit.readers import View
from podium_audit.run_page import FoundRun, read_part
from podium_audit.run_state import PARTS_PER_LEAF
from podium_audit.tiles import TileNodes, inclusion_proof
from podium_core.domain import merkle

FORMAT = "podium-export/1"

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


@dataclass(frozen=True, slots=True)
class ExportOf:
    """What is exported, under which checkpoint.

    `since` asks how that continues a smaller log, `anchors` are what ties the log down outside.
    """

    found: FoundRun
    origin: str
    vkey: str
    note: str
    size: int
    with_content: bool
    since: int | None = None
    anchors: Sequence[AnchorRow] = ()


def lines(view: View, export: ExportOf) -> Iterator[bytes]:
    """Yield the lines of the file, each with its newline. Raises StoreError."""
    count, digest = 1, sha256()
    for line in _body(view, export):
        data = _encode(line).encode() + b"\n"
        count += 1
        digest.update(data)
        yield data
    end = {"line": "end", "lines": count, "sha256": digest.hexdigest()}
    yield _encode(end).encode() + b"\n"


def _body(view: View, export: ExportOf) -> Iterator[dict[str, Any]]:
    row = export.found.row
    leaves = view.log.leaves_of(row.run_no, below=export.size)
    with_content = export.with_content and _is_kept(view, leaves)
    key = view.keys.get(row.key_no) if with_content else None
    yield {
        "line": "header",
        "format": FORMAT,
        "origin": export.origin,
        "run_id": row.run_id,
        "tenant_id": row.tenant_id,
        "vkey": export.vkey,
        "with_content": key is not None,
    }
    yield {"line": "checkpoint", "note": export.note}
    nodes = TileNodes(view.log)
    for index, data in view.log.history():
        if index < export.size:
            yield _leaf("history", nodes, index, data, export.size)
    yield from _anchors(view, nodes, export)
    if export.since is not None:
        proof = merkle.consistency_path(export.since, export.size, nodes)
        yield {"line": "consistency", "from": export.since, "proof": _texts(proof)}
    for index, data in leaves:
        yield _leaf("leaf", nodes, index, data, export.size)
    if key is not None:
        records = [(index, json.loads(data)) for index, data in leaves]
        yield from _contents(view, export, key, records)
        yield from _bodies(key, records)


def _anchors(view: View, nodes: TileNodes, export: ExportOf) -> Iterator[dict[str, Any]]:
    """Yield the checkpoints that witnesses cosigned, with their lines."""
    cosigned = [row for row in export.anchors if row.kind == COSIGNATURE and row.size <= export.size]
    for size in sorted({row.size for row in cosigned}):
        checkpoint = view.log.checkpoint_over(size - 1)
        if checkpoint is None or checkpoint.size != size:
            continue
        lines = "".join(row.data.decode() for row in cosigned if row.size == size)
        proof = merkle.consistency_path(size, export.size, nodes)
        yield {"line": "anchor", "note": checkpoint.note + lines, "proof": _texts(proof)}


def _leaf(kind: str, nodes: TileNodes, index: int, data: bytes, size: int) -> dict[str, Any]:
    proof = inclusion_proof(nodes, index, size)
    return {"line": kind, "index": index, "leaf": data.decode(), "proof": _texts(proof)}


def _texts(hashes: Iterable[bytes]) -> list[str]:
    return [base64.b64encode(item).decode() for item in hashes]


def _is_kept(view: View, leaves: list[tuple[int, bytes]]) -> bool:
    """Whether the content was stored: all of it is, or none, for a tenant with `content: commitments`."""
    first = next((index for index, data in leaves if json.loads(data)["contents"]), None)
    return first is None or view.log.content(first * PARTS_PER_LEAF) is not None


def _contents(
    view: View, export: ExportOf, key: bytes, records: list[tuple[int, dict[str, Any]]]
) -> Iterator[dict[str, Any]]:
    for index, record in records:
        for place, entry in enumerate(record["contents"]):
            part_id = entry["part_id"]
            plain = read_part(view, export.found.row, key, index * PARTS_PER_LEAF + place, part_id)
            if plain is None:
                raise StoreError("stored content is missing")
            yield {
                "line": "content",
                "index": index,
                "part_id": part_id,
                "data": base64.b64encode(plain).decode(),
                "salt": _salt(key, part_id),
            }


def _bodies(key: bytes, records: list[tuple[int, dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    for index, record in records:
        if record["type"] == "attempt_begun":
            part_id = record["facts"]["body"]["salt_part_id"]
            yield {"line": "body", "index": index, "part_id": part_id, "salt": _salt(key, part_id)}


def _salt(key: bytes, part_id: str) -> str:
    return base64.b64encode(contents.salt_of(key, part_id)).decode()
