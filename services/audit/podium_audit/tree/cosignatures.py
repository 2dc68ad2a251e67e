"""C2SP tlog-cosignature: what a witness signs about a checkpoint, by Ed25519 or ML-DSA-44."""

from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PrivateKey, MLDSA44PublicKey

from podium_audit.tree import checkpoint as notes
from podium_audit.tree.checkpoint import Checkpoint

ED25519: Final = 0x04
ML_DSA_44: Final = 0x06
_PUBLIC_BYTES: Final = {ED25519: 32, ML_DSA_44: 1_312}
_TIME_BYTES: Final = 8
_MAX_NAME_BYTES: Final = 255


@dataclass(frozen=True, slots=True)
class Witness:
    """A witness's name and public key."""

    name: str
    algorithm: int
    public_key: bytes

    @property
    def vkey(self) -> str:
        """The verifier key, as C2SP signed-note writes it."""
        return notes.vkey_of(self.name, self.algorithm, self.public_key)

    def has_signed(self, checkpoint: Checkpoint, name: str, data: bytes) -> bool:
        """Say whether a signature line is this witness's right cosignature."""
        head, time_at = notes.KEY_ID_BYTES, notes.KEY_ID_BYTES + _TIME_BYTES
        if name != self.name or data[:head] != notes.key_id(name, self.algorithm, self.public_key):
            return False
        message = _message(self.algorithm, name, int.from_bytes(data[head:time_at]), checkpoint)
        key: Ed25519PublicKey | MLDSA44PublicKey
        if self.algorithm == ED25519:
            key = Ed25519PublicKey.from_public_bytes(self.public_key)
        else:
            key = MLDSA44PublicKey.from_public_bytes(self.public_key)
        try:
            key.verify(data[time_at:], message)
        except InvalidSignature:
            return False
        return True


class Cosigner:
    """A witness's private key, made from 32 secret bytes."""

    def __init__(self, name: str, algorithm: int, seed: bytes) -> None:
        notes.check_key_name(name)
        if len(name.encode()) > _MAX_NAME_BYTES:
            raise ValueError("a witness's name must have at most 255 bytes")
        self._key: Ed25519PrivateKey | MLDSA44PrivateKey
        if algorithm == ED25519:
            self._key = Ed25519PrivateKey.from_private_bytes(seed)
        else:
            self._key = MLDSA44PrivateKey.from_seed_bytes(seed)
        self.witness = Witness(name, algorithm, self._key.public_key().public_bytes_raw())

    def line(self, checkpoint: Checkpoint, time_s: int) -> str:
        """Return the signature line: seen at `time_s` (since 1970) to continue all that was seen before."""
        witness = self.witness
        signature = self._key.sign(_message(witness.algorithm, witness.name, time_s, checkpoint))
        key_id = notes.key_id(witness.name, witness.algorithm, witness.public_key)
        return notes.signature_line(witness.name, key_id + time_s.to_bytes(_TIME_BYTES) + signature)


def parse_witness(vkey: str) -> Witness:
    """Return the witness that a verifier key names; raise ValueError for any other key."""
    name, algorithm, public_key = notes.read_vkey(vkey)
    if len(public_key) != _PUBLIC_BYTES.get(algorithm, -1):
        raise ValueError("a witness's key must be Ed25519 (type 0x04) or ML-DSA-44 (type 0x06)")
    return Witness(name, algorithm, public_key)


def _message(algorithm: int, name: str, time_s: int, checkpoint: Checkpoint) -> bytes:
    if algorithm == ED25519:
        return f"cosignature/v1\ntime {time_s}\n{notes.note_body(checkpoint)}".encode()
    witness, origin = name.encode(), checkpoint.origin.encode()
    return b"".join(
        (
            b"subtree/v1\n\0",
            len(witness).to_bytes(1) + witness,
            time_s.to_bytes(8),
            len(origin).to_bytes(1) + origin,
            bytes(8),
            checkpoint.size.to_bytes(8),
            checkpoint.root,
        )
    )
