"""Anchors tie a checkpoint to the world outside: whoever owns the database cannot rewrite it unseen."""

from typing import Final, NamedTuple, Protocol

COSIGNATURE: Final = "cosignature"
"""Kind: signature lines of a witness; only the newest of each is kept, for it stands for all before."""
TIME_STAMP: Final = "time_stamp"
"""Kind: an RFC 3161 response over the checkpoint's note."""
FILE: Final = "file"
"""Kind: the note was written to a place where nothing is overwritten; the data are the file's name."""


class AnchorRow(NamedTuple):
    """One anchor of the checkpoint of `size` leaves, got at `time_us` from the one called `name`."""

    kind: str
    name: str
    size: int
    time_us: int
    data: bytes


class AnchorStore(Protocol):
    """Keeps anchors; used by one thread at a time. Every method raises StoreError.

    What it loses can be got again, except for the time that a time stamp proves.
    """

    def open(self) -> None:
        """Connect, or connect anew after an error."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...

    def put(self, row: AnchorRow) -> None:
        """Keep an anchor durably; a cosignature takes the place of the older one of its name."""
        ...

    def newest(self, max_size: int) -> list[AnchorRow]:
        """Return the anchor of each kind and name over the largest checkpoint up to `max_size`."""
        ...

    def first_over(self, index: int) -> list[AnchorRow]:
        """Return the anchor of each kind and name over the smallest checkpoint that holds leaf `index`."""
        ...
