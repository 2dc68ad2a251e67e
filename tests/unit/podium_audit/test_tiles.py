"""The stored tree: any growth, any restart, every proof."""

import random

import pytest

from podium_audit.ports import Batch, LeafRow, StoreError
from podium_audit.tree.tiles import TileNodes, TreeTail, inclusion_proof, load_tail
from podium_core.domain import merkle
from tests.fakes.audit_store import FakeLogStore


def grow(store: FakeLogStore, tail: TreeTail, count: int) -> None:
    leaves = [LeafRow(tail.size + at, None, b"leaf %d" % (tail.size + at)) for at in range(count)]
    for leaf in leaves:
        assert tail.append(leaf.data) == leaf.leaf_index
    store.commit(Batch(leaves=leaves, tiles=tail.changed_tiles()))


@pytest.mark.parametrize("seed", range(3))
def test_a_tree_that_grew_in_batches_is_the_tree(seed: int) -> None:
    chance = random.Random(seed)
    store, reference = FakeLogStore(), merkle.Frontier()
    tail = load_tail(store, 0)
    while tail.size < 1_100:
        count = chance.choice((1, 2, 3, 100, 255, 256, 257))
        for index in range(tail.size, tail.size + count):
            reference.append(merkle.leaf_hash(b"leaf %d" % index))
        grow(store, tail, count)
        assert tail.root == reference.root
        if chance.random() < 0.5:
            tail = load_tail(store, tail.size)
            assert tail.root == reference.root
    size = tail.size
    for index in chance.sample(range(size), 60):
        proof = inclusion_proof(TileNodes(store), index, size)
        leaf = merkle.leaf_hash(b"leaf %d" % index)
        assert merkle.root_from_path(leaf, index, size, proof) == reference.root


def test_proofs_of_an_older_size_come_from_a_newer_tree() -> None:
    store, tail = FakeLogStore(), load_tail(FakeLogStore(), 0)
    grow(store, tail, 300)
    older = tail.root
    grow(store, tail, 700)
    proof = inclusion_proof(TileNodes(store), 299, 300)
    assert merkle.root_from_path(merkle.leaf_hash(b"leaf 299"), 299, 300, proof) == older


def test_a_tile_of_leaves_is_written_when_it_is_full() -> None:
    tail = load_tail(FakeLogStore(), 0)
    for _ in range(255):
        tail.append(b"")
    assert tail.changed_tiles() == []
    tail.append(b"")
    assert sorted((row.level, row.tile_index, len(row.hashes)) for row in tail.changed_tiles()) == [
        (0, 0, 256 * 32),
        (1, 0, 32),
    ]
    tail.append(b"")
    assert tail.changed_tiles() == []


@pytest.mark.parametrize("lost", [(0, 0), (1, 0)])
def test_a_missing_tile_is_noticed(lost: tuple[int, int]) -> None:
    store, tail = FakeLogStore(), load_tail(FakeLogStore(), 0)
    grow(store, tail, 300)
    del store.tiles[lost]
    store.leaf_rows = store.leaf_rows[:-1] if lost[0] else []
    with pytest.raises(StoreError, match="missing"):
        (load_tail(store, 300), *[inclusion_proof(TileNodes(store), at, 300) for at in (0, 280)])
