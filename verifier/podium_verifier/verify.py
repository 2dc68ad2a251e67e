"""The whole check, top to bottom: form, checkpoint, tree, records, order, content, digest."""

from dataclasses import dataclass

from podium_verifier.commitments import check_contents
from podium_verifier.export_format import Export, Header, LeafLine, read_export
from podium_verifier.faults import ExitCode, Fault, FaultError, fail
from podium_verifier.leaf_format import Leaf, read_leaf
from podium_verifier.merkle import is_included, leaf_hash
from podium_verifier.run_order import check_run
from podium_verifier.signed_note import Checkpoint, LogKey, open_checkpoint, parse_vkey

_CHECKPOINT_LINE = 2


@dataclass(frozen=True, slots=True)
class Verified:
    """An export that passed every check. `key_is_pinned`: the key came from outside the export."""

    header: Header
    checkpoint: Checkpoint
    key: LogKey
    key_is_pinned: bool
    leaves: tuple[Leaf, ...]

    def of_type(self, *types: str) -> tuple[Leaf, ...]:
        """Return the leaves of these types, in log order."""
        return tuple(leaf for leaf in self.leaves if leaf.type in types)


def verify_export(data: bytes, pinned_vkey: str | None = None) -> Verified | Fault:
    """Check an export; never raises.

    Without `pinned_vkey` the key in the export's own header is used: that shows that the export is
    whole and consistent, not who made it.
    """
    try:
        return _verify(data, pinned_vkey)
    except FaultError as error:
        return error.fault


def _verify(data: bytes, pinned_vkey: str | None) -> Verified:
    export = read_export(data)
    key = _key(export.header, pinned_vkey)
    checkpoint = _checkpoint(export, key)
    for leaf in export.leaves:
        _check_inclusion(leaf, checkpoint)
    leaves = tuple(read_leaf(leaf) for leaf in export.leaves)
    check_run(export.header, leaves)
    check_contents(export, leaves)
    if export.digest != export.stated_digest:
        fail(ExitCode.MALFORMED, "the digest does not fit the lines before it", line=export.end_line)
    return Verified(export.header, checkpoint, key, pinned_vkey is not None, leaves)


def _key(header: Header, pinned_vkey: str | None) -> LogKey:
    if pinned_vkey is not None:
        try:
            key = parse_vkey(pinned_vkey)
        except ValueError as error:
            fail(ExitCode.USAGE, f"--key: {error}")
        if header.vkey != key.text:
            fail(ExitCode.CHECKPOINT, f"the export names another log key than {key.text}", line=1)
    else:
        try:
            key = parse_vkey(header.vkey)
        except ValueError as error:
            fail(ExitCode.CHECKPOINT, str(error), line=1)
    if header.origin != key.name:
        fail(ExitCode.CHECKPOINT, f"the origin {header.origin!r} is not the key's name {key.name!r}", line=1)
    return key


def _checkpoint(export: Export, key: LogKey) -> Checkpoint:
    try:
        return open_checkpoint(export.note, key)
    except ValueError as error:
        fail(ExitCode.CHECKPOINT, str(error), line=_CHECKPOINT_LINE)


def _check_inclusion(leaf: LeafLine, checkpoint: Checkpoint) -> None:
    if not is_included(leaf_hash(leaf.data), leaf.index, checkpoint.size, leaf.proof, checkpoint.root):
        fail(
            ExitCode.NOT_IN_LOG,
            f"the leaf is not at {leaf.index} in the log of {checkpoint.size} leaves that was signed",
            line=leaf.line,
            leaf_index=leaf.index,
        )
