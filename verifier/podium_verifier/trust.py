"""What the reader brings along: the log's key, checkpoints kept from earlier, and witnesses."""

from dataclasses import dataclass

from podium_verifier.cosignatures import WitnessKey, parse_witness_key
from podium_verifier.faults import ExitCode, fail


@dataclass(frozen=True, slots=True)
class Trust:
    """Everything that does not come from the export itself; without any of it nothing says who signed.

    `vkey` is the log's key, or one that it had before a rotation on record. `kept` are checkpoints of the
    same log, as signed notes. `quorum` of the `witnesses` (vkeys) must have cosigned; None: each of them.
    """

    vkey: str | None = None
    kept: tuple[str, ...] = ()
    witnesses: tuple[str, ...] = ()
    quorum: int | None = None

    def witness_keys(self) -> tuple[WitnessKey, ...]:
        """Return the witnesses' keys; raise FaultError (USAGE) for what is none or is given twice."""
        try:
            keys = tuple(parse_witness_key(vkey) for vkey in self.witnesses)
        except ValueError as error:
            fail(ExitCode.USAGE, f"--witness: {error}")
        if len({key.public for key in keys}) < len(keys):
            fail(ExitCode.USAGE, "--witness: the same key is given twice")
        return keys

    def needed(self) -> int:
        """Return how many witnesses must have cosigned; raise FaultError (USAGE) if it cannot be."""
        needed = len(self.witnesses) if self.quorum is None else self.quorum
        if not 0 <= needed <= len(self.witnesses) or (self.witnesses and not needed):
            fail(ExitCode.USAGE, f"--quorum: must be from 1 to {len(self.witnesses)}, the witnesses given")
        return needed
