"""RFC 6962 §2.1: hashes and inclusion proofs of the log's Merkle tree, over SHA-256.

Leaves and inner nodes are hashed under different prefixes, so one can never pass for the other.
"""

import hashlib
from collections.abc import Sequence

HASH_SIZE = 32


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
