"""A provider's log-probabilities in OpenAI's fields and types alone, fit to be encoded and passed on."""

from typing import cast

_MAX_ALTERNATIVES = 20
_Json = dict[str, object]


def token_logprobs(logprobs: object) -> tuple[_Json, ...]:
    """Return one entry for each token of `choices[].logprobs`; none for what has another shape.

    Source: OpenAI's chat API, `logprobs.content[]` with `token`, `logprob`, `bytes`, `top_logprobs`.
    """
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list):
        return ()
    return tuple(_entry(item) for item in cast("list[object]", content) if isinstance(item, dict))


def _entry(item: _Json) -> _Json:
    top = item.get("top_logprobs")
    others = cast("list[object]", top)[:_MAX_ALTERNATIVES] if isinstance(top, list) else []
    return {**_token(item), "top_logprobs": [_token(other) for other in others if isinstance(other, dict)]}


def _token(item: _Json) -> _Json:
    token, value, data = item.get("token"), item.get("logprob"), item.get("bytes")
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    is_bytes = isinstance(data, list) and all(type(byte) is int for byte in cast("list[object]", data))
    return {
        # A token may be half a character; its bytes say which half.
        "token": token.encode(errors="replace").decode() if isinstance(token, str) else "",
        "logprob": value if is_number else 0.0,
        "bytes": data if is_bytes else None,
    }
