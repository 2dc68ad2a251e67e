"""Checkpoints against each other: what the export's continues, who cosigned, and whether the log forked."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from podium_verifier.cosignatures import Cosignature, cosignature_of
from podium_verifier.export_format import EarlierLine, Export
from podium_verifier.faults import ExitCode, fail
from podium_verifier.history import History, open_with_any
from podium_verifier.merkle import is_consistent
from podium_verifier.signed_note import Checkpoint
from podium_verifier.trust import Trust


@dataclass(frozen=True, slots=True)
class Anchor:
    """A checkpoint of the log that the export's continues, with its note."""

    checkpoint: Checkpoint
    note: str


@dataclass(frozen=True, slots=True)
class Cosigned:
    """A checkpoint that covers the whole run, and who of the reader's witnesses cosigned it."""

    checkpoint: Checkpoint
    by: tuple[Cosignature, ...]


def check_anchors(export: Export, checkpoint: Checkpoint, history: History) -> tuple[Anchor, ...]:
    """Return every checkpoint of the export, its main one first; raise FaultError unless they agree."""
    anchors = [Anchor(checkpoint, export.note)]
    for line in export.anchors:
        try:
            anchor = open_with_any(line.note, history.keys)
        except ValueError as error:
            fail(ExitCode.CHECKPOINT, str(error), line=line.line)
        _check_continues(checkpoint, anchor, line)
        anchors.append(Anchor(anchor, line.note))
    return tuple(anchors)


def check_kept(
    export: Export, anchors: Sequence[Anchor], history: History, trust: Trust
) -> tuple[Checkpoint, ...]:
    """Return the reader's own checkpoints once the export's is shown to continue each; raise FaultError."""
    kept: list[Checkpoint] = []
    for note in trust.kept:
        try:
            checkpoint = open_with_any(note, history.keys)
        except ValueError as error:
            fail(ExitCode.CHECKPOINT, f"--checkpoint: {error}")
        _check_one_kept(export, anchors, history, checkpoint)
        kept.append(checkpoint)
    return tuple(kept)


def check_witnesses(anchors: Iterable[Anchor], last_index: int, trust: Trust) -> Cosigned | None:
    """Return the checkpoint over leaf `last_index` with most cosignatures; raise FaultError for too few."""
    keys, needed = trust.witness_keys(), trust.needed()
    best: Cosigned | None = None
    for anchor in anchors:
        if not keys or anchor.checkpoint.size <= last_index:
            continue
        try:
            found = [cosignature_of(anchor.note, anchor.checkpoint, key) for key in keys]
        except ValueError as error:
            fail(ExitCode.WITNESSES, str(error))
        by = tuple(cosignature for cosignature in found if cosignature is not None)
        if best is None or len(by) > len(best.by):
            best = Cosigned(anchor.checkpoint, by)
    have = len(best.by) if best is not None else 0
    if have < needed:
        fail(
            ExitCode.WITNESSES,
            f"{have} of {len(keys)} witnesses cosigned a checkpoint over the whole run, {needed} must have",
        )
    return best


def _check_one_kept(export: Export, anchors: Sequence[Anchor], history: History, kept: Checkpoint) -> None:
    main = anchors[0].checkpoint
    for gap in history.gaps:
        if gap.kept_size < kept.size <= gap.lost_size and kept.size <= main.size:
            fail(
                ExitCode.FORKED,
                f"--checkpoint: its leaves from {gap.kept_size} on were lost, as this leaf records",
                leaf_index=gap.index,
            )
    same = next((each.checkpoint for each in anchors if each.checkpoint.size == kept.size), None)
    if same is not None:
        if same.root != kept.root:
            fail(ExitCode.FORKED, f"--checkpoint: another log of {kept.size} leaves was signed too")
        return
    line = next((line for line in export.consistency if line.size == kept.size), None)
    if line is None:
        fail(
            ExitCode.USAGE,
            f"--checkpoint: the export does not say how its log of {main.size} leaves and the one of"
            f" {kept.size} agree: export again with since={kept.size}",
        )
    _check_continues(main, kept, line)


def _check_continues(main: Checkpoint, earlier: Checkpoint, line: EarlierLine) -> None:
    if not is_consistent(earlier.size, earlier.root, main.size, main.root, line.proof):
        fail(
            ExitCode.FORKED,
            f"the log of {main.size} leaves does not continue the log of {earlier.size} that was signed too",
            line=line.line,
        )
