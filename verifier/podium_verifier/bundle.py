"""A bundle: a ZIP of exports, with a manifest whose digest is itself a leaf of the log.

    manifest.json, manifest.proof.json, runs/<run id>.podium.jsonl…, records.jsonl, and aids for people

Everything is read from the file, nothing is unpacked. The aids (this verifier, the format's page, keys, time
stamps) are held against the manifest's digests and not used.
"""

import hashlib
import io
import itertools
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podium_verifier import canonical_json, shape
from podium_verifier.export_format import RECORDS_FORMAT, LeafLine
from podium_verifier.faults import ExitCode, Fault, FaultError, fail
from podium_verifier.history import History, open_with_any
from podium_verifier.leaf_format import Leaf, read_leaf
from podium_verifier.trust import Trust
from podium_verifier.verify import Frame, Verified, check_inclusion, open_frame, verify_export

FORMAT = "podium-bundle/1"
MANIFEST = "manifest.json"
PROOF = "manifest.proof.json"
RECORDS = "records.jsonl"
_MAX_FILES = 4_096
_MAX_BYTES = 1 << 30

_FILE = shape.record({"name": shape.text, "size": shape.count, "sha256": shape.digest})
_RUN = shape.record({"run_id": shape.text, "file": shape.text})
_MANIFEST = shape.record(
    {
        "format": shape.exactly(FORMAT),
        "origin": shape.text,
        "vkey": shape.text,
        "tenant_id": shape.text,
        "case_id": shape.text,
        "opened_from_us": shape.optional(shape.count),
        "opened_before_us": shape.optional(shape.count),
        "first_seq": shape.optional(shape.count),
        "last_seq": shape.optional(shape.count),
        "runs": shape.list_of(_RUN),
        "open_runs": shape.list_of(shape.text),
        "files": shape.list_of(_FILE),
    }
)
_PROOF = shape.record(
    {"index": shape.count, "leaf": shape.text, "proof": shape.list_of(shape.text), "note": shape.text}
)


@dataclass(frozen=True, slots=True)
class VerifiedBundle:
    """A bundle that passed every check. `index` is the leaf that holds the manifest's digest."""

    manifest: Mapping[str, Any]
    index: int
    runs: tuple[Verified, ...]
    record_count: int
    key_is_pinned: bool

    @property
    def exit_code(self) -> ExitCode:
        """OK, or ERASED where the content of a run was."""
        return ExitCode.ERASED if any(run.erased_index is not None for run in self.runs) else ExitCode.OK


def is_bundle(data: bytes) -> bool:
    """Say whether a file is a ZIP, by its first bytes."""
    return data.startswith(b"PK")


def verify_bundle(data: bytes, trust: Trust) -> VerifiedBundle | Fault:
    """Check a bundle; never raises."""
    try:
        return _verify(_files(data), trust)
    except FaultError as error:
        return error.fault


def _files(data: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if len(entries) > _MAX_FILES or sum(entry.file_size for entry in entries) > _MAX_BYTES:
                fail(ExitCode.MALFORMED, f"the bundle is over {_MAX_FILES} files or {_MAX_BYTES} bytes")
            if len({entry.filename for entry in entries}) < len(entries):
                fail(ExitCode.MALFORMED, "the bundle holds two files of one name")
            return {entry.filename: _bounded(archive, entry) for entry in entries}
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError, zlib.error):
        fail(ExitCode.TAIL, "the ZIP is cut off or broken")


def _bounded(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    with archive.open(entry) as stream:
        data = stream.read(entry.file_size + 1)
    if len(data) != entry.file_size:
        fail(ExitCode.MALFORMED, f"{entry.filename} is not as long as the ZIP says")
    return data


def _verify(files: dict[str, bytes], trust: Trust) -> VerifiedBundle:
    manifest = _object(files, MANIFEST, _MANIFEST)
    _check_files(manifest, files)
    runs = tuple(_run(manifest, run, files, trust) for run in manifest["runs"])
    records = _records(manifest, files, runs, trust)
    histories = [run.history for run in runs] + ([records.history] if records is not None else [])
    if not histories:
        fail(ExitCode.MALFORMED, "the bundle holds no run and no records")
    index = _check_manifest_leaf(files, manifest, histories[0])
    count = len(records.leaves) if records is not None else 0
    return VerifiedBundle(manifest, index, runs, count, trust.vkey is not None)


def _object(files: Mapping[str, bytes], name: str, check: shape.Check) -> dict[str, Any]:
    if name not in files:
        fail(ExitCode.TAIL, f"{name} is missing")
    try:
        fields = canonical_json.parse_object(files[name])
        check(fields, name)
    except ValueError as error:
        fail(ExitCode.MALFORMED, f"{name}: {error}")
    return fields


def _check_files(manifest: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
    listed = {each["name"]: each for each in manifest["files"]}
    missing = sorted(listed.keys() - files.keys())
    strange = sorted(files.keys() - listed.keys() - {MANIFEST, PROOF})
    if missing:
        fail(ExitCode.TAIL, f"{missing[0]} is missing: the manifest lists it")
    if strange or len(listed) < len(manifest["files"]):
        fail(ExitCode.MALFORMED, f"{strange[0] if strange else 'a file'} is not as the manifest lists it")
    for name, each in listed.items():
        if len(files[name]) != each["size"] or hashlib.sha256(files[name]).hexdigest() != each["sha256"]:
            fail(ExitCode.NOT_IN_LOG, f"{name} is not the file whose digest the manifest holds")


def _run(
    manifest: Mapping[str, Any], run: Mapping[str, Any], files: Mapping[str, bytes], trust: Trust
) -> Verified:
    name = run["file"]
    if name not in files:
        fail(ExitCode.TAIL, f"{name} is missing")
    result = verify_export(files[name], trust=trust)
    if isinstance(result, Fault):
        fail(result.code, f"{name}: {result}", leaf_index=result.leaf_index)
    claimed = (manifest["tenant_id"], manifest["vkey"], run["run_id"])
    if (result.header.tenant_id, result.header.vkey, result.header.run_id) != claimed:
        fail(ExitCode.ORDER, f"{name} is of another run, tenant or log than the manifest says")
    return result


def _records(
    manifest: Mapping[str, Any], files: Mapping[str, bytes], runs: tuple[Verified, ...], trust: Trust
) -> Frame | None:
    """Check that the tenant's records are here without a gap, and the runs that they open with them."""
    if manifest["first_seq"] is None:
        return None
    if RECORDS not in files:
        fail(ExitCode.TAIL, f"{RECORDS} is missing")
    try:
        frame = open_frame(files[RECORDS], RECORDS_FORMAT, trust)
        frame.check_digest()
        _check_gapless(manifest, frame.leaves)
    except FaultError as error:
        fault = error.fault
        fail(fault.code, f"{RECORDS}: {fault}", leaf_index=fault.leaf_index)
    since, until = manifest["opened_from_us"] or 0, manifest["opened_before_us"]
    opened = {
        leaf.run_id
        for leaf in frame.leaves
        if leaf.type == "opened" and since <= leaf.time_us and (until is None or leaf.time_us < until)
    }
    here = {run.header.run_id for run in runs} | set(manifest["open_runs"])
    if missing := sorted(opened - here):
        fail(ExitCode.TAIL, f"the run {missing[0]!r} is missing: a record opens it")
    return frame


def _check_gapless(manifest: Mapping[str, Any], leaves: tuple[Leaf, ...]) -> None:
    for leaf in leaves:
        if leaf.tenant_id != manifest["tenant_id"]:
            fail(
                ExitCode.ORDER,
                f"belongs to the tenant {leaf.tenant_id!r}",
                line=leaf.line,
                leaf_index=leaf.index,
            )
    for before, leaf in itertools.pairwise(leaves):
        if leaf.tenant_seq != before.tenant_seq + 1:
            fail(
                ExitCode.ORDER,
                f"record {before.tenant_seq + 1} of the tenant is missing",
                line=leaf.line,
                leaf_index=leaf.index,
            )
    if leaves[0].tenant_seq != manifest["first_seq"]:
        fail(ExitCode.ORDER, f"record {manifest['first_seq']} of the tenant is missing", line=leaves[0].line)
    if leaves[-1].tenant_seq != manifest["last_seq"]:
        fail(ExitCode.TAIL, f"record {manifest['last_seq']} of the tenant is missing", line=leaves[-1].line)


def _check_manifest_leaf(files: Mapping[str, bytes], manifest: Mapping[str, Any], history: History) -> int:
    """Check that the log holds the manifest's digest; return the leaf's index."""
    fields = _object(files, PROOF, _PROOF)
    try:
        checkpoint = open_with_any(fields["note"], history.keys)
        proof = tuple(shape.decode_base64(item, "proof") for item in fields["proof"])
    except ValueError as error:
        fail(ExitCode.CHECKPOINT, f"{PROOF}: {error}")
    line = LeafLine(0, fields["index"], fields["leaf"].encode(), proof)
    check_inclusion(line, checkpoint)
    leaf = read_leaf(line)
    digest = hashlib.sha256(files[MANIFEST]).hexdigest()
    if leaf.facts.get("manifest_sha256") != digest or leaf.tenant_id != manifest["tenant_id"]:
        fail(ExitCode.NOT_IN_LOG, "the log holds another manifest", leaf_index=leaf.index)
    return leaf.index
