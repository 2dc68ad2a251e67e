"""Asks a witness to cosign, as C2SP tlog-witness wants it: with a proof from the size that it knows."""

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from podium_audit.anchors import COSIGNATURE
from podium_audit.ports import CheckpointRow
from podium_audit.proofs.anchoring import AnchorError
from podium_audit.stores.readers import Readers
from podium_audit.tree.add_checkpoint import AddCheckpoint
from podium_audit.tree.checkpoint import read_body, split_note
from podium_audit.tree.cosignatures import Witness, parse_witness
from podium_audit.tree.tiles import TileNodes
from podium_core.domain import merkle
from podium_core.domain.errors import invalid

_DEADLINE_S = 10.0
_MAX_ANSWER_BYTES = 64 * 1024
_OK, _CONFLICT, _UNPROVEN = 200, 409, 422
_TRIES = 2
_MAX_SIZE_DIGITS = 16
_WORDS = 4


@dataclass(slots=True)
class WitnessAnchor:
    """One witness. It remembers for itself which size the witness knows, and learns it when that is wrong."""

    witness: Witness
    url: str
    readers: Readers
    interval_s: float
    kind: str = COSIGNATURE
    _known_size: int = field(default=0, init=False)

    @property
    def name(self) -> str:
        """The witness's verifier key: one name may have keys of two algorithms."""
        return self.witness.vkey

    async def anchor(self, checkpoint: CheckpointRow) -> bytes:
        """Return the witness's signature lines over a checkpoint. Raises AnchorError, StoreError."""
        status, answer = 0, b""
        for _ in range(_TRIES):
            status, answer = await self._ask(checkpoint)
            if status != _CONFLICT or not self._learn(answer, checkpoint):
                break
        if status != _OK:
            is_alarm = status in (_CONFLICT, _UNPROVEN)
            says = ": it cosigned a log that this one does not continue" if is_alarm else ""
            raise AnchorError(f"answered {status}{says}", is_alarm=is_alarm)
        lines = self._own_lines(checkpoint, answer)
        self._known_size = checkpoint.size
        return lines

    async def _ask(self, checkpoint: CheckpointRow) -> tuple[int, bytes]:
        old = self._known_size
        proof = await self.readers.ask(
            lambda view: merkle.consistency_path(old, checkpoint.size, TileNodes(view.log)), tenant_id=""
        )
        body = AddCheckpoint(old, tuple(proof), checkpoint.note).encode()
        timeout = aiohttp.ClientTimeout(total=_DEADLINE_S)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.post(f"{self.url}/add-checkpoint", data=body, allow_redirects=False) as answer,
            ):
                return answer.status, await answer.content.read(_MAX_ANSWER_BYTES)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise AnchorError(f"cannot be reached: {type(error).__name__}") from None

    def _learn(self, answer: bytes, checkpoint: CheckpointRow) -> bool:
        """Take the size that the witness knows; return whether it is another one that we can go on from."""
        text = answer.decode("ascii", "replace").removesuffix("\n")
        if not (text.isascii() and text.isdigit() and len(text) <= _MAX_SIZE_DIGITS):
            return False
        size = int(text)
        if size == self._known_size or size > checkpoint.size:
            return False
        self._known_size = size
        return True

    def _own_lines(self, checkpoint: CheckpointRow, answer: bytes) -> bytes:
        """Return the lines that this witness's key rightly signed. Raises AnchorError if there are none."""
        body = split_note(checkpoint.note)[0]
        said = read_body(body)
        try:
            lines = split_note(f"{body}\n{answer.decode()}")[1]
        except ValueError:
            raise AnchorError("answered no signature lines") from None
        texts = answer.decode().splitlines(keepends=True)
        ours = [
            text
            for text, (name, data) in zip(texts, lines, strict=True)
            if self.witness.has_signed(said, name, data)
        ]
        if not ours:
            raise AnchorError("its signature is not by the key that is configured")
        return "".join(ours).encode()


def load_witnesses(file: Path) -> list[tuple[Witness, str]]:
    """Return (witness, URL) for each `witness <name> <vkey> <url>` line, as C2SP tlog-policy writes them.

    Raises PodiumError that names the line to mend.
    """
    try:
        lines = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        raise invalid(f"cannot read {file}: it must hold lines: witness <name> <vkey> <url>") from None
    found: list[tuple[Witness, str]] = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            if len(words) != _WORDS or words[0] != "witness":
                raise ValueError("must be: witness <name> <vkey> <url>")  # noqa: TRY301 - one exit
            if urlsplit(words[3]).scheme not in ("http", "https") or not urlsplit(words[3]).hostname:
                raise ValueError("the URL must begin with http:// or https://")  # noqa: TRY301 - one exit
            found.append((parse_witness(words[2]), words[3].rstrip("/")))
        except ValueError as error:
            raise invalid(f"{file}, line {number}: {error}") from None
    return found
