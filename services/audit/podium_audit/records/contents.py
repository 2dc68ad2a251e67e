"""Content under a run's data key: sealed for storage, committed to in the leaf.

The commitment is HMAC-SHA256 under a salt derived from the data key, so that it can be checked by whoever
is shown the salt, and says nothing once the key is erased.
"""

import hmac
import secrets
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from podium_audit.ports import StoreError
from podium_audit.records.commands import Part

_NONCE_BYTES = 12
_SALT_LABEL = b"podium-salt/1\x00"


class SealedPart(NamedTuple):
    """What the leaf says about a part, and the bytes to store: nonce, then ciphertext with its tag."""

    entry: dict[str, object]
    sealed: bytes
    part: Part


def salt_of(data_key: bytes, part_id: str) -> bytes:
    """Return the 32-byte salt of one part."""
    return _hmac(data_key, _SALT_LABEL + part_id.encode())


def commitment(data_key: bytes, part_id: str, pieces: Sequence[bytes]) -> str:
    """Return the commitment over the joined pieces, as hexadecimal."""
    return _hmac(salt_of(data_key, part_id), *pieces).hex()


def seal(data_key: bytes, run_id: str, part: Part) -> SealedPart:
    """Encrypt a part and describe it for the leaf."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    sealed = nonce + AESGCM(data_key).encrypt(nonce, part.data, _context(run_id, part.part_id))
    salt = salt_of(data_key, part.part_id)
    entry: dict[str, object] = {
        "part_id": part.part_id,
        "name": part.name,
        "media_type": part.media_type,
        "length": len(part.data),
        "commitment": _hmac(salt, part.data).hex(),
        "ciphertext_sha256": sha256(sealed).hexdigest(),
    }
    return SealedPart(entry, sealed, part)


def unseal(data_key: bytes, run_id: str, part_id: str, sealed: bytes) -> bytes:
    """Decrypt a part; raise StoreError when it is not what was sealed under that name."""
    nonce, ciphertext = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
    try:
        return AESGCM(data_key).decrypt(nonce, ciphertext, _context(run_id, part_id))
    except InvalidTag:
        raise StoreError("stored content does not fit its key and name") from None


def _context(run_id: str, part_id: str) -> bytes:
    return f"{run_id}\x00{part_id}".encode()


def _hmac(key: bytes, *pieces: bytes) -> bytes:
    # Not hmac.digest: it hands the interpreter lock over for every call, which a busy event loop keeps.
    code = hmac.new(key, digestmod=sha256)
    for piece in pieces:
        code.update(piece)
    return code.digest()
