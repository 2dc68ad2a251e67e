"""The filters of a search as a page's parameters; whatever is wrong with one names it."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Final

from podium_audit.rows.run_search import Facet, RunSearch
from podium_core.domain.errors import invalid
from podium_core.domain.run import RunKind, RunOutcome

FILTERS: Final = (
    "from",
    "kind",
    "max_usd",
    "min_usd",
    "model",
    "outcome",
    "principal",
    "provider",
    "region",
    "rule",
    "to",
    "worker",
)
"""Every filter, by name."""

OPEN: Final = "open"
"""The outcome of a run that has none yet."""

_FACETS: Final = {
    "model": Facet.MODEL,
    "provider": Facet.PROVIDER,
    "region": Facet.REGION,
    "rule": Facet.RULE,
    "worker": Facet.WORKER,
}
_MAX_VALUE: Final = 256
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d))?")
_MICROS: Final = 1_000_000
_MAX_MICROS: Final = 2**53


def search_of(query: Mapping[str, str], *, tenant_id: str, principal_id: str | None) -> RunSearch:
    """Return the search that a page's parameters ask for, within what the key may see.

    `principal_id` is the one key whose runs may be seen; None: any of the tenant. Raises PodiumError
    (INVALID_REQUEST) naming the parameter.
    """
    for name in FILTERS:
        value = query.get(name)
        if value is not None and not 0 < len(value) <= _MAX_VALUE:
            raise invalid(f"{name} must be 1 to {_MAX_VALUE} characters", param=name)
    asked = query.get("principal")
    if principal_id is not None and asked not in (None, principal_id):
        raise invalid("this key sees its own runs only: leave principal out", param="principal")
    outcome = query.get("outcome")
    facets = [(facet, query[name]) for name, facet in _FACETS.items() if name in query]
    if outcome is not None and outcome != OPEN:
        facets.append((Facet.OUTCOME, _choice("outcome", outcome, [*RunOutcome, OPEN])))
    return RunSearch(
        tenant_id,
        principal_id if principal_id is not None else asked,
        tuple(facets),
        None if "kind" not in query else _choice("kind", query["kind"], list(RunKind)),
        _moment_us(query, "from"),
        _moment_us(query, "to"),
        _usd_micros(query, "min_usd"),
        _usd_micros(query, "max_usd"),
        True if outcome == OPEN else None,
    )


def _choice(name: str, value: str, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise invalid(f"{name} must be one of {', '.join(allowed)}", param=name)
    return value


def _moment_us(query: Mapping[str, str], name: str) -> int | None:
    """Return a time in microseconds since 1970; a date alone is its first moment, UTC."""
    text = query.get(name)
    if text is None:
        return None
    try:
        if not _MOMENT.fullmatch(text):
            raise ValueError(text)  # noqa: TRY301 - one message for everything that is no time
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return round(moment.timestamp() * _MICROS)
    except (ValueError, OverflowError):
        raise invalid(
            f"{name} must be a date such as 2026-11-30, or a time such as 2026-11-30T12:00:00Z", param=name
        ) from None


def _usd_micros(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    try:
        amount = Decimal(text) * _MICROS
        if not 0 <= amount <= _MAX_MICROS or amount != amount.to_integral_value():
            raise ValueError(text)  # noqa: TRY301 - one message for everything that is no amount
        return int(amount)
    except (InvalidOperation, ValueError):
        raise invalid(f"{name} must be US dollars such as 0.05, to six decimals", param=name) from None
