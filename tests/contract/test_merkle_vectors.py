"""Public vectors: Merkle proofs of transparency-dev/merkle and a log of transparency-dev/tessera.

Both the service's arithmetic and the verifier's judge each of them. They are read from the folder that
PODIUM_TEST_VECTORS names, and are not part of this repository.
"""

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podium_audit.ports import Batch, LeafRow
from podium_audit.proofs import tile_pages
from podium_audit.tree.tiles import TileNodes, TreeTail
from podium_core.domain import merkle
from podium_verifier import signed_note
from podium_verifier.merkle import is_consistent, is_included
from podium_verifier.merkle import leaf_hash as verifier_leaf_hash
from tests.fakes.audit_store import FakeLogStore

_DEFAULT = Path(__file__).parents[2] / "../shared/vectors/merkle/testdata"
MERKLE = Path(os.environ.get("PODIUM_TEST_VECTORS", _DEFAULT))
TESSERA = MERKLE.parents[1] / "tessera/testdata/log"
TESSERA_VKEY = "example.com/log/testdata+33d7b496+AeHTu4Q3hEIMHNqc6fASMsq3rKNx280NI+oO5xCFkkSx"
INCLUSION = sorted((MERKLE / "inclusion").rglob("*.json"))
CONSISTENCY = sorted((MERKLE / "consistency").rglob("*.json"))
CHECKPOINTS = sorted(TESSERA.glob("checkpoint.*"))

needs_merkle = pytest.mark.skipif(
    not INCLUSION or not CONSISTENCY,
    reason="no public Merkle vectors here; name their folder in PODIUM_TEST_VECTORS",
)
needs_tessera = pytest.mark.skipif(
    not CHECKPOINTS,
    reason="no Tessera log beside the Merkle vectors; name their folder in PODIUM_TEST_VECTORS",
)


def hashes(items: list[str] | None) -> list[bytes]:
    return [base64.b64decode(item) for item in items or ()]


def holds(check: Callable[..., object], *arguments: object) -> bool:
    """Say whether a check of the service's kind passes: it raises ValueError when not."""
    try:
        check(*arguments)
    except ValueError:
        return False
    return True


def leads_to_root(leaf: bytes, index: int, size: int, path: list[bytes], root: bytes) -> None:
    if merkle.root_from_path(leaf, index, size, path) != root:
        raise ValueError("another root")


def judged_wrong(cases: list[Path], judge: Callable[[dict[str, Any]], bool]) -> list[str]:
    wrong = []
    for path in cases:
        case = json.loads(path.read_text())
        if judge(case) == case["wantErr"]:
            wrong.append(f"{path.relative_to(MERKLE)}: {case['desc']}")
    return wrong


@needs_merkle
@pytest.mark.parametrize("reader", ["service", "verifier"])
def test_every_inclusion_vector_is_judged_right(reader: str) -> None:
    def judge(case: dict[str, Any]) -> bool:
        asked = (base64.b64decode(case["leafHash"]), case["leafIdx"], case["treeSize"])
        proof, root = hashes(case["proof"]), base64.b64decode(case["root"])
        if reader == "verifier":
            return is_included(*asked, proof, root)
        return holds(leads_to_root, *asked, proof, root)

    assert judged_wrong(INCLUSION, judge) == []
    assert len(INCLUSION) == 98


@needs_merkle
@pytest.mark.parametrize("reader", ["service", "verifier"])
def test_every_consistency_vector_is_judged_right(reader: str) -> None:
    def judge(case: dict[str, Any]) -> bool:
        asked = (
            case["size1"],
            base64.b64decode(case["root1"]),
            case["size2"],
            base64.b64decode(case["root2"]),
            hashes(case["proof"]),
        )
        return is_consistent(*asked) if reader == "verifier" else holds(merkle.check_consistency, *asked)

    assert judged_wrong(CONSISTENCY, judge) == []
    assert len(CONSISTENCY) == 98


def entries(bundle: bytes) -> list[bytes]:
    found = []
    while bundle:
        length = int.from_bytes(bundle[:2])
        found.append(bundle[2 : 2 + length])
        bundle = bundle[2 + length :]
    return found


@needs_tessera
def test_the_checkpoints_of_a_public_log_fit_our_tree_at_each_of_its_sizes() -> None:
    key = signed_note.parse_vkey(TESSERA_VKEY)
    leaves = entries((TESSERA / "tile/entries/000.p/15").read_bytes())
    roots = {}
    for file in CHECKPOINTS:
        if file.name == "checkpoint.0":
            continue  # the empty tree has no root to climb to
        checkpoint = signed_note.open_checkpoint(file.read_text(), key)
        tail = grown(leaves[: checkpoint.size])
        assert tail.root == checkpoint.root
        roots[checkpoint.size] = checkpoint.root
    assert sorted(roots) == list(range(1, 16))
    nodes = TileNodes(store_of(leaves))
    for old, old_root in roots.items():
        for new in range(old, 16):
            path = merkle.consistency_path(old, new, nodes)
            assert is_consistent(old, old_root, new, roots[new], path)
            merkle.check_consistency(old, old_root, new, roots[new], path)


@needs_tessera
def test_our_tiles_and_bundles_are_byte_for_byte_those_of_a_public_log() -> None:
    store = store_of(entries((TESSERA / "tile/entries/000.p/15").read_bytes()))
    for width in range(1, 16):
        expected = (TESSERA / f"tile/0/000.p/{width}").read_bytes()
        assert tile_pages.hashes(store, tile_pages.Place(0, 0, width), 15) == expected
        bundle = (TESSERA / f"tile/entries/000.p/{width}").read_bytes()
        assert tile_pages.entries(store, tile_pages.Place(0, 0, width), 15) == bundle
        assert b"".join(verifier_leaf_hash(entry) for entry in entries(bundle)) == expected


def grown(leaves: list[bytes]) -> TreeTail:
    tail = TreeTail(merkle.Frontier(), [])
    for leaf in leaves:
        tail.append(leaf)
    return tail


def store_of(leaves: list[bytes]) -> FakeLogStore:
    store = FakeLogStore()
    store.commit(
        Batch(
            leaves=[LeafRow(index, None, leaf) for index, leaf in enumerate(leaves)],
            tiles=grown(leaves).changed_tiles(),
        )
    )
    return store
