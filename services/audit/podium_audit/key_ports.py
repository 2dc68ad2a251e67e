"""Keys that live elsewhere, and what may be asked of them: none of them is ever handed out."""

from typing import Protocol


class Signer(Protocol):
    """Signs checkpoints. The private key stays behind this port."""

    @property
    def public_key(self) -> bytes:
        """The 32 bytes of the Ed25519 public key."""
        ...

    def sign(self, data: bytes) -> bytes:
        """Return the 64-byte Ed25519 signature."""
        ...


class KeyWrapper(Protocol):
    """Wraps and unwraps data keys with the key-encryption key, which stays behind this port."""

    def wrap(self, key: bytes, context: bytes) -> bytes:
        """Return the key, encrypted and bound to `context`."""
        ...

    def unwrap(self, wrapped: bytes, context: bytes) -> bytes:
        """Return the key; raise StoreError when it was wrapped by another key or for another context."""
        ...
