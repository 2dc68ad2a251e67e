import hashlib

from hypothesis import given
from hypothesis import strategies as st

from podium_verifier.merkle import is_included, leaf_hash, node_hash
from tests.unit.podium_verifier.exported_run import audit_path, patient, tree_hash

# The eight leaves that RFC 6962's reference implementation publishes, and the roots of their first n.
LEAVES = [
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
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def test_the_eight_leaf_roots_of_rfc_6962_are_reached_from_every_leaf() -> None:
    for size, root in enumerate(ROOTS, 1):
        leaves = LEAVES[:size]
        assert tree_hash(leaves).hex() == root
        for index, leaf in enumerate(leaves):
            assert is_included(leaf_hash(leaf), index, size, audit_path(index, leaves), bytes.fromhex(root))


def test_leaves_and_nodes_are_hashed_apart() -> None:
    left, right = leaf_hash(b"a"), leaf_hash(b"b")
    assert node_hash(left, right) != leaf_hash(left + right)
    assert leaf_hash(b"") == hashlib.sha256(b"\x00").digest()


@patient
@given(st.integers(1, 70), st.data())
def test_a_proof_holds_for_its_own_leaf_index_size_and_root_only(size: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, size - 1))
    leaves = [bytes([number]) for number in range(size)]
    proof, root, leaf = audit_path(index, leaves), tree_hash(leaves), leaf_hash(leaves[index])
    assert is_included(leaf, index, size, proof, root)

    bit = data.draw(st.integers(0, 255))
    flipped = bytes(b ^ (1 << bit % 8 if at == bit // 8 else 0) for at, b in enumerate(root))
    assert not is_included(leaf, index, size, proof, flipped)
    assert not is_included(flipped, index, size, proof, root)
    if proof:
        at = data.draw(st.integers(0, len(proof) - 1))
        assert not is_included(leaf, index, size, [*proof[:at], flipped, *proof[at + 1 :]], root)
        assert not is_included(leaf, index, size, proof[:-1], root)
    assert not is_included(leaf, index, size, [*proof, root], root)
    other = data.draw(st.integers(-2, 140))
    if other != index:
        assert not is_included(leaf, other, size, proof, root)


def test_hashes_of_another_length_prove_nothing() -> None:
    root = leaf_hash(b"a")
    assert is_included(root, 0, 1, [], root)
    assert not is_included(root[:-1], 0, 1, [], root[:-1])
    assert not is_included(root, 0, 0, [], root)
