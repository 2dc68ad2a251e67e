"""Keys in files outside the database: the signing key and the key-encryption key, readable by us alone."""

import errno
import os
import secrets
import stat
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from podium_audit.ports import StoreError
from podium_core.domain.errors import Code, PodiumError

SIGNING_KEY_FILE = "signing.key"
NEXT_SIGNING_KEY_FILE = "signing.key.next"
ENCRYPTION_KEY_FILE = "encryption.key"
CHECKPOINT_FILE = "checkpoint.note"

_KEY_BYTES = 32
_NONCE_BYTES = 12
_GROUP_READS = stat.S_IRGRP
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class FileSigner:
    """Signs with an Ed25519 key read from a file: its 32-byte seed as hexadecimal."""

    def __init__(self, file: Path) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(_read_key(file))
        self._public_key = self._key.public_key().public_bytes_raw()

    @property
    def public_key(self) -> bytes:
        """The 32 bytes of the Ed25519 public key."""
        return self._public_key

    def sign(self, data: bytes) -> bytes:
        """Return the 64-byte Ed25519 signature."""
        return self._key.sign(data)


class FileKeyWrapper:
    """Wraps data keys by AES-256-GCM under a key read from a file: 32 bytes as hexadecimal."""

    def __init__(self, file: Path) -> None:
        self._cipher = AESGCM(_read_key(file))

    def wrap(self, key: bytes, context: bytes) -> bytes:
        """Return the key, encrypted and bound to `context`."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, key, context)

    def unwrap(self, wrapped: bytes, context: bytes) -> bytes:
        """Return the key; raise StoreError when it was wrapped by another key or for another context."""
        try:
            return self._cipher.decrypt(wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:], context)
        except InvalidTag:
            raise StoreError("a run's data key was wrapped by another key-encryption key") from None


def init_keys(directory: Path, *, log_exists: bool) -> None:
    """Make both keys where there are none and no log either.

    Raises PodiumError (INVALID_REQUEST) when only some are there, or a log without its keys: a new key
    would make a new log under the old name.
    """
    files = [directory / SIGNING_KEY_FILE, directory / ENCRYPTION_KEY_FILE]
    missing = [file.name for file in files if not file.exists()]
    if not missing:
        return
    if len(missing) < len(files) or log_exists or (directory / CHECKPOINT_FILE).exists():
        raise _refused(
            f"the key directory lacks {' and '.join(missing)}: restore the keys that belong to this log"
        )
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for file in files:
            write_private(file, secrets.token_hex(_KEY_BYTES) + "\n")
    except OSError as error:
        raise _refused(
            f"the key directory has no {SIGNING_KEY_FILE} and {ENCRYPTION_KEY_FILE}, and they cannot be made"
            f" there ({error.strerror}): put 64 hexadecimal digits into each, `openssl rand -hex 32`"
        ) from None


def signers(directory: Path) -> tuple[FileSigner, FileSigner | None]:
    """Return the signing key, and the former one while a change of keys has begun and may have been recorded.

    Raises PodiumError when a key cannot be used.
    """
    now = FileSigner(directory / SIGNING_KEY_FILE)
    following = directory / NEXT_SIGNING_KEY_FILE
    return (FileSigner(following), now) if following.exists() else (now, None)


def make_next_signing_key(directory: Path) -> None:
    """Make the key that will follow, durably, unless it is there from an attempt that broke off."""
    file = directory / NEXT_SIGNING_KEY_FILE
    if not file.exists():
        write_private(file, secrets.token_hex(_KEY_BYTES) + "\n")


def take_next_signing_key(directory: Path) -> None:
    """Put the key that follows in the place of the signing key, which is gone from then on."""
    (directory / NEXT_SIGNING_KEY_FILE).replace(directory / SIGNING_KEY_FILE)
    _make_durable(directory)


def drop_next_signing_key(directory: Path) -> None:
    """Forget a key that was never recorded."""
    (directory / NEXT_SIGNING_KEY_FILE).unlink()
    _make_durable(directory)


def write_private(file: Path, text: str) -> None:
    """Replace a file that only we may read, durably."""
    draft = file.with_name(f".{file.name}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        data = text.encode()
        if os.write(descriptor, data) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    draft.replace(file)
    _make_durable(file.parent)


def _make_durable(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_seed(file: Path) -> bytes:
    """Return the 32 secret bytes in a file, which is made where there is none. Raises PodiumError."""
    if not file.exists():
        write_private(file, secrets.token_hex(_KEY_BYTES) + "\n")
    return _read_key(file)


def _read_key(file: Path) -> bytes:
    try:
        status = file.stat()
        # A mounted Secret is root's, and ours to read as its group: there is no other way to mount one.
        allowed = _GROUP_READS if status.st_uid != os.geteuid() else 0
        if status.st_mode & _OTHERS & ~allowed:
            raise _refused(f"{file} may be read or written by others: set its mode to 0600")
        key = bytes.fromhex(file.read_text().strip())
    except OSError as error:
        raise _refused(f"cannot read the key file {file}: {error.strerror}") from None
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise _refused(f"{file} must hold {_KEY_BYTES} bytes as {2 * _KEY_BYTES} hexadecimal digits")
    return key


def _refused(message: str) -> PodiumError:
    return PodiumError(Code.INVALID_REQUEST, message, reason="KEYS_UNUSABLE")
