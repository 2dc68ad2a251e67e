"""Writes chat completions, whole or as server-sent events, in the OpenAI shape."""

import json
from dataclasses import dataclass

from podium_demo.chat_request import ChatRequest
from podium_demo.tokens import MESSAGE_OVERHEAD_TOKENS, count_tokens, deltas_of, first_tokens

FINGERPRINT = "demo"
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Reply:
    """A finished answer and its bookkeeping. `created_s` is in seconds since the epoch."""

    completion_id: str
    created_s: int
    model: str
    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int

    @property
    def usage(self) -> dict[str, object]:
        """The OpenAI usage object."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        }


def reply_to(request: ChatRequest, answer: str, completion_id: str, created_s: int) -> Reply:
    """Return `answer` cut to the request's stop texts and token limit, with counted usage."""
    text, finish_reason = answer, "stop"
    for stop in request.stops:
        text = text.partition(stop)[0]
    if request.max_tokens is not None and count_tokens(text) > request.max_tokens:
        text, finish_reason = first_tokens(text, request.max_tokens), "length"
    return Reply(
        completion_id=completion_id,
        created_s=created_s,
        model=request.specialist.model,
        text=text,
        finish_reason=finish_reason,
        prompt_tokens=sum(MESSAGE_OVERHEAD_TOKENS + count_tokens(text) for _, text in request.messages),
        completion_tokens=count_tokens(text),
    )


def whole_body(reply: Reply) -> bytes:
    """Return the body of an answer that is not streamed."""
    message = {"role": "assistant", "content": reply.text, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish_reason}
    return _json(_envelope(reply, "chat.completion") | {"choices": [choice], "usage": reply.usage})


def stream_events(reply: Reply, *, include_usage: bool) -> tuple[list[bytes], int]:
    """Return the events of a streamed answer, and how many of them come before its first text delta."""
    events = [_chunk(reply, {"role": "assistant", "content": ""}, None, include_usage=include_usage)]
    lead = len(events)
    events += [
        _chunk(reply, {"content": piece}, None, include_usage=include_usage)
        for piece in deltas_of(reply.text)
    ]
    events.append(_chunk(reply, {}, reply.finish_reason, include_usage=include_usage))
    if include_usage:
        last = _envelope(reply, "chat.completion.chunk") | {"choices": [], "usage": reply.usage}
        events.append(_event(last))
    return [*events, DONE], lead


def model_object(model: str) -> dict[str, object]:
    """Return a model as GET /v1/models lists it."""
    return {"id": model, "object": "model", "created": 0, "owned_by": "podium-demo"}


def _chunk(
    reply: Reply, delta: dict[str, object], finish_reason: str | None, *, include_usage: bool
) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    usage = {"usage": None} if include_usage else {}
    return _event(_envelope(reply, "chat.completion.chunk") | {"choices": [choice]} | usage)


def _envelope(reply: Reply, kind: str) -> dict[str, object]:
    return {
        "id": reply.completion_id,
        "object": kind,
        "created": reply.created_s,
        "model": reply.model,
        "system_fingerprint": FINGERPRINT,
    }


def _event(value: dict[str, object]) -> bytes:
    return b"data: " + _json(value) + b"\n\n"


def _json(value: dict[str, object]) -> bytes:
    # A lone surrogate, legal in JSON escapes, has no UTF-8 form: it becomes a question mark.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
