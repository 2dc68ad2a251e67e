"""The whole check, top to bottom: form, key, checkpoints, tree, records, content, digest, witnesses."""

from dataclasses import dataclass

from podium_verifier.checkpoints import Anchor, Cosigned, check_anchors, check_kept, check_witnesses
from podium_verifier.commitments import check_contents
from podium_verifier.export_format import FORMAT, Export, Header, LeafLine, read_export
from podium_verifier.faults import ExitCode, Fault, FaultError, fail
from podium_verifier.history import History, follow, read_history
from podium_verifier.leaf_format import Leaf, read_leaf
from podium_verifier.merkle import is_included, leaf_hash
from podium_verifier.run_order import check_run
from podium_verifier.signed_note import Checkpoint, LogKey, open_checkpoint, parse_vkey
from podium_verifier.trust import Trust

_CHECKPOINT_LINE = 2


@dataclass(frozen=True, slots=True)
class Verified:
    """An export that passed every check. `key_is_pinned`: the key came from outside the export.

    `kept` are the reader's own checkpoints, `cosigned` the one that the reader's witnesses cosigned;
    `erased_index` is the leaf under which the content was erased.
    """

    header: Header
    checkpoint: Checkpoint
    history: History
    key_is_pinned: bool
    leaves: tuple[Leaf, ...]
    anchors: tuple[Anchor, ...] = ()
    kept: tuple[Checkpoint, ...] = ()
    cosigned: Cosigned | None = None

    @property
    def key(self) -> LogKey:
        """The key that signed the export's checkpoint."""
        return self.history.current

    @property
    def erased_index(self) -> int | None:
        """The leaf under which the run's content was erased; None while it was not."""
        return next((leaf.index for leaf in self.of_type("erased")), None)

    @property
    def exit_code(self) -> ExitCode:
        """OK, or ERASED where the proof holds and the content is gone."""
        return ExitCode.OK if self.erased_index is None else ExitCode.ERASED

    def of_type(self, *types: str) -> tuple[Leaf, ...]:
        """Return the leaves of these types, in log order."""
        return tuple(leaf for leaf in self.leaves if leaf.type in types)


def verify_export(
    data: bytes, pinned_vkey: str | None = None, trust: Trust | None = None
) -> Verified | Fault:
    """Check an export; never raises. `pinned_vkey` is short for `Trust(vkey=pinned_vkey)`.

    Without a key from outside the one in the export's own header is used: that shows that the export is
    whole and consistent, not who made it.
    """
    try:
        return _verify(data, trust or Trust(pinned_vkey))
    except FaultError as error:
        return error.fault


def _verify(data: bytes, trust: Trust) -> Verified:
    frame = open_frame(data, FORMAT, trust)
    export = frame.export
    check_run(export.header, frame.leaves)
    check_contents(export, frame.leaves)
    frame.check_digest()
    sealed = max(leaf.index for leaf in frame.leaves if leaf.type == "sealed")
    kept = check_kept(export, frame.anchors, frame.history, trust)
    return Verified(
        export.header,
        frame.checkpoint,
        frame.history,
        trust.vkey is not None,
        frame.leaves,
        frame.anchors,
        kept,
        check_witnesses(frame.anchors, sealed, trust),
    )


@dataclass(frozen=True, slots=True)
class Frame:
    """A file's leaves, shown to be in the log that its checkpoint fixes. What they tell is not judged yet."""

    export: Export
    checkpoint: Checkpoint
    history: History
    anchors: tuple[Anchor, ...]
    leaves: tuple[Leaf, ...]

    def check_digest(self) -> None:
        """Check the last line, when everything before it has been judged; raise FaultError."""
        if self.export.digest != self.export.stated_digest:
            fail(
                ExitCode.MALFORMED,
                "the digest does not fit the lines before it",
                line=self.export.end_line,
            )


def open_frame(data: bytes, form: str, trust: Trust) -> Frame:
    """Return a file's leaves once key, checkpoints and proofs are right; raise FaultError."""
    export = read_export(data)
    if export.header.format != form:
        fail(ExitCode.MALFORMED, f"the format is {export.header.format}, not {form}", line=1)
    current = _current_key(export.header)
    # What the history says holds once its leaves are shown to be in the log that the current key signed.
    history = read_history([read_leaf(leaf) for leaf in export.history], current)
    check_pinned(trust, history)
    checkpoint = _checkpoint(export, current)
    for leaf in (*export.history, *export.leaves):
        check_inclusion(leaf, checkpoint)
    anchors = check_anchors(export, checkpoint, history)
    return Frame(export, checkpoint, history, anchors, tuple(read_leaf(leaf) for leaf in export.leaves))


def check_pinned(trust: Trust, history: History) -> None:
    """Check that the reader's key, if there is one, leads to the log's; raise FaultError."""
    if trust.vkey is None:
        return
    try:
        pinned = parse_vkey(trust.vkey)
    except ValueError as error:
        fail(ExitCode.USAGE, f"--key: {error}")
    if follow(pinned, history.rotations) != history.current:
        fail(ExitCode.CHECKPOINT, f"the export names another log key than {pinned.text}", line=1)


def _current_key(header: Header) -> LogKey:
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


def check_inclusion(leaf: LeafLine, checkpoint: Checkpoint) -> None:
    """Check that a leaf is in the log that a checkpoint fixes; raise FaultError."""
    if not is_included(leaf_hash(leaf.data), leaf.index, checkpoint.size, leaf.proof, checkpoint.root):
        fail(
            ExitCode.NOT_IN_LOG,
            f"the leaf is not at {leaf.index} in the log of {checkpoint.size} leaves that was signed",
            line=leaf.line,
            leaf_index=leaf.index,
        )
