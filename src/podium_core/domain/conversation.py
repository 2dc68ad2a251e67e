"""Items that outlive a request without being evidence: stored answers, tool contexts, idempotency keys.

Audit keeps them sealed, any gateway may read them, and all of them can be deleted (class `conversation`).
"""

from dataclasses import dataclass, field
from enum import StrEnum


class ItemKind(StrEnum):
    """What an item is for."""

    RESPONSE = "response"
    """A response that its client asked to have stored."""
    BACKGROUND = "background"
    """The state or the answer of a run that goes on without a client."""
    CONTINUATION = "continuation"
    """What the worker that asked for tools was sent and said, for when the results come."""
    IDEMPOTENCY = "idempotency"
    """Which run an idempotency key stands for, then its answer."""
    SHARED_KEY = "shared_key"
    """A key that all gateways share for one tenant."""
    COMPLETION = "completion"
    """A chat completion that its client asked to have stored."""
    COMPLETION_MESSAGES = "completion_messages"
    """The messages that a stored chat completion answers."""


@dataclass(frozen=True, slots=True)
class ItemKey:
    """An item's name. It means something within its tenant only."""

    tenant_id: str
    kind: ItemKind
    item_id: str


@dataclass(frozen=True, slots=True)
class ItemRange:
    """Items of one kind of a tenant whose ids begin with `prefix`, by id; behind `after`, unless empty."""

    tenant_id: str
    kind: ItemKind
    prefix: str
    after: str = ""
    is_descending: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """What is kept under a key.

    `version` is another one after every change, and no other item ever has it. `expires_at_ms` counts from
    1970 in UTC; 0: the item stays until it is deleted. `run_id` is the run it came from, if any.
    """

    data: bytes = field(repr=False)
    version: int
    expires_at_ms: int = 0
    run_id: str = ""
