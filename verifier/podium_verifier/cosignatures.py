"""C2SP tlog-cosignature: what witnesses sign, and when, about a checkpoint that they found consistent.

A cosignature stands on a signature line of the checkpoint: `— <witness> base64(key id || timestamp ||
signature)`, with the timestamp as 8 bytes, seconds since 1970. Ed25519 (type 0x04) and ML-DSA-44 (0x06).
"""

from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from podium_verifier import shape
from podium_verifier.signed_note import Checkpoint, is_key_name, note_text, split_vkey

_ED25519 = 0x04
_ML_DSA_44 = 0x06
_KEY_SIZES = {_ED25519: 32, _ML_DSA_44: 1_312}
_SIGNATURE_SIZES = {_ED25519: 64, _ML_DSA_44: 2_420}
_TIME_SIZE = 8
_MAX_TIME = 2**63 - 1


@dataclass(frozen=True, slots=True)
class WitnessKey:
    """A witness's public key of algorithm 0x04 (Ed25519) or 0x06 (ML-DSA-44)."""

    name: str
    key_id: bytes
    algorithm: int
    public: bytes


@dataclass(frozen=True, slots=True)
class Cosignature:
    """A witness saw this checkpoint at `time_s` (since 1970) as a continuation of all that it saw before."""

    witness: str
    time_s: int


def parse_witness_key(vkey: str) -> WitnessKey:
    """Return the key that a witness's vkey names; ValueError says what is wrong with it."""
    name, key_id, key = split_vkey(vkey, "a witness key")
    algorithm = key[0] if key else 0
    if len(key) != 1 + _KEY_SIZES.get(algorithm, -1):
        raise ValueError("a witness key must be Ed25519 (type 0x04) or ML-DSA-44 (type 0x06)")
    return WitnessKey(name, key_id, algorithm, key[1:])


def cosignature_of(note: str, checkpoint: Checkpoint, key: WitnessKey) -> Cosignature | None:
    """Return the valid cosignature by `key` on a note, whose checkpoint is known; None if there is none."""
    text, lines = note_text(note)
    for line in lines:
        name, _, encoded = line.removeprefix("\u2014 ").partition(" ")
        if name != key.name or not is_key_name(name):
            continue
        data = shape.decode_base64(encoded, "a cosignature")
        time_s = int.from_bytes(data[4 : 4 + _TIME_SIZE])
        signature = data[4 + _TIME_SIZE :]
        fits = data[:4] == key.key_id and len(signature) == _SIGNATURE_SIZES[key.algorithm]
        if fits and time_s <= _MAX_TIME and _is_signed(key, signature, time_s, text, checkpoint):
            return Cosignature(key.name, time_s)
    return None


def _is_signed(key: WitnessKey, signature: bytes, time_s: int, text: str, checkpoint: Checkpoint) -> bool:
    try:
        if key.algorithm == _ED25519:
            message = f"cosignature/v1\ntime {time_s}\n{text}".encode()
            Ed25519PublicKey.from_public_bytes(key.public).verify(signature, message)
        else:
            _verify_ml_dsa_44(key.public, signature, _subtree_message(key.name, time_s, checkpoint))
    except InvalidSignature:
        return False
    return True


def _subtree_message(witness: str, time_s: int, checkpoint: Checkpoint) -> bytes:
    """Return tlog-cosignature's `cosigned_message` for a whole tree."""
    name, origin = witness.encode(), checkpoint.origin.encode()
    return b"".join(
        (
            b"subtree/v1\n\0",
            bytes([len(name)]) + name,
            time_s.to_bytes(8),
            bytes([len(origin)]) + origin,
            (0).to_bytes(8),
            checkpoint.size.to_bytes(8),
            checkpoint.root,
        )
    )


def _verify_ml_dsa_44(public: bytes, signature: bytes, message: bytes) -> None:
    try:
        # Only here: older releases of `cryptography` lack it, and few readers need it.
        from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PublicKey  # noqa: PLC0415

        key = MLDSA44PublicKey.from_public_bytes(public)
    except (ImportError, UnsupportedAlgorithm):
        raise ValueError("this installation of cryptography knows no ML-DSA-44: update it") from None
    key.verify(signature, message)
