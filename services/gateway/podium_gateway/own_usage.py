"""`GET /v1/podium/usage`: what a key, or its whole tenant, has used and spent, and what money is left."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from podium_core.config.tenants import AUDITOR, Principal
from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError
from podium_gateway.codecs.fields import refuse
from podium_gateway.ports import USAGE_COUNTS, MonthMoney, UsagePort, UsageRow

MAX_DAYS = 92
_NANOS = 1_000_000_000
GROUPS = ("day", "key", "worker", "model")
_DEFAULT_GROUPS = ("day", "worker", "model")
PARAMETERS = ("from", "to", "scope", "group_by")
SCOPES = ("key", "tenant")


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the query asks for; days are UTC and both included."""

    first: date
    last: date
    scope: str
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OwnUsage:
    """Answers from audit's sums, the same through every gateway."""

    usage: UsagePort
    clock: Clock

    async def page(self, principal: Principal, query: Mapping[str, str]) -> dict[str, object]:
        """Return the page; raise PodiumError: INVALID_REQUEST, POLICY_DENIED, AUDIT_UNAVAILABLE."""
        today = datetime.fromtimestamp(self.clock.now_ns() / _NANOS, UTC).date()
        asked = _asked(query, today)
        if asked.scope == "tenant" and AUDITOR not in principal.roles:
            raise PodiumError(
                Code.POLICY_DENIED,
                f'the key {principal.key_id} lacks the role "{AUDITOR}", which its tenant\'s usage needs;'
                " leave scope out for its own",
                reason="ROLE_MISSING",
            )
        key_id = principal.key_id if asked.scope == "key" else ""
        used = await self.usage.read(
            principal.tenant.tenant_id, key_id, asked.first.isoformat(), asked.last.isoformat()
        )
        return {
            "object": "podium.usage",
            "tenant": principal.tenant.tenant_id,
            "key": key_id or None,
            "from": asked.first.isoformat(),
            "to": asked.last.isoformat(),
            "total": _counts([row.counts for row in used.rows]),
            "rows": _grouped(used.rows, asked.groups),
            "money": _money(used.money),
            "key_money": None if used.key_money is None else _money(used.key_money),
        }


def _asked(query: Mapping[str, str], today: date) -> _Asked:
    for name in query:
        if name not in PARAMETERS:
            raise refuse(name[:64], f"is no query parameter here; there are {', '.join(PARAMETERS)}")
    last = _day("to", query["to"]) if "to" in query else today
    first = _day("from", query["from"]) if "from" in query else last.replace(day=1)
    if not 0 <= (last - first).days < MAX_DAYS:
        raise refuse("from", f"must not be after to, nor {MAX_DAYS} days or more before it")
    scope = query.get("scope", "key")
    if scope not in SCOPES:
        raise refuse("scope", "must be key or tenant")
    groups = tuple(query["group_by"].split(",")) if "group_by" in query else _DEFAULT_GROUPS
    if len(set(groups)) != len(groups) or not set(groups) <= set(GROUPS):
        raise refuse("group_by", f"must be different ones of {', '.join(GROUPS)}, with commas between")
    return _Asked(first, last, scope, groups)


def _day(name: str, text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or day.isoformat() != text:
        raise refuse(name, "must be a UTC day as YYYY-MM-DD")
    return day


def _grouped(rows: Sequence[UsageRow], groups: tuple[str, ...]) -> list[dict[str, object]]:
    """Return one object per group, in the order of the days; what a request row has no worker is null."""
    found: dict[tuple[str | None, ...], list[tuple[int, ...]]] = {}
    for row in rows:
        facts = {"day": row.day, "key": row.principal_id, "worker": row.worker_id or None, "model": row.model}
        found.setdefault(tuple([facts[group] for group in groups]), []).append(row.counts)
    return [{**dict(zip(groups, place, strict=True)), **_counts(sums)} for place, sums in found.items()]


def _counts(rows: Sequence[tuple[int, ...]]) -> dict[str, int]:
    sums = [sum(column) for column in zip(*rows, strict=True)] if rows else [0] * len(USAGE_COUNTS)
    return dict(zip(USAGE_COUNTS, sums, strict=True))


def _money(money: MonthMoney) -> dict[str, object]:
    left = None if money.budget is None else max(0, money.budget - money.settled - money.reserved)
    return {
        "month": money.month,
        "budget_usd_micros": money.budget,
        "spent_usd_micros": money.settled,
        "reserved_usd_micros": money.reserved,
        "left_usd_micros": left,
    }
