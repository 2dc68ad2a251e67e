"""The bundle as a file: a ZIP made piece by piece, its manifest, and the proof that the log holds that."""

import base64
import json
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import IO, Any, Final

from podium_audit.anchors import TIME_STAMP, AnchorRow
from podium_audit.bundles.kit import kit
from podium_audit.reading import export
from podium_audit.reading.export import ExportOf, Under
from podium_audit.reading.run_page import FoundRun
from podium_audit.stores.readers import View
from podium_audit.tree.tiles import TileNodes, inclusion_proof
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.record import canonical

FORMAT: Final = "podium-bundle/1"
MANIFEST: Final = "manifest.json"
PROOF: Final = "manifest.proof.json"
RECORDS: Final = "records.jsonl"
MAX_BYTES: Final = 1 << 30
_WHEN: Final = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class BundleOf:
    """Which runs are bundled, under which checkpoint; `with_content` names those whose content goes along.

    With times it is every run of the tenant that was opened between them, with all records from the first
    one's opening to the last one's end.
    """

    under: Under
    tenant_id: str
    runs: Sequence[FoundRun]
    with_content: frozenset[str]
    case_id: str = ""
    opened_from_us: int | None = None
    opened_before_us: int | None = None
    stamps: Sequence[AnchorRow] = ()

    @property
    def is_range(self) -> bool:
        """Whether all records of a time are wanted."""
        return self.opened_from_us is not None


@dataclass(slots=True)
class Archive:
    """A ZIP that is being made in an open file; what was added so far is listed."""

    file: IO[bytes]
    files: list[dict[str, Any]] = field(default_factory=list)
    _room: int = MAX_BYTES

    def add(self, name: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Add a file, yielding its pieces on the way. Raises PodiumError (TOO_LARGE), OSError."""
        size, digest = 0, sha256()
        with (
            zipfile.ZipFile(self.file, "a", zipfile.ZIP_DEFLATED) as archive,
            archive.open(zipfile.ZipInfo(name, _WHEN), "w", force_zip64=True) as out,
        ):
            for piece in pieces:
                size += len(piece)
                if size > self._room:
                    raise PodiumError(
                        Code.TOO_LARGE, f"a bundle holds {MAX_BYTES} bytes at most: ask for fewer runs"
                    )
                digest.update(piece)
                out.write(piece)
                yield piece
        self._room -= size
        self.files.append({"name": name, "size": size, "sha256": digest.hexdigest()})

    def add_all(self, files: dict[str, bytes]) -> None:
        """Add small files."""
        for name, data in files.items():
            for _ in self.add(name, (data,)):
                pass


def fill(view: View, archive: Archive, bundle: BundleOf) -> Iterator[bytes]:
    """Put everything but the manifest into the archive; yields what is written. Raises StoreError."""
    archive.add_all(kit())
    archive.add_all({"keys.txt": f"{bundle.under.vkey}\n".encode()})
    for number, row in enumerate(bundle.stamps):
        checkpoint = view.log.checkpoint_over(row.size - 1)
        if row.kind == TIME_STAMP and checkpoint is not None and checkpoint.size == row.size:
            note = checkpoint.note.encode()
            archive.add_all({f"time-stamps/{number}.tsr": row.data, f"time-stamps/{number}.note": note})
    for run in _sealed(bundle):
        wanted = ExportOf(run, bundle.under, run.row.run_id in bundle.with_content)
        yield from archive.add(_name_of(run), export.lines(view, wanted))
    if bundle.is_range:
        leaves = _records(view, bundle)
        yield from archive.add(RECORDS, export.record_lines(view, bundle.under, bundle.tenant_id, leaves))


def manifest_of(view: View, archive: Archive, bundle: BundleOf) -> bytes:
    """Return the manifest of what was added. Raises StoreError."""
    leaves = _records(view, bundle) if bundle.is_range else []
    first, last = (json.loads(leaves[at][1])["tenant_seq"] for at in (0, -1)) if leaves else (None, None)
    return canonical(
        {
            "format": FORMAT,
            "origin": bundle.under.origin,
            "vkey": bundle.under.vkey,
            "tenant_id": bundle.tenant_id,
            "case_id": bundle.case_id,
            "opened_from_us": bundle.opened_from_us,
            "opened_before_us": bundle.opened_before_us,
            "first_seq": first,
            "last_seq": last,
            "runs": [{"run_id": run.row.run_id, "file": _name_of(run)} for run in _sealed(bundle)],
            "open_runs": [run.row.run_id for run in bundle.runs if run.seal is None],
            "files": archive.files,
        }
    )


def finish(view: View, archive: Archive, manifest: bytes, index: int, note: str, size: int) -> None:
    """Add the manifest and the proof that leaf `index` holds its digest. Raises StoreError, OSError."""
    proof = {
        "index": index,
        "leaf": view.log.tenant_leaves(json.loads(manifest)["tenant_id"], index, index + 1)[0][1].decode(),
        "proof": [
            base64.b64encode(item).decode() for item in inclusion_proof(TileNodes(view.log), index, size)
        ],
        "note": note,
    }
    archive.add_all({MANIFEST: manifest, PROOF: canonical(proof)})


def span_of(view: View, runs: Sequence[FoundRun], size: int) -> tuple[int, int]:
    """Return the index of the first and of the last record that is part of any of the runs."""
    indices = [
        index
        for run in runs
        for index, data in view.log.leaves_of(run.row.run_no, below=size)
        if json.loads(data)["run_seq"] is not None
    ]
    return min(indices), max(indices)


def _sealed(bundle: BundleOf) -> list[FoundRun]:
    return [run for run in bundle.runs if run.seal is not None]


def _name_of(run: FoundRun) -> str:
    return f"runs/{run.row.run_id}.podium.jsonl"


def _records(view: View, bundle: BundleOf) -> list[tuple[int, bytes]]:
    """Return all of the tenant's leaves from the first run's opening to the last run's end."""
    begin, last = span_of(view, bundle.runs, bundle.under.size)
    return view.log.tenant_leaves(bundle.tenant_id, begin, last + 1)
