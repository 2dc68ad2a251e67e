"""What befell the log itself: its key was changed, or leaves of it were lost. Both stand in its leaves."""

from collections.abc import Sequence
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from podium_verifier import shape
from podium_verifier.faults import ExitCode, fail
from podium_verifier.leaf_format import Leaf
from podium_verifier.signed_note import Checkpoint, LogKey, open_checkpoint, parse_vkey

_STATEMENT = "podium-key-rotation/1\n{old}\n{new}\n"


@dataclass(frozen=True, slots=True)
class Rotation:
    """The log's key was changed by this leaf, which the old key signed."""

    index: int
    old: LogKey
    new: LogKey


@dataclass(frozen=True, slots=True)
class Gap:
    """Leaves from `kept_size` to before `lost_size` were lost; the log went on with this leaf in their place.

    `lost_note` is the last checkpoint that had been signed over them.
    """

    index: int
    kept_size: int
    lost_size: int
    lost_note: str


@dataclass(frozen=True, slots=True)
class History:
    """The log's key now, and the rotations and gaps on record, oldest first."""

    current: LogKey
    rotations: tuple[Rotation, ...]
    gaps: tuple[Gap, ...]

    @property
    def keys(self) -> tuple[LogKey, ...]:
        """Every key that the log has had, newest first."""
        return (self.current, *(rotation.old for rotation in reversed(self.rotations)))


def read_history(leaves: Sequence[Leaf], current: LogKey) -> History:
    """Check the leaves of an export's history lines against themselves; raise FaultError.

    `current` is the key that the log has now.
    """
    rotations: list[Rotation] = []
    gaps: list[Gap] = []
    for leaf in leaves:
        try:
            if leaf.type == "key_rotated":
                rotations.append(_rotation(leaf))
            elif leaf.type == "log_gap":
                gaps.append(_gap(leaf))
            else:
                raise ValueError(f"a record of type {leaf.type} is not about the log itself")  # noqa: TRY301 - one exit
        except ValueError as error:
            fail(ExitCode.CHECKPOINT, str(error), line=leaf.line, leaf_index=leaf.index)
    history = History(current, tuple(rotations), tuple(gaps))
    for gap in gaps:
        try:
            lost = open_with_any(gap.lost_note, history.keys)
        except ValueError as error:
            fail(ExitCode.CHECKPOINT, f"the gap's lost checkpoint: {error}", leaf_index=gap.index)
        if lost.size != gap.lost_size:
            fail(ExitCode.CHECKPOINT, "the gap's lost checkpoint has another size", leaf_index=gap.index)
    return history


def follow(key: LogKey, rotations: Sequence[Rotation]) -> LogKey:
    """Return the key that a log has after these rotations if it had `key` before."""
    for rotation in rotations:
        if rotation.old == key:
            key = rotation.new
    return key


def open_with_any(note: str, keys: Sequence[LogKey]) -> Checkpoint:
    """Return a checkpoint signed by one of the keys a log has had; ValueError if none of them signed it."""
    problem = ValueError("no key is known")
    for key in keys:
        try:
            return open_checkpoint(note, key)
        except ValueError as error:
            problem = error
    raise problem


def _rotation(leaf: Leaf) -> Rotation:
    old, new = parse_vkey(leaf.facts["old_vkey"]), parse_vkey(leaf.facts["new_vkey"])
    if old.name != new.name:
        raise ValueError("a key of another log follows")
    statement = _STATEMENT.format(old=old.text, new=new.text).encode()
    signature = shape.decode_base64(leaf.facts["signature"], "the rotation's signature")
    try:
        Ed25519PublicKey.from_public_bytes(old.public).verify(signature, statement)
    except InvalidSignature:
        raise ValueError("the old key did not sign the change to the new one") from None
    return Rotation(leaf.index, old, new)


def _gap(leaf: Leaf) -> Gap:
    facts = leaf.facts
    if leaf.index != facts["kept_size"] or facts["lost_size"] <= facts["kept_size"]:
        raise ValueError("the gap's sizes contradict its place")
    return Gap(leaf.index, facts["kept_size"], facts["lost_size"], facts["lost_note"])
