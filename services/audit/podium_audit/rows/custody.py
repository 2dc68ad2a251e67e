"""What the log keeps beside records about their keeping: holds, approvals, erasures, who read what.

Each row is what its records say, kept so that it can be found; a record comes with it in the same commit.
"""

from typing import NamedTuple, Protocol


class ControlRow(NamedTuple):
    """One decision that stands, or stood, over a tenant's records: a hold, an approval, a retention policy.

    `body` is canonical JSON, whose keys the `kind` fixes.
    """

    tenant_id: str
    kind: str
    item_id: str
    stands: bool
    body: str


class ErasureRow(NamedTuple):
    """A run whose content is being erased since leaf `begun_index`; gone once there is an `erased_index`.

    It names the key to destroy, so that whoever finishes it needs no more than the row.
    """

    run_no: int
    run_id: str
    tenant_id: str
    key_no: int
    begun_index: int
    erased_index: int | None = None


class ReadRow(NamedTuple):
    """A record of somebody's reading. `run_id` is empty where no single run was read."""

    leaf_index: int
    tenant_id: str
    time_us: int
    principal_id: str
    action: str
    run_id: str
    with_content: bool
    case_id: str


class SubjectRow(NamedTuple):
    """A run for a person, whom it names by pseudonym."""

    tenant_id: str
    subject: str
    run_no: int


class KeptRun(NamedTuple):
    """A run whose erasure has not begun."""

    run_no: int
    run_id: str


class ShelfUse(NamedTuple):
    """What is on a shelf: whose records, when the last of its runs ended, and whether words are left."""

    tenant_ids: tuple[str, ...]
    last_sealed_us: int
    has_words: bool


class CustodyReader(Protocol):
    """Reads what is committed. Every method raises StoreError when it cannot."""

    def controls(self, kind: str, tenant_id: str) -> list[ControlRow]:
        """Return what stands of one kind for a tenant, by `item_id`."""
        ...

    def pending_erasures(self, limit: int) -> list[ErasureRow]:
        """Return erasures of any tenant that have begun and are not finished, the oldest first."""
        ...

    def expired_runs(
        self, tenant_id: str, *, sealed_before_us: int, after_no: int, limit: int
    ) -> list[KeptRun]:
        """Return a tenant's runs that ended before then and whose erasure has not begun, by `run_no`."""
        ...

    def runs_of_subject(self, tenant_id: str, subject: str, limit: int) -> list[KeptRun]:
        """Return runs for a person whose erasure has not begun, by `run_no`."""
        ...

    def reads(self, tenant_id: str, *, before_index: int | None, limit: int) -> list[ReadRow]:
        """Return who read what of a tenant, newest first."""
        ...

    def count_reads(self, tenant_id: str) -> int:
        """Return how many rows `reads` could show in all."""
        ...
