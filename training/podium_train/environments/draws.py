"""Randomness that is counted, not consumed: a draw is a function of its key, so their order is nothing.

The idea is that of counter-based generators (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3",
SC 2011); the function here is BLAKE2b over the key's text, which is fast enough and the same everywhere.
"""

from collections.abc import Sequence
from hashlib import blake2b
from statistics import NormalDist
from typing import TypeVar

T = TypeVar("T")
_BITS = 53
_STANDARD = NormalDist()


def uniform(*key: object) -> float:
    """Return a number in the open interval (0, 1), always the same for the same key."""
    text = "\x1f".join(map(str, key)).encode(errors="surrogatepass")
    drawn = int.from_bytes(blake2b(text, digest_size=8).digest(), "big") >> (64 - _BITS)
    return (drawn + 0.5) / (1 << _BITS)


def normal(*key: object) -> float:
    """Return a standard normal number, always the same for the same key."""
    return _STANDARD.inv_cdf(uniform(*key))


def below(count: int, *key: object) -> int:
    """Return a whole number from 0 to `count` - 1, always the same for the same key."""
    return int(uniform(*key) * count)


def chosen(items: Sequence[T], *key: object) -> T:
    """Return one of the items, always the same for the same key."""
    return items[below(len(items), *key)]


def phi(value: float) -> float:
    """Return the standard normal distribution function."""
    return _STANDARD.cdf(value)


def probit(share: float) -> float:
    """Return the number below which a standard normal falls with this probability, kept off 0 and 1."""
    return _STANDARD.inv_cdf(min(max(share, 0.002), 0.998))
