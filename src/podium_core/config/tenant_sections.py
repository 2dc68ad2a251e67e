"""How `tenants.yaml`, and a cluster's Tenant, write a tenant: fields, bounds, and what goes with what."""

import re
from datetime import UTC, datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from podium_core.config.money import UsdMicros
from podium_core.config.retention import RetentionSection
from podium_core.config.yaml_file import Ident, ListOf, Section, written
from podium_core.domain.plan import MAX_STEPS

MAX_PREVIOUS = 4
"""Secrets that may overlap with a key's newest one."""

SERVICES = frozenset({"gateway", "conductor", "router", "audit", "cli"})
"""Podium's own programs, as certificates name them."""
ROLES_APART = frozenset({"operator", "custodian", "privacy"})
"""No key holds two of these."""
_NANOS = 1_000_000_000
_MAX_ROUNDS = 8
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ)?")


def _check_only(names: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if names == ():
        raise ValueError("an empty list would allow nothing; leave the field out to allow all")
    return names


def _check_sender(name: str) -> str:
    if name in SERVICES:
        raise ValueError("must not be the name of one of Podium's own services")
    return name


def _check_digest(value: str) -> str:
    if not _DIGEST.fullmatch(value):
        raise ValueError("must be the key's SHA-256 in 64 hex digits, and never the key itself")
    return value


def _check_apart(roles: tuple[str, ...]) -> tuple[str, ...]:
    together = sorted(ROLES_APART.intersection(roles))
    if len(together) > 1:
        raise ValueError(f"no key may hold both {together[0]} and {together[1]}: give them to two")
    return roles


def _check_ascending(percents: tuple[int, ...]) -> tuple[int, ...]:
    if list(percents) != sorted(set(percents)):
        raise ValueError("must be different numbers in ascending order")
    return percents


def to_moment_ns(value: object) -> int:
    """Return a date's first moment, or a UTC time, in nanoseconds since the Unix epoch.

    `value` is text such as 2027-01-31 or 2027-01-31T12:00:00Z; raises ValueError for any other.
    """
    if not isinstance(value, str) or not _MOMENT.fullmatch(value):
        raise ValueError('must be a date such as 2027-01-31, or a time in UTC such as "2027-01-31T12:00:00Z"')
    moment = datetime.fromisoformat(value)  # raises ValueError when there is no such day
    return int(moment.replace(tzinfo=UTC).timestamp()) * _NANOS


Count = Annotated[int, Field(ge=1, le=2**31 - 1)]
Percent = Annotated[int, Field(ge=1, le=100)]
Role = Literal["client", "auditor", "grader", "examiner", "operator", "investigator", "privacy", "custodian"]
Name = Annotated[str, StringConstraints(min_length=1, max_length=64)]
SenderName = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$"), AfterValidator(_check_sender)
]
Moment = Annotated[
    int,
    BeforeValidator(to_moment_ns),
    written("^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)?$", max_length=20),
]
"""A date or a UTC time in the file, nanoseconds since the Unix epoch in memory."""


Digest = Annotated[str, AfterValidator(_check_digest), written("^[0-9a-f]{64}$", max_length=64)]


class ListsSection(Section):
    """Allowed names (`only`; without it, all) and refused ones (`except`)."""

    only: Annotated[tuple[Name, ...] | None, AfterValidator(_check_only)] = None
    excluded: ListOf[Name] = Field(default=(), alias="except")


class ReachSection(Section):
    """What tenants and keys have in common."""

    workers: ListsSection = ListsSection()
    providers: ListsSection = ListsSection()
    regions: ListsSection = ListsSection()


class PreviousSection(Section):
    """A secret that a rotation has replaced, and until when it is still good."""

    sha256: Digest
    until: Moment


class CapsSection(Section):
    """Bounds of one run."""

    max_steps: Annotated[int, Field(ge=1, le=MAX_STEPS)] = MAX_STEPS
    max_calls: Count | None = None
    max_tokens: Count | None = None
    max_usd: UsdMicros | None = None
    max_seconds: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] | None = None
    # Not set: what the tier gives.
    max_rounds: Annotated[int, Field(ge=1, le=_MAX_ROUNDS)] = _MAX_ROUNDS


class LimitsSection(Section):
    """Bounds of use."""

    requests_per_minute: Count | None = None
    tokens_per_minute: Count | None = None
    concurrent_runs: Count | None = None


class KeySection(ReachSection):
    """One API key, by its hash; the key itself stands nowhere."""

    id: Ident
    sha256: Digest
    roles: Annotated[tuple[Role, ...], Field(min_length=1), AfterValidator(_check_apart)]
    expires: Moment | None = None
    previous: Annotated[ListOf[PreviousSection], Field(max_length=MAX_PREVIOUS)] = ()
    budget_usd_per_month: UsdMicros | None = None
    limits: LimitsSection | None = None


class TenantSection(ReachSection):
    """One organisation or team: who may call, which workers it may use, what it may spend."""

    id: Ident
    budget_usd_per_month: UsdMicros | None = None
    warn_at_percent: Annotated[ListOf[Percent], AfterValidator(_check_ascending)] = (80,)
    limits: LimitsSection | None = None
    caps: CapsSection | None = None
    gate: bool = False
    content: Literal["sealed", "commitments"] = "sealed"
    retention: RetentionSection | None = None
    otlp_senders: ListOf[SenderName] = ()
    keys: ListOf[KeySection] = ()


class PolicySection(ReachSection):
    """Allow and deny lists of the installation, for all tenants or for some; no file holds them.

    They hold beside the lists of tenants and keys: a worker must pass all.
    """

    tenants: Annotated[tuple[Ident, ...] | None, AfterValidator(_check_only)] = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not {"workers", "providers", "regions"} & self.model_fields_set:
            raise ValueError("give workers, providers or regions: a policy without lists changes nothing")
        return self


class TenantsFile(Section):
    """All of tenants.yaml."""

    tenants: Annotated[tuple[TenantSection, ...], Field(min_length=1)]
