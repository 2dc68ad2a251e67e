"""Token counts of one attempt: the provider's own when they make sense, else an estimate that says so."""

from typing import cast

from podium_core.domain.usage import Usage, UsageSource

_MAX_TOKENS = 1_000_000_000
"""No call uses more; a larger number is a defect and must not become money."""

_UNSEEN_TOKENS = 65_536
"""What providers may add to a call of their own: system prompts, tool instructions, hidden reasoning."""

_BYTES_PER_TOKEN = 4
_NOTHING: dict[str, object] = {}


def provider_usage(reported: object) -> Usage | None:
    """Return the usage object of a provider's answer, or None if it is missing or cannot be true.

    Subsets larger than their whole are cut to it. A provider that counts reasoning beside the output
    (its total says so) is put right: output includes reasoning.
    """
    if not isinstance(reported, dict):
        return None
    usage = cast("dict[str, object]", reported)
    inputs = _count(usage.get("prompt_tokens"))
    outputs = _count(usage.get("completion_tokens", 0))
    if not inputs or outputs is None:  # no call has an empty input: zero means "not counted"
        return None
    input_details = _details(usage.get("prompt_tokens_details"))
    cached = _count(input_details.get("cached_tokens")) or 0
    written = _count(input_details.get("cache_write_tokens")) or 0
    reasoning = _count(_details(usage.get("completion_tokens_details")).get("reasoning_tokens")) or 0
    if reasoning and _count(usage.get("total_tokens")) == inputs + outputs + reasoning:
        outputs += reasoning
    cached = min(cached, inputs)
    return Usage(
        input_tokens=inputs,
        output_tokens=outputs,
        cached_input_tokens=cached,
        cache_write_input_tokens=min(written, inputs - cached),
        reasoning_output_tokens=min(reasoning, outputs),
        source=UsageSource.PROVIDER,
    )


def is_possible(usage: Usage, *, input_tokens: int, output_tokens: int) -> bool:
    """Say whether a call that can have taken at most these tokens can have used what is reported."""
    return (
        usage.input_tokens <= input_tokens + _UNSEEN_TOKENS
        and usage.output_tokens <= output_tokens + _UNSEEN_TOKENS
    )


def estimated_usage(input_bytes: int, output_bytes: int, reasoning_bytes: int) -> Usage:
    """Return usage guessed from sizes, marked as estimated; `output_bytes` includes `reasoning_bytes`."""
    return Usage(
        input_tokens=-(-input_bytes // _BYTES_PER_TOKEN),
        output_tokens=-(-output_bytes // _BYTES_PER_TOKEN),
        reasoning_output_tokens=reasoning_bytes // _BYTES_PER_TOKEN,
        source=UsageSource.ESTIMATED,
    )


def _count(value: object) -> int | None:
    if type(value) is int and 0 <= value <= _MAX_TOKENS:
        return value
    return None


def _details(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else _NOTHING
