"""The tree against RFC 6962's published roots, a naive recursion, and every kind of broken proof."""

import contextlib
from functools import cache
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_core.domain import merkle

# The eight leaves and roots that Certificate Transparency implementations share.
CT_LEAVES = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
CT_ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
MAX_SIZE = 130
LEAVES = [sha256(bytes([n])).digest() for n in range(MAX_SIZE)]


@cache
def naive_root(begin: int, end: int) -> bytes:
    if end - begin == 0:
        return sha256(b"").digest()
    if end - begin == 1:
        return LEAVES[begin]
    half = 1
    while half * 2 < end - begin:
        half *= 2
    return merkle.node_hash(naive_root(begin, begin + half), naive_root(begin + half, end))


def naive_path(index: int, begin: int, end: int) -> list[bytes]:
    if end - begin == 1:
        return []
    half = 1
    while half * 2 < end - begin:
        half *= 2
    split = begin + half
    if index < split:
        return [*naive_path(index, begin, split), naive_root(split, end)]
    return [*naive_path(index, split, end), naive_root(begin, split)]


def node(level: int, index: int) -> bytes:
    return naive_root(index << level, (index + 1) << level)


def grown(size: int) -> merkle.Frontier:
    frontier = merkle.Frontier()
    for leaf in LEAVES[:size]:
        frontier.append(leaf)
    return frontier


def test_empty_tree_has_the_hash_of_nothing() -> None:
    assert merkle.Frontier().root.hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_published_roots_of_one_to_eight_leaves() -> None:
    frontier = merkle.Frontier()
    for data, root in zip(CT_LEAVES, CT_ROOTS, strict=True):
        frontier.append(merkle.leaf_hash(data))
        assert frontier.root.hex() == root


@pytest.mark.parametrize("size", range(MAX_SIZE + 1))
def test_every_leaf_of_every_size_is_proven(size: int) -> None:
    frontier = grown(size)
    assert frontier.root == naive_root(0, size)
    assert frontier.size == size
    for index in range(size):
        path = merkle.inclusion_path(index, size, node)
        assert path == naive_path(index, 0, size)
        assert merkle.root_from_path(LEAVES[index], index, size, path) == frontier.root


def test_append_reports_each_completed_node_once() -> None:
    frontier = merkle.Frontier()
    seen: dict[tuple[int, int], bytes] = {}
    for position, leaf in enumerate(LEAVES):
        for level, completed in enumerate(frontier.append(leaf)):
            seen[level, position >> level] = completed
    assert seen == {(level, at): node(level, at) for level, at in seen}
    assert len(seen) == sum(MAX_SIZE >> level for level in range(8))


def test_frontier_continues_from_its_peaks() -> None:
    first = grown(77)
    second = merkle.Frontier(first.size, first.peaks)
    second.append(LEAVES[77])
    assert second.root == naive_root(0, 78)
    assert first.root == naive_root(0, 77)


@given(st.data())
def test_any_change_to_a_proof_breaks_it(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, MAX_SIZE))
    index = data.draw(st.integers(0, size - 1))
    root = naive_root(0, size)
    path = merkle.inclusion_path(index, size, node)
    kind = data.draw(st.sampled_from(("bit", "index", "drop", "add", "leaf")))
    leaf = LEAVES[index]
    if kind == "bit" and path:
        at, bit = data.draw(st.integers(0, len(path) - 1)), data.draw(st.integers(0, 255))
        changed = bytearray(path[at])
        changed[bit // 8] ^= 1 << bit % 8
        path = [*path[:at], bytes(changed), *path[at + 1 :]]
    elif kind == "index" and size > 1:
        index = data.draw(st.integers(0, size - 1).filter(lambda other: other != index))
    elif kind == "drop" and path:
        path = path[: data.draw(st.integers(0, len(path) - 1))]
    elif kind == "add":
        path = [*path, LEAVES[0]]
    else:
        leaf = sha256(leaf).digest()
    with contextlib.suppress(ValueError):  # refused for its shape, which is as good
        assert merkle.root_from_path(leaf, index, size, path) != root


@pytest.mark.parametrize(("index", "size"), [(0, 0), (-1, 1), (1, 1), (5, 5)])
def test_a_leaf_outside_the_tree_has_no_proof(index: int, size: int) -> None:
    with pytest.raises(ValueError, match="has no leaf"):
        merkle.inclusion_ranges(index, size)
    with pytest.raises(ValueError, match="has no leaf"):
        merkle.root_from_path(LEAVES[0], index, size, [])


def test_hashes_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        merkle.root_from_path(LEAVES[0][:31], 0, 1, [])
    with pytest.raises(ValueError, match="32 bytes"):
        merkle.root_from_path(LEAVES[0], 0, 2, [b"short"])


@pytest.mark.parametrize(("size", "count"), [(3, 1), (4, 2), (-1, 0)])
def test_frontier_refuses_peaks_that_cannot_be(size: int, count: int) -> None:
    with pytest.raises(ValueError, match="does not have"):
        merkle.Frontier(size, LEAVES[:count])
