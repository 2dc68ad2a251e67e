"""RFC 6962 §2.1: hashes, inclusion and consistency proofs of the log's Merkle tree, over SHA-256.

Leaves and inner nodes are hashed under different prefixes, so one can never pass for the other.
"""

import hashlib
from collections.abc import Sequence

HASH_SIZE = 32
EMPTY_ROOT = hashlib.sha256().digest()


def leaf_hash(leaf: bytes) -> bytes:
    """Return SHA-256(0x00 || leaf)."""
    return hashlib.sha256(b"\x00" + leaf).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return SHA-256(0x01 || left || right)."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def is_included(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Say whether `proof` shows that the leaf with hash `leaf` stands at `index` in the tree of `size`.

    This is RFC 9162 §2.1.3.2, which spells out the check that RFC 6962 §2.1.1 implies: climb from the
    leaf, hashing with one sibling per level, and compare with the root. A level where the node is the
    last of an odd row has no sibling and is skipped.
    """
    if not 0 <= index < size or any(len(item) != HASH_SIZE for item in (leaf, root, *proof)):
        return False
    node, last = index, size - 1
    climbed = leaf
    for sibling in proof:
        if last == 0:
            return False
        if node & 1 or node == last:
            climbed = node_hash(sibling, climbed)
            while not node & 1 and node:
                node >>= 1
                last >>= 1
        else:
            climbed = node_hash(climbed, sibling)
        node >>= 1
        last >>= 1
    return last == 0 and climbed == root


def is_consistent(old_size: int, old_root: bytes, size: int, root: bytes, proof: Sequence[bytes]) -> bool:
    """Say whether `proof` shows that the tree of `size` begins with the very leaves of the older tree.

    RFC 6962 §2.1.2, read backwards: the proof is split from its end as the larger tree splits, and gives
    both roots on the way. An empty older tree proves nothing and needs no proof.
    """
    if old_size == size:
        return not proof and old_root == root and (size > 0 or root == EMPTY_ROOT)
    if not 0 <= old_size <= size or any(len(item) != HASH_SIZE for item in (old_root, root, *proof)):
        return False
    if old_size == 0:
        return not proof and old_root == EMPTY_ROOT
    try:
        both = _both_roots(old_size, size, list(proof), old_root)
    except IndexError:
        return False
    return both == (old_root, root)


def _both_roots(
    old_size: int, size: int, proof: list[bytes], old_root: bytes | None
) -> tuple[bytes, bytes] | None:
    """Return the older and the newer root that a subproof leads to; None when hashes are left over.

    `old_root` is known while the older tree is a whole left part of this one. IndexError: too few hashes.
    """
    if old_size == size:
        if old_root is not None:
            return (old_root, old_root) if not proof else None
        node = proof.pop()
        return (node, node) if not proof else None
    split = 1 << (size - 1).bit_length() - 1
    sibling = proof.pop()
    if old_size <= split:
        inner = _both_roots(old_size, split, proof, old_root)
        return None if inner is None else (inner[0], node_hash(inner[1], sibling))
    inner = _both_roots(old_size - split, size - split, proof, None)
    return None if inner is None else (node_hash(sibling, inner[0]), node_hash(sibling, inner[1]))
