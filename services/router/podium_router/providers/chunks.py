"""LiteLLM's answer objects as the plain OpenAI fields that `Answer` reads."""

from dataclasses import dataclass
from typing import Any, Final

_INVENTED_ID: Final = "chatcmpl-"
_PLAIN: Final = ("content", "reasoning_content", "refusal")
_OPAQUE: Final = ("thinking_blocks", "provider_specific_fields")


@dataclass(frozen=True, slots=True)
class Facts:
    """What the provider itself has said: the library fills gaps with inventions that look the same.

    `request_id` is the provider's name of the exchange, `has_usage` whether it counted tokens at all,
    `counts_reasoning` whether it counts those of its reasoning, `names_model` whether the model is its word
    for what has answered and not an echo of what was asked for.
    """

    request_id: str
    has_usage: bool
    counts_reasoning: bool
    names_model: bool


def chunk_fields(chunk: Any, facts: Facts) -> dict[str, Any]:
    """Return a streamed chunk as a mapping, without what the library made up."""
    return _head(chunk, "delta", facts)


def message_fields(reply: Any, facts: Facts) -> dict[str, Any]:
    """Return a whole answer as a mapping, without what the library made up."""
    return _head(reply, "message", facts)


def embedding_fields(reply: Any, facts: Facts) -> dict[str, Any]:
    """Return embeddings as a mapping, without what the library made up."""
    vectors = [_plain(item)["embedding"] for item in reply.data]
    data = [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    fields: dict[str, Any] = {"id": facts.request_id, "data": data}
    if facts.has_usage:
        fields["usage"] = {"prompt_tokens": reply.usage.prompt_tokens}
    return fields


def _head(reply: Any, part: str, facts: Facts) -> dict[str, Any]:
    choices = [
        {
            "index": 0,
            "finish_reason": choice.finish_reason,
            part: _output(getattr(choice, part)),
            "logprobs": _plain(getattr(choice, "logprobs", None)),
        }
        for choice in reply.choices[:1]
    ]
    is_own_id = not str(reply.id).startswith(_INVENTED_ID)
    response_id = facts.request_id or (reply.id if is_own_id else "")
    fields = {"id": response_id, "model": reply.model if facts.names_model else "", "choices": choices}
    usage = getattr(reply, "usage", None)
    if usage is not None and facts.has_usage:
        fields["usage"] = _usage(usage, facts)
    return fields


def _output(output: Any) -> dict[str, Any]:
    fields = {name: getattr(output, name, None) for name in _PLAIN}
    calls = getattr(output, "tool_calls", None)
    if calls:
        fields["tool_calls"] = [_plain(call) for call in calls]
    for name in _OPAQUE:
        value = getattr(output, name, None)
        if value:
            fields[name] = value
    return fields


def _usage(usage: Any, facts: Facts) -> dict[str, Any]:
    inputs = getattr(usage, "prompt_tokens_details", None)
    outputs = getattr(usage, "completion_tokens_details", None)
    reasoning = getattr(outputs, "reasoning_tokens", None) if facts.counts_reasoning else None
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "prompt_tokens_details": {
            "cached_tokens": getattr(inputs, "cached_tokens", None),
            "cache_write_tokens": getattr(inputs, "cache_creation_tokens", None),
        },
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def _plain(value: Any) -> Any:
    return value.model_dump() if hasattr(value, "model_dump") else value
