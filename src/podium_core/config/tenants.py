"""`tenants.yaml`: who may call, with which keys, roles, workers, limits and budget."""

import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from podium_core.config.retention import Retention
from podium_core.config.tenant_sections import (
    CapsSection,
    KeySection,
    LimitsSection,
    ListsSection,
    ReachSection,
    TenantSection,
    TenantsFile,
)
from podium_core.config.yaml_file import Document, read_document
from podium_core.domain.limits import Limits
from podium_core.domain.policy import CallerReach, Reach, WorkerFilter
from podium_core.domain.run import Caps

CLIENT = "client"
"""Role: call the gateway and read own runs."""
AUDITOR = "auditor"
"""Role: read and prove every run of the tenant, and who read what; no content."""
GRADER = "grader"
"""Role: grade runs of any key of the tenant; a client grades its own."""
EXAMINER = "examiner"
"""Role: read the log itself, with the leaves of every tenant: facts and digests, no content."""
OPERATOR = "operator"
"""Role: read every run of the tenant; no content."""
INVESTIGATOR = "investigator"
"""Role: read every run of the tenant; content for a case, once another key has approved it."""
PRIVACY = "privacy"
"""Role: erase and hold runs of the tenant, approve; no content."""
CUSTODIAN = "custodian"
"""Role: approve that content is read, as keeper of the keys that open it; no runs."""

ROLES = (CLIENT, AUDITOR, GRADER, EXAMINER, OPERATOR, INVESTIGATOR, PRIVACY, CUSTODIAN)
_SECRET_BYTES = 32
_TOKEN = re.compile(r"podium_([A-Za-z0-9][A-Za-z0-9._-]{0,63})_[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class Key:
    """One API key, known by its hash and refused from `expires_ns` (since the Unix epoch) on; None: never.

    `previous` are the secrets it had before it was rotated, each with its own end. `budget_usd_micros` is
    what it may spend per calendar month, UTC, within the tenant's budget; None: not limited by itself.
    """

    key_id: str
    sha256: str
    roles: frozenset[str]
    expires_ns: int | None = None
    limits: Limits = Limits()
    previous: tuple["PreviousSecret", ...] = ()
    reach: Reach = Reach("key")
    budget_usd_micros: int | None = None


@dataclass(frozen=True, slots=True)
class PreviousSecret:
    """A secret that a rotation has replaced: still good until `until_ns` (since the Unix epoch)."""

    sha256: str
    until_ns: int


@dataclass(frozen=True, slots=True)
class Tenant:
    """One organisation or team: what it may use and spend.

    The budget is money per calendar month, UTC; None: not limited.
    `warn_percents` are the shares of it, ascending, whose use is worth a warning. `limits` hold for all
    keys together.
    `keeps_content` False: the log holds commitments to what was said, and nobody stores the words.
    `is_gated`: several workers only where that is expected to win at equal money (docs/gate.md).
    """

    tenant_id: str
    caps: Caps = Caps()
    budget_usd_micros: int | None = None
    reach: Reach = Reach("tenant")
    keys: tuple[Key, ...] = ()
    is_gated: bool = False
    limits: Limits = Limits()
    warn_percents: tuple[int, ...] = (80,)
    keeps_content: bool = True
    retention: Retention = Retention()
    otlp_senders: frozenset[str] = frozenset()
    """Names, as certificates carry them, of the tenant's programs that may send spans."""
    policies: tuple[Reach, ...] = ()
    """Lists of the installation that hold for it besides its own."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is calling: one key of one tenant, and what it may do."""

    tenant: Tenant
    key_id: str
    roles: frozenset[str]
    key_limits: Limits = Limits()
    key_reach: Reach = Reach("key")
    key_budget_usd_micros: int | None = None

    @property
    def reach(self) -> CallerReach:
        """The lists of the installation, of the tenant and of the key, all of which hold."""
        return (*self.tenant.policies, self.tenant.reach, self.key_reach)


_NOBODYS_KEY = Key("", sha256(secrets.token_bytes(_SECRET_BYTES)).hexdigest(), frozenset())


class Tenants:
    """All tenants of one version of the file."""

    def __init__(self, tenants: tuple[Tenant, ...]) -> None:
        self.tenants = tenants
        self.by_id: Mapping[str, Tenant] = {tenant.tenant_id: tenant for tenant in tenants}
        self._keys: Mapping[str, tuple[Tenant, Key]] = {
            key.key_id: (tenant, key) for tenant in tenants for key in tenant.keys
        }

    def keep_content(self, tenant_id: str) -> bool:
        """Whether the words of a tenant's runs are stored, sealed; those of a tenant unknown here are."""
        return all(tenant.keeps_content for tenant in self.tenants if tenant.tenant_id == tenant_id)

    def retention_of(self, tenant_id: str) -> Retention:
        """How long a tenant's records are kept; a stranger's for ever."""
        tenant = self.by_id.get(tenant_id)
        return Retention() if tenant is None else tenant.retention

    def authenticate(self, token: str, now_ns: int) -> Principal | None:
        """Return whose `token` this is, or None when it is nobody's or has expired.

        A known and an unknown key id take the same path, and every secret a key has is compared, so the time
        taken tells them not apart.
        """
        match = _TOKEN.fullmatch(token)
        if match is None:
            return None
        tenant, key = self._keys.get(match[1], (None, _NOBODYS_KEY))
        digest = sha256(token.encode()).hexdigest()
        ends = [(key.sha256, key.expires_ns), *((old.sha256, old.until_ns) for old in key.previous)]
        good = [
            end_ns is None or now_ns < end_ns
            for expected, end_ns in ends
            if hmac.compare_digest(digest, expected)
        ]
        if tenant is None or not any(good) or (key.expires_ns is not None and now_ns >= key.expires_ns):
            return None
        return Principal(tenant, key.key_id, key.roles, key.limits, key.reach, key.budget_usd_micros)

    def claimed_by(self, token: str) -> tuple[str, str]:
        """Return (tenant id, key id) that a token names, be it good or not; empty without such a key."""
        match = _TOKEN.fullmatch(token)
        tenant, key = self._keys.get(match[1] if match else "", (None, _NOBODYS_KEY))
        return ("", "") if tenant is None else (tenant.tenant_id, key.key_id)

    def limits_of(self, tenant_id: str, key_id: str) -> Limits:
        """Return the limits of a tenant (empty `key_id`) or of one of its keys; none for a stranger."""
        if not key_id:
            tenant = self.by_id.get(tenant_id)
            return Limits() if tenant is None else tenant.limits
        key = self._key_of(tenant_id, key_id)
        return Limits() if key is None else key.limits

    def budget_of(self, tenant_id: str, key_id: str) -> int | None:
        """Return the budget of a tenant (empty `key_id`) or of one of its keys; None for a stranger."""
        if not key_id:
            tenant = self.by_id.get(tenant_id)
            return None if tenant is None else tenant.budget_usd_micros
        key = self._key_of(tenant_id, key_id)
        return None if key is None else key.budget_usd_micros

    def _key_of(self, tenant_id: str, key_id: str) -> Key | None:
        owner, key = self._keys.get(key_id, (None, None))
        return key if owner is not None and owner.tenant_id == tenant_id else None


def new_key(key_id: str) -> tuple[str, str]:
    """Return a new token for `key_id`, to be shown once, and the SHA-256 that the file keeps.

    Raises ValueError when `key_id` is not 1 to 64 letters, digits, dots, dashes and underscores.
    """
    token = f"podium_{key_id}_{secrets.token_urlsafe(_SECRET_BYTES)}"
    if not _TOKEN.fullmatch(token):
        raise ValueError("a key id is 1 to 64 letters, digits, dots, dashes and underscores")
    return token, sha256(token.encode()).hexdigest()


def load_tenants(path: Path) -> Tenants:
    """Return what `tenants.yaml` says; raise PodiumError (INVALID_REQUEST) naming line and mistake."""
    document = read_document(path, TenantsFile)
    _refuse_duplicates(document)
    return Tenants(tuple(tenant_of(section) for section in document.content.tenants))


def tenant_of(section: TenantSection, policies: tuple[Reach, ...] = ()) -> Tenant:
    """Return the tenant; `policies` are lists of the installation that hold for it."""
    return Tenant(
        tenant_id=section.id,
        caps=_caps(section.caps or CapsSection()),
        budget_usd_micros=section.budget_usd_per_month,
        reach=reach_of("tenant", section),
        policies=policies,
        keys=tuple(_key(key) for key in section.keys),
        is_gated=section.gate,
        limits=_limits(section.limits),
        warn_percents=section.warn_at_percent,
        keeps_content=section.content == "sealed",
        retention=section.retention.retention() if section.retention is not None else Retention(),
        otlp_senders=frozenset(section.otlp_senders),
    )


def _caps(section: CapsSection) -> Caps:
    return replace(
        Caps(),
        max_steps=section.max_steps,
        max_calls=section.max_calls,
        max_tokens=section.max_tokens,
        max_cost_usd_micros=section.max_usd,
        max_duration_s=section.max_seconds,
        max_rounds=section.max_rounds,
    )


def _key(section: KeySection) -> Key:
    return Key(
        section.id,
        section.sha256,
        frozenset(section.roles),
        section.expires,
        _limits(section.limits),
        tuple(PreviousSecret(old.sha256, old.until) for old in section.previous),
        reach_of("key", section),
        section.budget_usd_per_month,
    )


def reach_of(owner: str, section: ReachSection) -> Reach:
    """Return the lists of a tenant, a key or a policy, in the name of `owner`."""
    return Reach(owner, _filter(section.workers), _filter(section.providers), _filter(section.regions))


def _filter(lists: ListsSection) -> WorkerFilter:
    return WorkerFilter(None if lists.only is None else frozenset(lists.only), frozenset(lists.excluded))


def _limits(section: LimitsSection | None) -> Limits:
    if section is None:
        return Limits()
    return Limits(section.requests_per_minute, section.tokens_per_minute, section.concurrent_runs)


def _refuse_duplicates(document: Document[TenantsFile]) -> None:
    tenant_ids: set[str] = set()
    key_ids: set[str] = set()
    for index, tenant in enumerate(document.content.tenants):
        place = ("tenants", index)
        if tenant.id in tenant_ids:
            raise document.error((*place, "id"), f"there are two tenants {tenant.id!r}")
        tenant_ids.add(tenant.id)
        for number, key in enumerate(tenant.keys):
            if key.id in key_ids:
                raise document.error(
                    (*place, "keys", number, "id"),
                    f"there are two keys {key.id!r}; ids are unique in the file",
                )
            key_ids.add(key.id)
