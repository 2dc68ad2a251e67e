# ruff: noqa: INP001 - beside a script, in no package
"""What fields of a resource demand of each other, as CEL rules that the API server checks at every write.

They say what the loaders of podium_core.config say, so that a mistake is refused where it is made. Each is
evaluated on good and bad objects in tests/unit/k8s/test_crds.py.
"""

from dataclasses import dataclass
from typing import get_args

from podium_core.config.provider import EMBEDDING_PREFIXES, KEY_REQUIRED, NEEDS_URL, LitellmPrefix
from podium_core.config.retention import EVIDENCE_FLOOR_DAYS
from podium_core.config.tenant_sections import ROLES_APART, SERVICES
from podium_core.config.worker_sections import NO_EMBEDDINGS

MAX_WARNINGS = 8
"""Most numbers in warn_at_percent: CEL compares each with the next by name."""

Path = tuple[str, ...]
"""Where a rule stands, from the top of the object; `*` is an item of a list."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One condition on `self`, and what to tell who breaks it."""

    rule: str
    message: str


def _quoted(names: "frozenset[str] | tuple[str, ...]") -> str:
    return "[" + ", ".join(f"'{name}'" for name in sorted(names)) + "]"


def _one_of(names: "frozenset[str] | tuple[str, ...]") -> str:
    return "|".join(sorted(names))


def _only_for(field: str, provider: str) -> Rule:
    return Rule(
        f"!has(self.{field}) || self.provider == '{provider}'", f"{field} is for provider {provider} only"
    )


_PREFIXES: tuple[str, ...] = get_args(LitellmPrefix)
_NAME = Rule("size(self.metadata.name) <= 64", "metadata.name may have at most 64 characters")
_REGION = "has(self.region) && self.region != ''"
_EMBEDS = "has(self.features) && 'embeddings' in self.features"

WORKER: dict[Path, tuple[Rule, ...]] = {
    (): (_NAME,),
    ("spec",): (
        Rule(
            f"!(self.provider in {_quoted(NEEDS_URL)}) || has(self.base_url)",
            f"base_url is required for providers {', '.join(sorted(NEEDS_URL))}",
        ),
        Rule(
            f"!(self.provider in {_quoted(KEY_REQUIRED)}) || has(self.key)",
            f"key is required for providers {', '.join(sorted(KEY_REQUIRED))}",
        ),
        _only_for("api_version", "azure"),
        _only_for("project", "vertex"),
        _only_for("aws", "bedrock"),
        Rule(
            f"self.provider != 'bedrock' || ({_REGION})",
            "region is required for provider bedrock, such as eu-central-1",
        ),
        Rule(
            "self.provider != 'bedrock' || has(self.key) != has(self.aws)",
            "provider bedrock needs either key (a Bedrock API key) or aws (access keys)",
        ),
        Rule(
            f"self.provider != 'vertex' || (has(self.project) && {_REGION})",
            "provider vertex needs project and region, such as europe-west4 or global",
        ),
        Rule(
            f"self.provider != 'litellm' || self.model.matches('^({_one_of(_PREFIXES)})/.+')",
            f"model of provider litellm must look like PREFIX/MODEL with a prefix of: {', '.join(_PREFIXES)}",
        ),
        Rule(
            f"!(self.provider in {_quoted(NO_EMBEDDINGS)}) || !({_EMBEDS})",
            f"providers {', '.join(sorted(NO_EMBEDDINGS))} make no embeddings",
        ),
        Rule(
            f"self.provider != 'litellm' || !({_EMBEDS})"
            f" || self.model.matches('^({_one_of(EMBEDDING_PREFIXES)})/.+')",
            "provider litellm makes embeddings only with the prefixes "
            + ", ".join(sorted(EMBEDDING_PREFIXES)),
        ),
    ),
    ("spec", "price"): (
        Rule(
            "!has(self.cached_input_usd_per_mtok)"
            " || double(self.cached_input_usd_per_mtok) <= double(self.input_usd_per_mtok)",
            "cached_input_usd_per_mtok may not be above input_usd_per_mtok",
        ),
        Rule(
            "!has(self.cache_write_input_usd_per_mtok)"
            " || double(self.cache_write_input_usd_per_mtok) >= double(self.input_usd_per_mtok)",
            "cache_write_input_usd_per_mtok may not be below input_usd_per_mtok",
        ),
    ),
    ("spec", "limits"): (
        Rule(
            "!has(self.hedge_after_s) || !has(self.hedge_learned) || !self.hedge_learned",
            "give either hedge_after_s or hedge_learned",
        ),
    ),
}

_REAL_DAY = Rule(
    "timestamp(size(self) == 10 ? self + 'T00:00:00Z' : self) > timestamp('0001-01-01T00:00:00Z')",
    "there is no such day or time",
)
_KEY = ("spec", "keys", "*")

TENANT: dict[Path, tuple[Rule, ...]] = {
    (): (_NAME,),
    ("spec", "warn_at_percent"): (
        Rule(
            " && ".join(
                f"(size(self) <= {place + 1} || self[{place}] < self[{place + 1}])"
                for place in range(MAX_WARNINGS - 1)
            ),
            "must be different numbers in ascending order",
        ),
    ),
    ("spec", "retention"): (
        Rule(
            f"!has(self.evidence_days) || self.evidence_days >= {EVIDENCE_FLOOR_DAYS}",
            f"evidence is kept for {EVIDENCE_FLOOR_DAYS} days at least, six months",
        ),
        Rule(
            "!has(self.evidence_days) || !has(self.content_days) || self.content_days <= self.evidence_days",
            "content_days may not be more than evidence_days: words go with their record",
        ),
    ),
    ("spec", "otlp_senders", "*"): (
        Rule(f"!(self in {_quoted(SERVICES)})", "must not be the name of one of Podium's own services"),
    ),
    (*_KEY, "roles"): (
        Rule(
            f"size(self.filter(role, role in {_quoted(ROLES_APART)})) <= 1",
            f"no key may hold two of {', '.join(sorted(ROLES_APART))}: give them to two",
        ),
    ),
    (*_KEY, "expires"): (_REAL_DAY,),
    (*_KEY, "previous", "*", "until"): (_REAL_DAY,),
}

POLICY: dict[Path, tuple[Rule, ...]] = {
    (): (_NAME,),
    ("spec",): (
        Rule(
            "has(self.workers) || has(self.providers) || has(self.regions)",
            "give workers, providers or regions: a policy without lists changes nothing",
        ),
    ),
}
