"""How much a tenant or one of its keys may ask for: per minute, and at a time."""

from dataclasses import dataclass
from enum import StrEnum

WINDOW_S = 60
"""What "per minute" means: any 60 seconds in a row, not a minute of the clock."""


class LimitKind(StrEnum):
    """What is counted. The values are the names in `tenants.yaml`."""

    REQUESTS = "requests_per_minute"
    TOKENS = "tokens_per_minute"
    RUNS = "concurrent_runs"


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one tenant or key; None means not limited."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrent_runs: int | None = None

    def of(self, kind: LimitKind) -> int | None:
        """Return the limit of one kind."""
        match kind:
            case LimitKind.REQUESTS:
                return self.requests_per_minute
            case LimitKind.TOKENS:
                return self.tokens_per_minute
            case LimitKind.RUNS:
                return self.concurrent_runs


@dataclass(frozen=True, slots=True)
class LimitName:
    """One limit: the tenant's own, over all its keys, when `key_id` is empty; else one key's."""

    tenant_id: str
    key_id: str
    kind: LimitKind

    @property
    def scope(self) -> str:
        """`key` or `tenant`."""
        return "key" if self.key_id else "tenant"
