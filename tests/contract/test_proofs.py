"""Proofs of every size from 0 to 600, made by the service and judged by both it and the verifier."""

import random
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256

import pytest

from podium_core.domain import merkle
from podium_verifier.merkle import is_consistent, is_included

LARGEST = 600
LEAVES = [sha256(b"leaf %d" % at).digest() for at in range(LARGEST)]
Judge = Callable[[list[bytes]], bool]


@cache
def node(level: int, index: int) -> bytes:
    if level == 0:
        return LEAVES[index]
    return merkle.node_hash(node(level - 1, 2 * index), node(level - 1, 2 * index + 1))


@cache
def root(size: int) -> bytes:
    frontier = merkle.Frontier()
    for leaf in LEAVES[:size]:
        frontier.append(leaf)
    assert merkle.root_of(size, node) == frontier.root
    return frontier.root


def consistency_judges(old: int, size: int) -> tuple[Judge, Judge]:
    def service(path: list[bytes]) -> bool:
        try:
            merkle.check_consistency(old, root(old), size, root(size), path)
        except ValueError:
            return False
        return True

    return service, lambda path: is_consistent(old, root(old), size, root(size), path)


def inclusion_judges(index: int, size: int) -> tuple[Judge, Judge]:
    def service(path: list[bytes]) -> bool:
        try:
            return merkle.root_from_path(LEAVES[index], index, size, path) == root(size)
        except ValueError:
            return False

    return service, lambda path: is_included(LEAVES[index], index, size, path, root(size))


def flipped(path: list[bytes], bits: range, places: range) -> Iterator[list[bytes]]:
    for at, item in enumerate(path):
        if at not in places:
            continue
        for bit in bits:
            changed = bytearray(item)
            changed[bit // 8] ^= 1 << bit % 8
            yield [*path[:at], bytes(changed), *path[at + 1 :]]


def check(
    path: list[bytes], judges: tuple[Judge, Judge], bits: range, places: range = range(LARGEST)
) -> None:
    """The path holds; with any bit flipped, a hash more or a hash less it does not."""
    assert [judge(path) for judge in judges] == [True, True]
    broken = [*flipped(path, bits, places), [*path, LEAVES[0]], [LEAVES[0], *path]]
    broken += [path[:-1], path[1:]] if path else []
    for bent in broken:
        assert [judge(bent) for judge in judges] == [False, False]


@pytest.mark.parametrize("rest", range(3))
def test_logs_of_every_size_are_shown_to_continue_older_ones(rest: int) -> None:
    chance = random.Random(rest)
    for size in range(rest, LARGEST + 1, 3):
        olds = {0, 1, size // 2, size - 1, size, *(chance.randint(0, size) for _ in range(3))}
        for old in sorted(olds & set(range(size + 1))):
            bit = chance.randrange(256)
            check(
                merkle.consistency_path(old, size, node), consistency_judges(old, size), range(bit, bit + 1)
            )
        if size:
            index, bit = chance.randrange(size), chance.randrange(256)
            path = merkle.inclusion_path(index, size, node)
            check(path, inclusion_judges(index, size), range(bit, bit + 1))


@pytest.mark.parametrize(("old", "size"), [(3, 7), (255, 257), (256, 600), (511, 600)])
def test_no_bit_of_a_proof_may_differ(old: int, size: int) -> None:
    check(merkle.consistency_path(old, size, node), consistency_judges(old, size), range(256))
    check(merkle.inclusion_path(old, size, node), inclusion_judges(old, size), range(256))


@pytest.mark.slow
@pytest.mark.parametrize("rest", range(10))
def test_every_pair_of_sizes_and_every_leaf(rest: int) -> None:
    for size in range(rest, LARGEST + 1, 10):
        for old in range(size + 1):
            bit, at = (old * 7 + size) % 256, (old + size) % 9
            bits, place = range(bit, bit + 1), range(at, at + 1)
            check(merkle.consistency_path(old, size, node), consistency_judges(old, size), bits, place)
            if old < size:
                check(merkle.inclusion_path(old, size, node), inclusion_judges(old, size), bits, place)


@pytest.mark.slow
@pytest.mark.parametrize("size", range(0, LARGEST + 1, 60))
def test_every_bit_of_proofs_of_many_sizes(size: int) -> None:
    for old in range(0, size + 1, 37):
        check(merkle.consistency_path(old, size, node), consistency_judges(old, size), range(256))


def test_roots_that_differ_are_never_consistent() -> None:
    for old, size in ((1, 1), (2, 3), (7, 7), (0, 5)):
        path = merkle.consistency_path(old, size, node)
        other = sha256(b"another root").digest()
        assert not is_consistent(old, other, size, root(size), path)
        with pytest.raises(ValueError, match=r"roots|path"):
            merkle.check_consistency(old, other, size, root(size), path)
        if old:
            assert not is_consistent(old, root(old), size, other, path)
            with pytest.raises(ValueError, match=r"roots|path"):
                merkle.check_consistency(old, root(old), size, other, path)


@pytest.mark.parametrize(("old", "size"), [(2, 1), (-1, 4)])
def test_a_smaller_log_continues_nothing(old: int, size: int) -> None:
    assert not is_consistent(old, LEAVES[0], size, LEAVES[0], [])
    with pytest.raises(ValueError, match="cannot continue"):
        merkle.consistency_path(old, size, node)
    with pytest.raises(ValueError, match="cannot continue"):
        merkle.check_consistency(old, LEAVES[0], size, LEAVES[0], [])
