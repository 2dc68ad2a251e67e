"""`pool.yaml`: the workers, where they are reached, what they cost and what is known of them."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from podium_core.config.money import UsdMicros, to_millionths
from podium_core.config.provider import EMBEDDING_PREFIXES, ProviderFields, ProviderKind, is_translated
from podium_core.config.yaml_file import Document, Ident, ListOf, Section, read_document
from podium_core.domain.pool import Card, Pool, Skill, Worker
from podium_core.domain.usage import Price

_MILLION = 1_000_000
_MAX_TOKENS = 100_000_000
_MAX_CONCURRENCY = 10_000
_MAX_TIMEOUT_S = 3_600
_MAX_WORKERS = 400  # a record holds one verdict per worker, and a record is bounded
_DEFAULT_TIMEOUT_S = 120.0
_DEFAULT_CONCURRENCY = 64
_DEFAULT_OUTPUT_TOKENS = 4_096
_MAKES_NO_EMBEDDINGS = frozenset({"anthropic", "vertex"})
_IPV6 = 6
# In ASCII: what one reader of addresses takes for a name, another may refuse when it is time to call.
_HOST = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*")
_PRINTABLE = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class KeyReference:
    """Where a provider key is: in an environment variable, or in a file. Exactly one is set.

    A relative path in `pool.yaml` counts from the directory of that file.
    """

    env: str | None = None
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Bounds of one worker's calls beside its total time and its concurrency.

    Seconds: None leaves it to the router's settings. Per minute: None means not limited.
    """

    connect_timeout_s: float | None = None
    first_token_timeout_s: float | None = None
    idle_timeout_s: float | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


@dataclass(frozen=True, slots=True)
class WorkerEntry:
    """A worker together with how the router reaches it.

    `base_url` has no trailing slash. `keys` holds what the provider must be shown: `key`, or for AWS
    `aws_access_key_id`, `aws_secret_access_key` and perhaps `aws_session_token`. `timeout_s` bounds a whole
    call.
    """

    worker: Worker
    base_url: str
    keys: Mapping[str, KeyReference]
    timeout_s: float
    limits: CallLimits = CallLimits()
    api_version: str = ""

    @property
    def provider(self) -> str:
        """The kind of provider, such as `openai-compatible`."""
        return self.worker.provider

    @property
    def is_translated(self) -> bool:
        """Whether its provider speaks a protocol other than OpenAI's."""
        return is_translated(self.provider)


@dataclass(frozen=True, slots=True)
class PoolFile:
    """All workers of one version of the file, in its order."""

    entries: tuple[WorkerEntry, ...]
    pool: Pool


def load_pool(path: Path) -> PoolFile:
    """Return what `pool.yaml` says; raise PodiumError (INVALID_REQUEST) naming line and mistake."""
    document = read_document(path, _PoolSection)
    _refuse_duplicates(document)
    sections = document.content.workers
    entries = tuple(_entry(section, path.parent) for section in sections)
    pool = Pool(
        tuple(entry.worker for entry in entries),
        pool_digest=_pool_digest(sections),
        price_digest=_price_digest(sections),
    )
    return PoolFile(entries, pool)


def _check_url(url: str) -> str:
    parts = urlsplit(url)
    has_extras = parts.username is not None or parts.query or parts.fragment
    is_host = parts.hostname is not None and (_HOST.fullmatch(parts.hostname) or _is_ipv6(parts.hostname))
    if parts.scheme not in ("http", "https") or not is_host or has_extras or not _PRINTABLE.fullmatch(url):
        raise ValueError("must look like https://host/v1, without user, query or fragment")
    _ = parts.port  # raises ValueError when it is none
    return url.rstrip("/")


def _is_ipv6(host: str) -> bool:
    try:
        return ip_address(host).version == _IPV6
    except ValueError:
        return False


def _check_share(value: int) -> int:
    if value > _MILLION:
        raise ValueError("must be a share between 0 and 1")
    return value


Tokens = Annotated[int, Field(ge=0, le=_MAX_TOKENS)]
Seconds = Annotated[float, Field(gt=0, le=_MAX_TIMEOUT_S, allow_inf_nan=False)]
PerMinute = Annotated[int, Field(ge=1, le=1_000_000_000)]
SharePpm = Annotated[int, BeforeValidator(to_millionths), AfterValidator(_check_share)]


class _KeySection(Section):
    env: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")] | None = None
    file: Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f]+$")] | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.env is None) == (self.file is None):
            raise ValueError("give either env (a variable's name) or file (a path), and never the key itself")
        return self


class _AwsSection(Section):
    access_key_id: _KeySection
    secret_access_key: _KeySection
    session_token: _KeySection | None = None


class _PriceSection(Section):
    input_usd_per_mtok: UsdMicros
    output_usd_per_mtok: UsdMicros
    cached_input_usd_per_mtok: UsdMicros | None = None
    cache_write_input_usd_per_mtok: UsdMicros | None = None

    @model_validator(mode="after")
    def _cached_input_is_no_dearer(self) -> Self:
        cached = self.cached_input_usd_per_mtok
        if cached is not None and cached > self.input_usd_per_mtok:  # a reservation counts no input as cached
            raise ValueError("cached_input_usd_per_mtok may not be above input_usd_per_mtok")
        written = self.cache_write_input_usd_per_mtok
        if written is not None and written < self.input_usd_per_mtok:
            raise ValueError("cache_write_input_usd_per_mtok may not be below input_usd_per_mtok")
        return self

    @property
    def price(self) -> Price:
        return Price(
            self.input_usd_per_mtok,
            self.output_usd_per_mtok,
            self.cached_input_usd_per_mtok,
            self.cache_write_input_usd_per_mtok,
        )


class _LimitsSection(Section):
    max_concurrency: Annotated[int, Field(ge=1, le=_MAX_CONCURRENCY)] = _DEFAULT_CONCURRENCY
    timeout_s: Seconds = _DEFAULT_TIMEOUT_S
    connect_timeout_s: Seconds | None = None
    first_token_timeout_s: Seconds | None = None
    idle_timeout_s: Seconds | None = None
    hedge_after_s: Seconds | None = None
    hedge_learned: bool = False
    requests_per_minute: PerMinute | None = None
    tokens_per_minute: PerMinute | None = None
    context_tokens: Tokens = 0
    max_output_tokens: Annotated[int, Field(ge=1, le=_MAX_TOKENS)] = _DEFAULT_OUTPUT_TOKENS

    @model_validator(mode="after")
    def _has_one_hedge(self) -> Self:
        if self.hedge_learned and self.hedge_after_s is not None:
            raise ValueError("give either hedge_after_s or hedge_learned")
        return self


class _SkillSection(Section):
    name: Ident
    accuracy: SharePpm
    n: Annotated[int, Field(ge=1, le=2**31 - 1)]
    measured_on: date


class _CardSection(Section):
    output_tokens_per_second: Annotated[int, Field(ge=0, le=_MILLION)] = 0
    skills: ListOf[_SkillSection] = ()


Feature = Literal[
    "developer",
    "embeddings",
    "image_urls",
    "json_schema",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "prediction",
    "prompt_cache_key",
    "safety_identifier",
    "service_tier",
    "tools",
    "verbosity",
]
"""What a worker can be asked for besides text. `developer` is the role, `image_urls` that it fetches them."""


class _WorkerSection(Section):
    id: Ident
    provider: ProviderKind
    model: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    base_url: Annotated[str, AfterValidator(_check_url)] | None = None
    api_version: Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z.-]{1,32}$")] | None = None
    project: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.:-]{0,99}$")] | None = None
    key: _KeySection | None = None
    aws: _AwsSection | None = None
    region: Annotated[str, StringConstraints(max_length=64, pattern=r"^[A-Za-z0-9._-]*$")] = ""
    demo: bool = False
    price: _PriceSection | None = None
    limits: _LimitsSection = _LimitsSection()
    modalities: Annotated[tuple[Literal["text", "image", "audio"], ...], Field(min_length=1)] = ("text",)
    features: ListOf[Feature] = ()
    reasoning_efforts: ListOf[Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]] = ()
    card: _CardSection = _CardSection()

    @model_validator(mode="after")
    def _fits_its_provider(self) -> Self:
        self.provider_fields.check()
        if "embeddings" in self.features and self.provider in _MAKES_NO_EMBEDDINGS:
            raise ValueError(f"provider {self.provider} makes no embeddings")
        prefix = self.model.partition("/")[0]
        if "embeddings" in self.features and self.provider == "litellm" and prefix not in EMBEDDING_PREFIXES:
            raise ValueError(
                f"provider litellm makes no embeddings with {prefix}: use provider openai-compatible, or one"
                f" of the prefixes {', '.join(sorted(EMBEDDING_PREFIXES))}"
            )
        return self

    @property
    def provider_fields(self) -> ProviderFields:
        return ProviderFields(
            kind=self.provider,
            model=self.model,
            base_url=self.base_url or "",
            region=self.region,
            api_version=self.api_version or "",
            project=self.project or "",
            has_key=self.key is not None,
            has_aws=self.aws is not None,
        )


class _PoolSection(Section):
    workers: Annotated[tuple[_WorkerSection, ...], Field(min_length=1, max_length=_MAX_WORKERS)]


def _entry(section: _WorkerSection, directory: Path) -> WorkerEntry:
    price = section.price
    worker = Worker(
        worker_id=section.id,
        provider=section.provider,
        provider_model=section.model,
        card=_card(section),
        price=None if price is None else price.price,
        region=section.region,
        is_demo=section.demo,
        max_concurrency=section.limits.max_concurrency,
        hedge_after_s=section.limits.hedge_after_s,
        hedge_is_learned=section.limits.hedge_learned,
    )
    limits = section.limits
    return WorkerEntry(
        worker,
        section.provider_fields.resolved_url,
        _keys(section, directory),
        limits.timeout_s,
        CallLimits(
            connect_timeout_s=limits.connect_timeout_s,
            first_token_timeout_s=limits.first_token_timeout_s,
            idle_timeout_s=limits.idle_timeout_s,
            requests_per_minute=limits.requests_per_minute,
            tokens_per_minute=limits.tokens_per_minute,
        ),
        section.api_version or "",
    )


def _card(section: _WorkerSection) -> Card:
    return Card(
        skills=tuple(
            Skill(skill.name, skill.accuracy, skill.n, skill.measured_on.isoformat())
            for skill in section.card.skills
        ),
        context_tokens=section.limits.context_tokens,
        max_output_tokens=section.limits.max_output_tokens,
        output_tokens_per_second=section.card.output_tokens_per_second,
        modalities=frozenset(section.modalities),
        features=frozenset(section.features),
        reasoning_efforts=section.reasoning_efforts,
    )


def _keys(section: _WorkerSection, directory: Path) -> dict[str, KeyReference]:
    named = {"key": section.key}
    if section.aws is not None:
        named["aws_access_key_id"] = section.aws.access_key_id
        named["aws_secret_access_key"] = section.aws.secret_access_key
        named["aws_session_token"] = section.aws.session_token
    return {
        name: KeyReference(key.env, None if key.file is None else directory / key.file)
        for name, key in named.items()
        if key is not None
    }


def _pool_digest(sections: Sequence[_WorkerSection]) -> str:
    """Everything that a plan or a dispatch depends on. Keys rotate and prices change without a new plan."""
    return _digest([section.model_dump(mode="json", exclude={"key", "aws", "price"}) for section in sections])


def _price_digest(sections: Sequence[_WorkerSection]) -> str:
    return _digest([section.model_dump(mode="json", include={"id", "price"}) for section in sections])


def _digest(workers: list[dict[str, object]]) -> str:
    ordered = sorted(workers, key=lambda worker: str(worker["id"]))
    return sha256(json.dumps(ordered, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _refuse_duplicates(document: Document[_PoolSection]) -> None:
    worker_ids: set[str] = set()
    for index, worker in enumerate(document.content.workers):
        place = ("workers", index)
        if worker.id in worker_ids:
            raise document.error((*place, "id"), f"there are two workers {worker.id!r}")
        worker_ids.add(worker.id)
        names: set[str] = set()
        for number, skill in enumerate(worker.card.skills):
            if skill.name in names:
                raise document.error(
                    (*place, "card", "skills", number, "name"), f"there are two skills {skill.name!r}"
                )
            names.add(skill.name)
