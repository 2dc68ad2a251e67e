"""What replicas share in the log's database beside the log: tables that only writers see, and may change."""

from typing import Final, LiteralString

from podium_audit.stores.postgres import anchors, conversations, leases, meters, spans
from podium_audit.stores.postgres.connection import Session
from podium_audit.stores.postgres.migrations import Steps, migrate

_RIGHTS: tuple[LiteralString, ...] = (
    "GRANT SELECT, INSERT, UPDATE, DELETE ON leases, meters, items TO podium_audit_writer",
)
_MORE_RIGHTS: tuple[LiteralString, ...] = (
    "GRANT SELECT, INSERT, UPDATE, DELETE ON spans, anchors TO podium_audit_writer",
)

STEPS: Final[Steps] = (
    (*leases.TABLES, *meters.TABLES, *conversations.TABLES, *_RIGHTS),
    (*spans.TABLES, *anchors.TABLES, *_MORE_RIGHTS),
)


def make_shared_tables(owner: Session, *, wait_s: float) -> None:
    """Bring the tables to this program's version, with the rights of their owner, once the log's are there.

    Raises StoreError.
    """
    migrate(owner, "shared", STEPS, wait_s=wait_s)
