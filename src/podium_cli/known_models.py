"""Well-known models of hosted providers with their list prices, for `podium up --use-keys`.

Prices are those of each provider's own price page as of `PRICED_ON`, for requests of ordinary length and
speed. They go into `pool.yaml`, where the operator sees and changes them: the pool's price digest is in every
record. A model that is not here gets no price, and a worker without one is left out wherever cost is capped.
"""

from dataclasses import dataclass
from typing import Literal

PRICED_ON = "2026-11-30"

Feature = Literal["tools", "json_schema", "max_completion_tokens"]


@dataclass(frozen=True, slots=True)
class KnownModel:
    """One model as its provider sells it. Prices are US dollars per million tokens, as decimal text."""

    name: str
    input_usd_per_mtok: str
    cached_input_usd_per_mtok: str
    output_usd_per_mtok: str
    context_tokens: int
    price_page: str
    takes_images: bool = True
    features: tuple[Feature, ...] = ("tools", "json_schema")
    cache_write_input_usd_per_mtok: str = ""
    """For caches that live five minutes, where writing has a price of its own; empty: it has none."""


_OPENAI = "https://developers.openai.com/api/docs/pricing"
_ANTHROPIC = "https://platform.claude.com/docs/en/about-claude/pricing"
_AWS = "https://aws.amazon.com/bedrock/pricing/"
_GOOGLE = "https://ai.google.dev/gemini-api/docs/pricing"
_NEW_LIMIT: tuple[Feature, ...] = ("tools", "json_schema", "max_completion_tokens")


def _claude(
    name: str, input_usd: str, cached_usd: str, written_usd: str, output_usd: str, price_page: str
) -> KnownModel:
    return KnownModel(
        name,
        input_usd,
        cached_usd,
        output_usd,
        200_000,
        price_page,
        cache_write_input_usd_per_mtok=written_usd,
    )


KNOWN_MODELS = {
    model.name: model
    for model in (
        KnownModel("gpt-5", "1.25", "0.125", "10", 272_000, _OPENAI, features=_NEW_LIMIT),
        KnownModel("gpt-5-mini", "0.25", "0.025", "2", 272_000, _OPENAI, features=_NEW_LIMIT),
        _claude("claude-haiku-4-5", "1", "0.10", "1.25", "5", _ANTHROPIC),
        _claude("claude-sonnet-4-5", "3", "0.30", "3.75", "15", _ANTHROPIC),
        _claude("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "3.30", "0.33", "4.125", "16.50", _AWS),
        _claude("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "3.30", "0.33", "4.125", "16.50", _AWS),
        KnownModel("gemini-2.5-flash", "0.30", "0.03", "2.50", 1_048_576, _GOOGLE),
        KnownModel("gemini-2.5-pro", "1.25", "0.125", "10", 200_000, _GOOGLE),
        KnownModel(
            "deepseek-chat",
            "0.28",
            "0.028",
            "0.42",
            131_072,
            "https://api-docs.deepseek.com/quick_start/pricing",
            takes_images=False,
        ),
        KnownModel(
            "mistral-small-latest",
            "0.15",
            "0.015",
            "0.60",
            262_144,
            "https://docs.mistral.ai/models/model-cards",
        ),
    )
}
