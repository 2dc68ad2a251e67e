"""The Merkle tree of RFC 6962 §2.1: hashes, an append-only frontier, and which ranges prove inclusion.

Pure arithmetic over hashes. Where hashes are stored is the caller's business: a path is given as ranges
of leaves, which split into perfect subtrees that any store can look up.
"""

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256

HASH_BYTES = 32
EMPTY_ROOT = sha256(b"").digest()

_LEAF_PREFIX = b"\x00"
_NODE_PREFIX = b"\x01"


def leaf_hash(data: bytes) -> bytes:
    """Return the hash of one leaf's bytes."""
    return sha256(_LEAF_PREFIX + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of an inner node."""
    return sha256(_NODE_PREFIX + left + right).digest()


class Frontier:
    """The right edge of a growing tree: the roots of its perfect subtrees, largest first.

    Appending costs one node hash on average and needs no earlier leaf.
    """

    __slots__ = ("_peaks", "_size")

    def __init__(self, size: int = 0, peaks: Iterable[bytes] = ()) -> None:
        self._size = size
        self._peaks = list(peaks)
        if size < 0 or len(self._peaks) != size.bit_count():
            raise ValueError(f"a tree of {size} leaves does not have {len(self._peaks)} peaks")

    @property
    def size(self) -> int:
        """How many leaves the tree has."""
        return self._size

    @property
    def peaks(self) -> tuple[bytes, ...]:
        """The roots of the perfect subtrees, largest first."""
        return tuple(self._peaks)

    @property
    def root(self) -> bytes:
        """The tree's root hash."""
        return fold(self._peaks) if self._peaks else EMPTY_ROOT

    def append(self, leaf: bytes) -> list[bytes]:
        """Add a leaf by its hash; return the hashes it completes, from level 0 (itself) upwards."""
        completed = [leaf]
        size = self._size
        while size & 1:
            leaf = node_hash(self._peaks.pop(), leaf)
            completed.append(leaf)
            size >>= 1
        self._peaks.append(leaf)
        self._size += 1
        return completed


def fold(peaks: Sequence[bytes]) -> bytes:
    """Return the root over neighbouring perfect subtrees, given largest first; at least one."""
    root = peaks[-1]
    for peak in reversed(peaks[:-1]):
        root = node_hash(peak, root)
    return root


def subtrees(begin: int, end: int) -> list[tuple[int, int]]:
    """Split a range of leaves that is a node of some tree into perfect subtrees, as (level, index)."""
    parts: list[tuple[int, int]] = []
    while begin < end:
        level = (end - begin).bit_length() - 1
        parts.append((level, begin >> level))
        begin += 1 << level
    return parts


def inclusion_ranges(index: int, size: int) -> list[tuple[int, int]]:
    """Return the leaf ranges [begin, end) whose hashes prove leaf `index` in a tree of `size`, leaf first.

    Raises ValueError when there is no such leaf.
    """
    if not 0 <= index < size:
        raise ValueError(f"a tree of {size} leaves has no leaf {index}")
    ranges: list[tuple[int, int]] = []
    begin, end = 0, size
    while end - begin > 1:
        split = begin + (1 << (end - begin - 1).bit_length() - 1)
        if index < split:
            ranges.append((split, end))
            end = split
        else:
            ranges.append((begin, split))
            begin = split
    ranges.reverse()
    return ranges


def inclusion_path(index: int, size: int, node: Callable[[int, int], bytes]) -> list[bytes]:
    """Return the inclusion proof of leaf `index`; `node(level, index)` looks up a perfect subtree's root."""
    return [
        fold([node(level, at) for level, at in subtrees(begin, end)])
        for begin, end in inclusion_ranges(index, size)
    ]


def root_from_path(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes:
    """Return the root that an inclusion proof leads to (RFC 9162 §2.1.3.2).

    Raises ValueError when the path cannot belong to that leaf of a tree of that size.
    """
    if not 0 <= index < size:
        raise ValueError(f"a tree of {size} leaves has no leaf {index}")
    if any(len(item) != HASH_BYTES for item in (leaf, *path)):
        raise ValueError(f"every hash must be {HASH_BYTES} bytes")
    root, last = leaf, size - 1
    for item in path:
        if last == 0:
            raise ValueError("the path is too long")
        if index & 1 or index == last:
            root = node_hash(item, root)
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            root = node_hash(root, item)
        index, last = index >> 1, last >> 1
    if last:
        raise ValueError("the path is too short")
    return root
