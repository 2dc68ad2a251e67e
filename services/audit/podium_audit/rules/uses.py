"""What the running batch adds to the sums of each key's day."""

from podium_audit.ports import UseRow
from podium_audit.records.run_state import Use
from podium_core.domain.usage import UsageSource

_Place = tuple[str, str, str, str, str]


class UseBook:
    """Sums up a batch, so that a commit touches each stored sum once."""

    def __init__(self) -> None:
        self._sums: dict[_Place, list[int]] = {}

    def add(self, tenant_id: str, principal_id: str, use: Use) -> None:
        """Add what one record used."""
        usage = use.usage
        amounts = (
            use.requests,
            use.attempts,
            int(usage.source is UsageSource.ESTIMATED),
            use.unknown_attempts + int(usage.source is UsageSource.UNKNOWN),
            usage.input_tokens,
            usage.output_tokens,
            usage.cached_input_tokens,
            usage.cache_write_input_tokens,
            usage.reasoning_output_tokens,
            use.cost_usd_micros,
        )
        if any(amounts):
            place = (tenant_id, use.day, principal_id, use.worker_id, use.model)
            sums = self._sums.setdefault(place, [0] * len(amounts))
            for index, amount in enumerate(amounts):
                sums[index] += amount

    def take_changes(self) -> list[UseRow]:
        """Return the rows to add, and forget them."""
        rows = [UseRow(*place, *sums) for place, sums in self._sums.items()]
        self._sums.clear()
        return rows
