"""Workers for hosted providers whose keys this machine's environment holds."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from podium_cli.known_models import KNOWN_MODELS, PRICED_ON, KnownModel


@dataclass(frozen=True, slots=True)
class Provider:
    """A hosted provider. `variables` are names of its key, the first that is set wins; `model` is a start."""

    name: str
    variables: tuple[str, ...]
    model: str
    kind: str = "openai-compatible"
    base_url: str = ""


PROVIDERS = (
    Provider("openai", ("OPENAI_API_KEY",), "gpt-5-mini", "openai"),
    Provider("anthropic", ("ANTHROPIC_API_KEY",), "claude-sonnet-4-5", "anthropic"),
    Provider("gemini", ("GEMINI_API_KEY", "GOOGLE_API_KEY"), "gemini-2.5-flash", "gemini"),
    Provider("mistral", ("MISTRAL_API_KEY",), "mistral-small-latest", base_url="https://api.mistral.ai/v1"),
    Provider("groq", ("GROQ_API_KEY",), "llama-3.3-70b-versatile", base_url="https://api.groq.com/openai/v1"),
    Provider("deepseek", ("DEEPSEEK_API_KEY",), "deepseek-chat", base_url="https://api.deepseek.com/v1"),
    Provider("xai", ("XAI_API_KEY",), "grok-3-mini", base_url="https://api.x.ai/v1"),
    Provider(
        "together",
        ("TOGETHER_API_KEY",),
        "meta-llama/Llama-3.3-70B-Instruct-Turbo",
        base_url="https://api.together.xyz/v1",
    ),
    Provider(
        "openrouter", ("OPENROUTER_API_KEY",), "openrouter/auto", base_url="https://openrouter.ai/api/v1"
    ),
)
_AZURE_KEY = "AZURE_OPENAI_API_KEY"
_AZURE_REST = ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_DEPLOYMENT")
_AWS_KEYS = {
    "access_key_id": "AWS_ACCESS_KEY_ID",
    "secret_access_key": "AWS_SECRET_ACCESS_KEY",
    "session_token": "AWS_SESSION_TOKEN",
}
_AWS_BEARER = "AWS_BEARER_TOKEN_BEDROCK"
_AWS_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_BEDROCK_AREAS = ("us", "eu")  # where the model has an inference profile that stays in the area

VARIABLES = frozenset(
    (
        *(variable for provider in PROVIDERS for variable in provider.variables),
        *(_AZURE_KEY, *_AZURE_REST, "OPENAI_API_VERSION"),
        *(_AWS_BEARER, *_AWS_KEYS.values(), *_AWS_REGIONS),
    )
)
"""Everything that is looked at."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A worker that could be added to the pool. `secrets` maps names of key files to variables."""

    worker_id: str
    found: str
    kind: str
    model: str
    lines: tuple[str, ...] = ()
    secrets: Mapping[str, str] = field(default_factory=dict)

    @property
    def entry(self) -> str:
        """The entry it makes under `workers:` of `pool.yaml`."""
        lines = (f"provider: {self.kind}", f"model: {json.dumps(self.model)}", *self.lines)
        known = KNOWN_MODELS.get(self.model)
        lines += _UNPRICED if known is None else _priced(known)
        return f"  - id: {self.worker_id}\n" + "".join(f"    {line}\n" for line in lines)


_UNPRICED = (
    "# Without a price it is left out wherever the cost is capped. Add what you pay:",
    '# price: {input_usd_per_mtok: "0.00", output_usd_per_mtok: "0.00"}',
)


def _priced(known: KnownModel) -> tuple[str, ...]:
    prices = {
        "input_usd_per_mtok": known.input_usd_per_mtok,
        "cached_input_usd_per_mtok": known.cached_input_usd_per_mtok,
        "output_usd_per_mtok": known.output_usd_per_mtok,
    }
    if known.cache_write_input_usd_per_mtok:
        prices["cache_write_input_usd_per_mtok"] = known.cache_write_input_usd_per_mtok
    price = ", ".join(f'{name}: "{usd}"' for name, usd in prices.items())
    modalities = ("modalities: [text, image]",) if known.takes_images else ()
    return (
        f"# List price of {PRICED_ON}, {known.price_page}; change it to what you pay:",
        f"price: {{{price}}}",
        f"limits: {{context_tokens: {known.context_tokens}, max_output_tokens: 8192}}",
        *modalities,
        f"features: [{', '.join(known.features)}]",
    )


def offers_from_keys(environment: Mapping[str, str]) -> list[Offer]:
    """Return an offer for every known provider whose key `environment` holds."""
    offers = [
        _offer(provider, variable)
        for provider in PROVIDERS
        for variable in [next((name for name in provider.variables if environment.get(name)), "")]
        if variable
    ]
    return [*offers, *_azure(environment), *_bedrock(environment)]


def what_is_missing(environment: Mapping[str, str]) -> list[str]:
    """Say what would have to be set besides a key that is there."""
    told = []
    lacking = [name for name in _AZURE_REST if not environment.get(name)]
    if environment.get(_AZURE_KEY) and lacking:
        told.append(f"{_AZURE_KEY} is set; for a worker at Azure also set {' and '.join(lacking)}.")
    if _aws_secrets(environment) and not _bedrock(environment):
        told.append(
            f"AWS credentials are set; for a worker at Bedrock also set {_AWS_REGIONS[0]} to a region of"
            f" {' or '.join(_BEDROCK_AREAS)}, or write another region's worker yourself (docs/config.md)."
        )
    return told


def _offer(provider: Provider, variable: str) -> Offer:
    key_file = f"{provider.name}.key"
    address = (f"base_url: {provider.base_url}",) if provider.base_url else ()
    lines = (*address, f"key: {{file: keys/{key_file}}}")
    return Offer(
        provider.name, f"{variable} is set", provider.kind, provider.model, lines, {key_file: variable}
    )


def _azure(environment: Mapping[str, str]) -> list[Offer]:
    endpoint, deployment = (environment.get(name, "") for name in _AZURE_REST)
    if not (environment.get(_AZURE_KEY) and endpoint and deployment):
        return []
    lines = [f"base_url: {json.dumps(endpoint.rstrip('/'))}", "key: {file: keys/azure.key}"]
    if version := environment.get("OPENAI_API_VERSION"):
        lines.append(f"api_version: {json.dumps(version)}")
    secrets = {"azure.key": _AZURE_KEY}
    return [Offer("azure", f"{_AZURE_KEY} is set", "azure", deployment, tuple(lines), secrets)]


def _bedrock(environment: Mapping[str, str]) -> list[Offer]:
    region = next((environment[name] for name in _AWS_REGIONS if environment.get(name)), "")
    area = region.partition("-")[0]
    secrets = _aws_secrets(environment)
    if not secrets or area not in _BEDROCK_AREAS:
        return []
    if "bedrock.key" in secrets:
        keys = "key: {file: keys/bedrock.key}"
    else:
        files = [
            f"{name}: {{file: keys/aws-{name}.key}}" for name in _AWS_KEYS if f"aws-{name}.key" in secrets
        ]
        keys = f"aws: {{{', '.join(files)}}}"
    model = f"{area}.anthropic.claude-sonnet-4-5-20250929-v1:0"
    found = f"{next(iter(secrets.values()))} is set"
    return [Offer("bedrock", found, "bedrock", model, (f"region: {json.dumps(region)}", keys), secrets)]


def _aws_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    if environment.get(_AWS_BEARER):
        return {"bedrock.key": _AWS_BEARER}
    found = {f"aws-{name}.key": variable for name, variable in _AWS_KEYS.items() if environment.get(variable)}
    return found if len(found) >= len(_AWS_KEYS) - 1 and "aws-secret_access_key.key" in found else {}
