"""The Merkle tree of RFC 6962 §2.1: hashes, an append-only frontier, proofs of inclusion and consistency.

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
    return _nodes(inclusion_ranges(index, size), node)


def consistency_ranges(old_size: int, size: int) -> list[tuple[int, int]]:
    """Return the leaf ranges [begin, end) whose hashes prove that a tree of `size` continues the older one.

    RFC 6962 §2.1.2. Nothing need be shown for an empty older tree or for the tree itself. Raises
    ValueError when the older tree is larger.
    """
    if not 0 <= old_size <= size:
        raise ValueError(f"a tree of {size} leaves cannot continue one of {old_size}")
    if old_size in (0, size):
        return []
    ranges: list[tuple[int, int]] = []
    begin, end = 0, size
    while old_size != end:
        split = begin + (1 << (end - begin - 1).bit_length() - 1)
        if old_size <= split:
            ranges.append((split, end))
            end = split
        else:
            ranges.append((begin, split))
            begin = split
    if begin:  # otherwise this last piece is the older tree itself, whose root the reader knows
        ranges.append((begin, end))
    ranges.reverse()
    return ranges


def consistency_path(old_size: int, size: int, node: Callable[[int, int], bytes]) -> list[bytes]:
    """Return the consistency proof between two sizes; `node` is as for `inclusion_path`."""
    return _nodes(consistency_ranges(old_size, size), node)


def root_of(size: int, node: Callable[[int, int], bytes]) -> bytes:
    """Return the root of the first `size` leaves."""
    return fold([node(level, at) for level, at in subtrees(0, size)]) if size else EMPTY_ROOT


def _nodes(ranges: Iterable[tuple[int, int]], node: Callable[[int, int], bytes]) -> list[bytes]:
    return [fold([node(level, at) for level, at in subtrees(begin, end)]) for begin, end in ranges]


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


def check_consistency(old_size: int, old_root: bytes, size: int, root: bytes, path: Sequence[bytes]) -> None:
    """Raise ValueError unless `path` shows that the tree of `size` continues the older one.

    RFC 9162 §2.1.4.2. Of an empty older tree nothing can be shown, and the path must be empty.
    """
    if not 0 <= old_size <= size:
        raise ValueError(f"a tree of {size} leaves cannot continue one of {old_size}")
    if (old_size == size and old_root != root) or (not old_size and old_root != EMPTY_ROOT):
        raise ValueError("the roots differ")
    if old_size in (0, size):
        if path:
            raise ValueError("the path is too long")
    elif (old_root, root) != roots_from_path(old_size, old_root, size, path):
        raise ValueError("the path leads to other roots")
    if old_size != size and any(len(item) != HASH_BYTES for item in (old_root, root, *path)):
        raise ValueError(f"every hash must be {HASH_BYTES} bytes")


def roots_from_path(old_size: int, old_root: bytes, size: int, path: Sequence[bytes]) -> tuple[bytes, bytes]:
    """Return both roots that a consistency proof leads to; the older tree is neither empty nor the newer.

    Raises ValueError when the path cannot belong to trees of these sizes.
    """
    # The largest perfect subtree at the older tree's right edge: where both climbs begin.
    skipped = (old_size & -old_size).bit_length() - 1
    place, last = (old_size - 1) >> skipped, (size - 1) >> skipped
    steps = [old_root, *path] if not place else list(path)
    if not steps:
        raise ValueError("the path is too short")
    old = new = steps.pop(0)
    for item in steps:
        if last == 0:
            raise ValueError("the path is too long")
        if place & 1 or place == last:
            old, new = node_hash(item, old), node_hash(item, new)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            new = node_hash(new, item)
        place, last = place >> 1, last >> 1
    if last:
        raise ValueError("the path is too short")
    return old, new
