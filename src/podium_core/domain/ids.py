"""Identifiers as a dependency: time-ordered, unguessable, prefixed by what they name."""

import secrets
from typing import Protocol

from podium_core.domain.clock import Clock

_RANDOM_BITS = 74


class IdFactory(Protocol):
    """Makes identifiers and tags."""

    def new(self, prefix: str) -> str:
        """Return `<prefix>_<32 hex digits>`; later ids sort after earlier ones."""
        ...

    def tag(self) -> str:
        """Return a short random word that worker text cannot guess."""
        ...

    def seed(self) -> int:
        """Return a random 63-bit seed."""
        ...


class RandomIds:
    """UUIDv7 (RFC 9562 §5.7) from the given clock and the operating system's randomness."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def new(self, prefix: str) -> str:
        """Return `<prefix>_<UUIDv7 as 32 hex digits>`."""
        milliseconds = self._clock.now_ns() // 1_000_000 & (1 << 48) - 1
        random_bits = secrets.randbits(_RANDOM_BITS)
        high = milliseconds << 16 | 0x7000 | random_bits >> 62
        low = 0b10 << 62 | random_bits & (1 << 62) - 1
        return f"{prefix}_{high << 64 | low:032x}"

    def tag(self) -> str:
        """Return 8 random hex digits."""
        return secrets.token_hex(4)

    def seed(self) -> int:
        """Return a random 63-bit seed."""
        return secrets.randbits(63)
