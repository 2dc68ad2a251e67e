"""How `pool.yaml`, and a cluster's Worker, write a worker: fields, bounds, and what goes with what."""

import re
from datetime import date
from ipaddress import ip_address
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StringConstraints,
    model_validator,
)

from podium_core.config.money import UsdMicros, to_millionths
from podium_core.config.provider import EMBEDDING_PREFIXES, ProviderFields, ProviderKind
from podium_core.config.yaml_file import Ident, ListOf, Section, written
from podium_core.domain.usage import Price

MAX_WORKERS = 400
"""A record holds one verdict per worker, and a record is bounded."""

NO_EMBEDDINGS = frozenset({"anthropic", "vertex"})
"""Providers that make none."""

_MILLION = 1_000_000
_MAX_TOKENS = 100_000_000
_MAX_CONCURRENCY = 10_000
_MAX_TIMEOUT_S = 3_600
_DEFAULT_TIMEOUT_S = 120.0
_DEFAULT_CONCURRENCY = 64
_DEFAULT_OUTPUT_TOKENS = 4_096
_IPV6 = 6
# In ASCII: what one reader of addresses takes for a name, another may refuse when it is time to call.
_HOST = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*")
_PRINTABLE = re.compile(r"[\x21-\x7e]+")


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


Url = Annotated[
    str,
    AfterValidator(_check_url),
    written(
        r"^https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?)(:[0-9]{1,5})?(/[!-\"$->@-~]*)?$",
        max_length=2048,
    ),
]
Tokens = Annotated[int, Field(ge=0, le=_MAX_TOKENS)]
Seconds = Annotated[float, Field(gt=0, le=_MAX_TIMEOUT_S, allow_inf_nan=False)]
PerMinute = Annotated[int, Field(ge=1, le=1_000_000_000)]
SharePpm = Annotated[
    int,
    BeforeValidator(to_millionths),
    AfterValidator(_check_share),
    written(r"^(0(\.[0-9]{1,6})?|1(\.0{1,6})?)$", max_length=8),
]


class KeySection(Section):
    """Where a provider key is; never the key itself."""

    env: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")] | None = None
    file: Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f]+$")] | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.env is None) == (self.file is None):
            raise ValueError("give either env (a variable's name) or file (a path), and never the key itself")
        return self


class AwsSection(Section):
    """Access keys of AWS."""

    access_key_id: KeySection
    secret_access_key: KeySection
    session_token: KeySection | None = None


class PriceSection(Section):
    """Dollars per million tokens, as decimal text. Without a price a worker has no part in capped runs."""

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
        """The price in millionths."""
        return Price(
            self.input_usd_per_mtok,
            self.output_usd_per_mtok,
            self.cached_input_usd_per_mtok,
            self.cache_write_input_usd_per_mtok,
        )


class LimitsSection(Section):
    """Bounds of one worker's calls, and the sizes its model takes."""

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


class SkillSection(Section):
    """A measured share of right answers: of how many questions, and on which day."""

    name: Ident
    accuracy: SharePpm
    n: Annotated[int, Field(ge=1, le=2**31 - 1)]
    measured_on: date


class CardSection(Section):
    """What is known of a worker."""

    output_tokens_per_second: Annotated[int, Field(ge=0, le=_MILLION)] = 0
    skills: ListOf[SkillSection] = ()


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


class WorkerSection(Section):
    """One model at one provider: where it is reached, what it costs, what it can do."""

    id: Ident
    provider: ProviderKind
    model: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    base_url: Url | None = None
    api_version: Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z.-]{1,32}$")] | None = None
    project: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.:-]{0,99}$")] | None = None
    key: KeySection | None = None
    aws: AwsSection | None = None
    region: Annotated[str, StringConstraints(max_length=64, pattern=r"^[A-Za-z0-9._-]*$")] = ""
    demo: bool = False
    price: PriceSection | None = None
    limits: LimitsSection = LimitsSection()
    modalities: Annotated[tuple[Literal["text", "image", "audio"], ...], Field(min_length=1)] = ("text",)
    features: ListOf[Feature] = ()
    reasoning_efforts: ListOf[Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]] = ()
    card: CardSection = CardSection()

    @model_validator(mode="after")
    def _fits_its_provider(self) -> Self:
        self.provider_fields.check()
        if "embeddings" in self.features and self.provider in NO_EMBEDDINGS:
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
        """The fields that depend on the provider."""
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


class PoolSection(Section):
    """All of pool.yaml."""

    workers: Annotated[tuple[WorkerSection, ...], Field(min_length=1, max_length=MAX_WORKERS)]
