"""How long a proof takes in a large log: `python -m benchmarks.proofs --leaves 1000000`."""

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.report import Table
from podium_audit.ports import Batch, CheckpointRow, EventRow, LeafRow
from podium_audit.proofs import tile_pages
from podium_audit.stores.sqlite import SqliteStore
from podium_audit.stores.sqlite_reader import SqliteReader
from podium_audit.tree.tiles import TileNodes, inclusion_proof, load_tail
from podium_core.domain import merkle

_BATCH = 4_096
_LEAF_BYTES = 400
_PROOFS = 2_000
_BUSY_S = 5.0
_BAR_MS = "10"


def build(file: Path, leaf_count: int) -> bytes:
    """Make a log of so many leaves as audit makes one; return its root."""
    store = SqliteStore(file, busy_s=_BUSY_S)
    store.open()
    tail = load_tail(store, 0)
    while tail.size < leaf_count:
        first = tail.size
        leaves = [b"%d" % at + b"." * _LEAF_BYTES for at in range(first, min(first + _BATCH, leaf_count))]
        rows = [LeafRow(tail.append(leaf), None, leaf) for leaf in leaves]
        event = EventRow(f"evt_{first}", b"." * 32, first, len(rows))
        checkpoint = CheckpointRow(tail.size, "note")
        store.commit(Batch(leaves=rows, events=[event], tiles=tail.changed_tiles(), checkpoint=checkpoint))
    store.close()
    return tail.root


def milliseconds(work: Callable[[], object], count: int) -> list[float]:
    """Return how long each of so many repetitions took, ascending."""
    taken = []
    for _ in range(count):
        started = time.perf_counter()
        work()
        taken.append((time.perf_counter() - started) * 1_000)
    return sorted(taken)


def row(name: str, taken: Sequence[float]) -> tuple[str, ...]:
    """Return a table's row: median, 99th percentile, worst."""
    figures = (taken[len(taken) // 2], taken[len(taken) * 99 // 100], taken[-1])
    return (name, *(f"{figure:.2f}" for figure in figures), _BAR_MS)


def measure(leaf_count: int) -> Table:
    """Build a log and time its proofs, each with nothing kept from the one before."""
    chance = random.Random(7)
    with tempfile.TemporaryDirectory(prefix="podium-bench-") as folder:
        root = build(Path(folder) / "log.db", leaf_count)
        reader = SqliteReader(Path(folder) / "log.db")

        def inclusion() -> None:
            index = chance.randrange(leaf_count)
            path = inclusion_proof(TileNodes(reader), index, leaf_count)
            leaf = merkle.leaf_hash(b"%d" % index + b"." * _LEAF_BYTES)
            assert merkle.root_from_path(leaf, index, leaf_count, path) == root

        def consistency() -> None:
            merkle.consistency_path(chance.randrange(1, leaf_count), leaf_count, TileNodes(reader))

        def tile() -> None:
            place = tile_pages.Place(0, chance.randrange(leaf_count // 256))
            assert tile_pages.hashes(reader, place, leaf_count) is not None

        rows = (
            row("inclusion, checked", milliseconds(inclusion, _PROOFS)),
            row("consistency", milliseconds(consistency, _PROOFS)),
            row("full tile", milliseconds(tile, _PROOFS)),
        )
        reader.close()
    return Table(
        f"Proofs in a log of {leaf_count:,} leaves", ("what", "p50 ms", "p99 ms", "worst", "bar"), rows
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.proofs", description=__doc__)
    parser.add_argument("--leaves", type=int, default=1_000_000, help="size of the log (default: 1000000)")
    measure(parser.parse_args().leaves).show(Console(width=120))
