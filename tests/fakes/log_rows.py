"""Batches as a store takes them, without a log that made them."""

from podium_audit.ports import Batch, ContentRow, EventRow, LeafRow, RunRow
from podium_audit.records.shelves import shelf_of

MAY, JUNE = 1_746_057_600_000_000, 1_748_736_000_000_000
"""The beginnings of two months of 2025, in microseconds."""


def a_run(number: int, first: int, *, tenant: str = "acme", opened_us: int = MAY, leaves: int = 2) -> Batch:
    """Return the batch that opens a run with so many leaves from index `first`."""
    shelf = shelf_of(opened_us)
    return Batch(
        runs=[RunRow(number, f"run_{number}", tenant, "key1", "chat", "podium", number, None, opened_us)],
        leaves=[
            LeafRow(first + at, number, b"leaf %d" % (first + at), tenant, shelf) for at in range(leaves)
        ],
        events=[EventRow(f"evt_{number}", b"d" * 32, first, leaves)],
        contents=[ContentRow(first * 256, b"sealed", tenant, shelf)],
    )
