"""The export of one run, `podium-export/1`: everything a stranger needs to check it without this service.

Lines of canonical JSON, built from one checkpoint. They are made one by one, since content may be large.
"""

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from podium_audit.anchors import COSIGNATURE, AnchorRow
from podium_audit.ports import StoreError
from podium_audit.reading.run_page import FoundRun, read_part
from podium_audit.records import contents
from podium_audit.records.run_state import PARTS_PER_LEAF
from podium_audit.stores.readers import View
from podium_audit.tree.tiles import TileNodes, inclusion_proof
from podium_core.domain import merkle

FORMAT = "podium-export/1"
RECORDS_FORMAT = "podium-records/1"

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


@dataclass(frozen=True, slots=True)
class Under:
    """The checkpoint that a file is under.

    `since` asks how that continues a smaller log, `anchors` are what ties the log down outside.
    """

    origin: str
    vkey: str
    note: str
    size: int
    since: int | None = None
    anchors: Sequence[AnchorRow] = ()


@dataclass(frozen=True, slots=True)
class ExportOf:
    """What is exported, under which checkpoint."""

    found: FoundRun
    under: Under
    with_content: bool


def lines(view: View, export: ExportOf) -> Iterator[bytes]:
    """Yield the lines of the file, each with its newline. Raises StoreError."""
    return _ended(_body(view, export))


def record_lines(
    view: View, under: Under, tenant_id: str, leaves: Sequence[tuple[int, bytes]]
) -> Iterator[bytes]:
    """Yield the lines of a file of a tenant's records, `podium-records/1`. Raises StoreError."""
    return _ended(_records(view, under, tenant_id, leaves))


def _ended(body: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    count, digest = 1, sha256()
    for line in body:
        data = _encode(line).encode() + b"\n"
        count += 1
        digest.update(data)
        yield data
    end = {"line": "end", "lines": count, "sha256": digest.hexdigest()}
    yield _encode(end).encode() + b"\n"


def _body(view: View, export: ExportOf) -> Iterator[dict[str, Any]]:
    row, under = export.found.row, export.under
    leaves = view.log.leaves_of(row.run_no, below=under.size)
    with_content = export.with_content and _is_kept(view, leaves)
    key = view.keys.get(row.key_no) if with_content else None
    yield _header(FORMAT, under, row.tenant_id, row.run_id, with_content=key is not None)
    nodes = TileNodes(view.log)
    yield from _preface(view, nodes, under)
    for index, data in leaves:
        yield _leaf("leaf", nodes, index, data, under.size)
    if key is not None:
        records = [(index, json.loads(data)) for index, data in leaves]
        yield from _contents(view, export, key, records)
        yield from _bodies(key, records)


def _records(
    view: View, under: Under, tenant_id: str, leaves: Sequence[tuple[int, bytes]]
) -> Iterator[dict[str, Any]]:
    yield _header(RECORDS_FORMAT, under, tenant_id, "", with_content=False)
    nodes = TileNodes(view.log)
    yield from _preface(view, nodes, under)
    for index, data in leaves:
        yield _leaf("leaf", nodes, index, data, under.size)


def _header(form: str, under: Under, tenant_id: str, run_id: str, *, with_content: bool) -> dict[str, Any]:
    return {
        "line": "header",
        "format": form,
        "origin": under.origin,
        "run_id": run_id,
        "tenant_id": tenant_id,
        "vkey": under.vkey,
        "with_content": with_content,
    }


def _preface(view: View, nodes: TileNodes, under: Under) -> Iterator[dict[str, Any]]:
    """Yield what is said of the log itself: checkpoint, history, anchors, consistency."""
    yield {"line": "checkpoint", "note": under.note}
    for index, data in view.log.history():
        if index < under.size:
            yield _leaf("history", nodes, index, data, under.size)
    yield from _anchors(view, nodes, under)
    if under.since is not None:
        proof = merkle.consistency_path(under.since, under.size, nodes)
        yield {"line": "consistency", "from": under.since, "proof": _texts(proof)}


def _anchors(view: View, nodes: TileNodes, under: Under) -> Iterator[dict[str, Any]]:
    """Yield the checkpoints that witnesses cosigned, with their lines."""
    cosigned = [row for row in under.anchors if row.kind == COSIGNATURE and row.size <= under.size]
    for size in sorted({row.size for row in cosigned}):
        checkpoint = view.log.checkpoint_over(size - 1)
        if checkpoint is None or checkpoint.size != size:
            continue
        lines = "".join(row.data.decode() for row in cosigned if row.size == size)
        proof = merkle.consistency_path(size, under.size, nodes)
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
