"""The `podium` object of a request: which workers, which limits, what to tell about the run."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from podium_core.domain.plan import MAX_STEPS
from podium_core.domain.policy import WorkerFilter
from podium_gateway.codecs.fields import (
    as_array,
    as_boolean,
    as_integer,
    as_number,
    as_object,
    as_string,
    kind_of,
    known_fields,
    refuse,
)

_MAX_USD = 1_000_000
_MAX_SECONDS = 86_400
_MAX_WORKERS = 1_024
_MAX_ROUNDS = 16
_MAX_TOKENS = 2**53 - 1
FIELDS = (
    "dry_run",
    "events",
    "max_calls",
    "max_seconds",
    "max_steps",
    "max_tokens",
    "max_usd",
    "rounds",
    "workers",
)


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the client wants of the run; None leaves it to the tenant and the server."""

    workers: WorkerFilter = WorkerFilter()
    max_steps: int | None = None
    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost_usd_micros: int | None = None
    max_duration_s: float | None = None
    rounds: int | None = None
    events: bool = False
    dry_run: bool = False


def decode_wishes(value: object) -> Wishes:
    """Return the wishes; raise PodiumError (INVALID_REQUEST) naming the first bad or unknown field."""
    if value is None:
        return Wishes()
    fields = as_object(value, "podium")
    known_fields(fields, FIELDS, "podium")
    given = {name: item for name, item in fields.items() if item is not None}
    seconds = given.get("max_seconds")
    return Wishes(
        workers=_workers(given.get("workers", {})),
        max_steps=_count(given, "max_steps", MAX_STEPS),
        max_calls=_count(given, "max_calls", 2**31 - 1),
        max_tokens=_count(given, "max_tokens", _MAX_TOKENS),
        max_cost_usd_micros=_usd_micros(given["max_usd"]) if "max_usd" in given else None,
        max_duration_s=None
        if seconds is None
        else as_number(seconds, "podium.max_seconds", at_least=0.001, at_most=_MAX_SECONDS),
        rounds=_count(given, "rounds", _MAX_ROUNDS),
        events=as_boolean(given.get("events", False), "podium.events"),
        dry_run=as_boolean(given.get("dry_run", False), "podium.dry_run"),
    )


def _count(given: Mapping[str, object], name: str, at_most: int) -> int | None:
    return as_integer(given[name], f"podium.{name}", at_least=1, at_most=at_most) if name in given else None


def _usd_micros(value: object) -> int:
    param = "podium.max_usd"
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise refuse(
            param, f'must be a number of US dollars or a string such as "0.05", not {kind_of(value)}'
        )
    try:
        # repr gives a float's shortest decimal, which is what the client wrote.
        dollars = Decimal(repr(value) if isinstance(value, float) else value)
    except InvalidOperation:
        raise refuse(param, "is not a decimal number") from None
    if not dollars.is_finite() or not 0 <= dollars <= _MAX_USD:
        raise refuse(param, f"must be between 0 and {_MAX_USD} US dollars")
    micros = dollars * 1_000_000
    if micros != int(micros):
        raise refuse(param, "may be as fine as a millionth of a dollar, not finer")
    return int(micros)


def _workers(value: object) -> WorkerFilter:
    path = "podium.workers"
    fields = as_object(value, path)
    known_fields(fields, ("except", "only"), path)
    only = fields.get("only")
    return WorkerFilter(
        only=None if only is None else _ids(only, f"{path}.only", at_least=1),
        excluded=_ids(fields.get("except") or [], f"{path}.except", at_least=0),
    )


def _ids(value: object, param: str, *, at_least: int) -> frozenset[str]:
    items = as_array(value, param, at_least=at_least, at_most=_MAX_WORKERS)
    return frozenset(
        as_string(item, f"{param}[{index}]", at_most=128, may_be_empty=False)
        for index, item in enumerate(items)
    )
