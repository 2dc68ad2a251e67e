"""Prices and speeds of recorded models: assumed constants, as the recordings hold neither.

List prices in US dollars per million tokens and output tokens per second, of the order that providers
published in 2025; they decide cost columns and nothing that is right or wrong. A model that is not listed
gets the default. Thinking tokens are not in the recordings, so costs of reasoning models are understated.
"""

from dataclasses import dataclass

from podium_core.domain.usage import Price


@dataclass(frozen=True, slots=True)
class Assumed:
    """What is assumed of one model."""

    price: Price
    output_tokens_per_second: int


def assumed(model: str) -> Assumed:
    """Return the price and speed assumed of a model, by its name as recorded."""
    return _TABLE.get(model.rsplit("/", 1)[-1], _DEFAULT)


def _entry(input_usd: float, output_usd: float, tokens_per_second: int) -> Assumed:
    return Assumed(Price(round(input_usd * 1e6), round(output_usd * 1e6)), tokens_per_second)


_DEFAULT = _entry(0.50, 1.50, 60)
_TABLE = {
    "claude-sonnet-4": _entry(3.00, 15.00, 60),
    "claude-3.5-sonnet": _entry(3.00, 15.00, 60),
    "deepseek-r1": _entry(0.55, 2.19, 30),
    "gemma-3-27b-it": _entry(0.10, 0.20, 40),
    "grok-3-mini": _entry(0.30, 0.50, 100),
    "llama-3.3-70b-instruct": _entry(0.12, 0.30, 70),
    "llama-4-maverick": _entry(0.20, 0.60, 110),
    "llama-4-scout": _entry(0.10, 0.30, 110),
    "mistral-small-3.1-24b-instruct": _entry(0.10, 0.30, 90),
    "o3-mini": _entry(1.10, 4.40, 150),
    "qwq-32b": _entry(0.15, 0.20, 40),
    "gemini-1.5-flash-002": _entry(0.075, 0.30, 160),
    "gemini-1.5-pro-002": _entry(1.25, 5.00, 60),
    "jamba-1.5-large": _entry(2.00, 8.00, 60),
    "c4ai-command-r-v01": _entry(0.15, 0.60, 80),
    "Meta-Llama-3_1-70B-Instruct": _entry(0.30, 0.40, 70),
    "Meta-Llama-3_1-8B-Instruct": _entry(0.05, 0.08, 150),
}
