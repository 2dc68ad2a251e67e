"""Spans as the trace store keeps them. They are for operators: deletable, never proof, without content."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class SpanRow(NamedTuple):
    """One span. Ids are lower-case hex; `attributes_json` is an object of allow-listed attributes.

    `tenant_id` is that of a foreign sender; spans of Podium's own services have none and belong to whoever
    the run belongs to. `run_id` is empty where the span names no run.
    """

    trace_id: str
    span_id: str
    parent_span_id: str
    tenant_id: str
    run_id: str
    service: str
    name: str
    kind: int
    started_ns: int
    ended_ns: int
    is_error: bool
    attributes_json: str


class SpanStore(Protocol):
    """Keeps spans; used by one thread. Every method raises StoreError."""

    def open(self) -> None:
        """Connect, or connect anew after an error. Makes an empty store where there is none."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...

    def add(self, rows: Sequence[SpanRow]) -> None:
        """Keep spans; one that is kept already stays as it is, since senders repeat themselves."""
        ...

    def of_run(self, run_id: str, tenant_id: str, limit: int) -> list[SpanRow]:
        """Return spans, by start, of every trace in which a span names the run, at most `limit`.

        Only Podium's own and the tenant's.
        """
        ...

    def sweep(self, before_ns: int, limit: int) -> int:
        """Delete up to `limit` spans that ended before a time; return how many."""
        ...
