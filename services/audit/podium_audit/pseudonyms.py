"""Pseudonyms of the people whom clients name: random, found by a keyed digest, forgotten on request.

The name itself is nowhere stored. Once its row is gone, nobody can tell whose the pseudonym in a record was.
"""

import hmac
import secrets
from hashlib import sha256
from typing import Final, Protocol

from podium_audit.key_ports import KeyWrapper
from podium_audit.log.store_thread import StoreThread
from podium_core.domain.errors import invalid

MAX_SUBJECT_CHARS: Final = 512
_KEY_BYTES: Final = 32
_KEY_CONTEXT: Final = b"podium-subject-key/1"
_PSEUDONYM_BYTES: Final = 16
_PREFIX: Final = "sub_"


class PseudonymStore(Protocol):
    """Where pseudonyms are, beside the runs' keys; used by one thread. Every method raises StoreError."""

    def open(self, new_wrapped_key: bytes) -> bytes:
        """Connect; return the wrapped key of the digests, which is this one where there is none yet."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...

    def find(self, tenant_id: str, digest: bytes) -> str | None:
        """Return the pseudonym under a digest."""
        ...

    def add(self, tenant_id: str, digest: bytes, pseudonym: str) -> str:
        """Keep a pseudonym durably and return it, or the one that somebody else kept first."""
        ...

    def forget(self, tenant_id: str, digest: bytes) -> None:
        """Delete a pseudonym so that no byte of the row stays in the store's files."""
        ...


class Pseudonyms:
    """Gives each person of a tenant one pseudonym. Use it from one event loop."""

    def __init__(self, store: PseudonymStore, wrapper: KeyWrapper, *, wait_s: float) -> None:
        self._store = store
        self._wrapper = wrapper
        self._thread = StoreThread("pseudonyms", wait_s=wait_s)
        self._key = b""

    async def open(self) -> None:
        """Get ready. Raises StoreError."""
        await self._thread.do(self._open)

    async def of(self, tenant_id: str, subject_id: str) -> str:
        """Return a person's pseudonym, made now if there is none.

        Raises PodiumError: INVALID_REQUEST (too long), AUDIT_UNAVAILABLE.
        """
        _check(subject_id)
        return await self._thread.ask(lambda: self._of(tenant_id, subject_id))

    async def find(self, tenant_id: str, subject_id: str) -> str | None:
        """Return a person's pseudonym; None when there is none. Raises PodiumError as `of` does."""
        _check(subject_id)
        return await self._thread.ask(lambda: self._find(tenant_id, subject_id))

    async def forget(self, tenant_id: str, subject_id: str) -> None:
        """Forget whose a pseudonym is, for good. Raises PodiumError (AUDIT_UNAVAILABLE)."""
        await self._thread.ask(lambda: self._forget(tenant_id, subject_id))

    async def close(self) -> None:
        """Finish what is under way and let go of the store."""
        await self._thread.close(self._store.close)

    def _open(self) -> None:
        fresh = self._wrapper.wrap(secrets.token_bytes(_KEY_BYTES), _KEY_CONTEXT)
        self._key = self._wrapper.unwrap(self._store.open(fresh), _KEY_CONTEXT)

    def _find(self, tenant_id: str, subject_id: str) -> str | None:
        digest = self._digest(tenant_id, subject_id)
        return self._store.find(tenant_id, digest)

    def _of(self, tenant_id: str, subject_id: str) -> str:
        digest = self._digest(tenant_id, subject_id)
        known = self._store.find(tenant_id, digest)
        return known or self._store.add(tenant_id, digest, _PREFIX + secrets.token_hex(_PSEUDONYM_BYTES))

    def _forget(self, tenant_id: str, subject_id: str) -> None:
        digest = self._digest(tenant_id, subject_id)
        self._store.forget(tenant_id, digest)

    def _digest(self, tenant_id: str, subject_id: str) -> bytes:
        try:
            name = subject_id.encode()
        except UnicodeEncodeError:
            raise invalid("a user's id must be UTF-8 text", param="user") from None
        return hmac.digest(self._key, tenant_id.encode() + b"\x00" + name, sha256)


def _check(subject_id: str) -> None:
    if not 0 < len(subject_id) <= MAX_SUBJECT_CHARS:
        raise invalid(f"a user's id has 1 to {MAX_SUBJECT_CHARS} characters", param="user")
