"""Answers as OpenAI's clients read them: one `chat.completion`, or chunks as server-sent events.

Everything that stays the same from chunk to chunk is rendered once, so a delta costs one string escape.
"""

import json
from collections.abc import Mapping, Sequence

from podium_core.domain.usage import Usage
from podium_core.orchestration.events import RunFinished, StepResult
from podium_core.orchestration.ports import Delta

DONE = "data: [DONE]\n\n"
KEEP_ALIVE = ": podium is working\n\n"

_COMPLETION_OBJECT = "chat.completion"
_CHUNK_OBJECT = "chat.completion.chunk"
# Line breaks to some clients' line splitters, though not to server-sent events; legal in JSON only escaped.
_LOOSE_BREAKS = (("\u2028", "\\u2028"), ("\u2029", "\\u2029"), ("\u0085", "\\u0085"))
_encode_string = json.encoder.encode_basestring


def completion_id(run_id: str) -> str:
    """Return the OpenAI-style id of a run's answer."""
    return f"chatcmpl-{run_id.rpartition('_')[2]}"


def json_text(value: object) -> str:
    """Return compact JSON that no line splitter can cut."""
    return _unbroken(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def usage_object(usage: Usage, other: Usage) -> dict[str, object]:
    """Return the answering attempt's `usage`, every other attempt's tokens beside it as details.

    Clients compact their context by the total, so what orchestration used must not inflate it.
    """
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {
            "cached_tokens": usage.cached_input_tokens,
            "orchestration_input_tokens": other.input_tokens,
            "orchestration_input_cached_tokens": other.cached_input_tokens,
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning_output_tokens,
            "orchestration_output_tokens": other.output_tokens,
        },
    }


def completion_object(
    finished: RunFinished, *, model: str, created: int, podium: Mapping[str, object]
) -> dict[str, object]:
    """Return the body of answers that are not streamed."""
    return {
        "id": completion_id(finished.run_id),
        "object": _COMPLETION_OBJECT,
        "created": created,
        "model": model,
        "choices": [_choice(answer) for answer in finished.answers],
        "usage": usage_object(finished.usage, finished.other_usage),
        "podium": podium,
    }


def _choice(answer: StepResult) -> dict[str, object]:
    message: dict[str, object] = {
        "role": "assistant",
        "content": answer.text if answer.text or not (answer.tool_calls or answer.refusal) else None,
        "refusal": answer.refusal or None,
    }
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.tool_calls:
        message["tool_calls"] = list(answer.tool_calls)
    return {
        "index": answer.choice,
        "message": message,
        "logprobs": logprobs_object(answer.logprobs),
        "finish_reason": answer.finish_reason,
    }


def dry_run_object(
    run_id: str, *, model: str, created: int, podium: Mapping[str, object]
) -> dict[str, object]:
    """Return the body of a dry run: an answer that says nothing, with the plan in `podium`."""
    message = {"role": "assistant", "content": "", "refusal": None}
    return {
        "id": completion_id(run_id),
        "object": _COMPLETION_OBJECT,
        "created": created,
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        "podium": podium,
    }


def logprobs_object(entries: Sequence[Mapping[str, object]]) -> dict[str, object] | None:
    """Return `choices[].logprobs`; None when there are none."""
    return {"content": list(entries), "refusal": None} if entries else None


class ChunkEncoder:
    """Renders one streamed answer, piece by piece, as text of server-sent events. `choice` is its index."""

    def __init__(
        self, run_id: str, *, model: str, created: int, include_usage: bool, choice: int = 0
    ) -> None:
        frame = json_text(
            {
                "id": completion_id(run_id),
                "object": _CHUNK_OBJECT,
                "created": created,
                "model": model,
            }
        )
        self._envelope = f"data: {frame[:-1]},"
        self._head = f'{self._envelope}"choices":[{{"index":{choice},"delta":'
        self._usage = ',"usage":null' if include_usage else ""
        self._end = f',"finish_reason":null}}]{self._usage}}}\n\n'
        self._tail = f',"logprobs":null{self._end}'
        self._text_head = f'{self._head}{{"content":'
        self._text_tail = f"}}{self._tail}"
        self._include_usage = include_usage

    def role(self) -> str:
        """Return the first chunk, which names the speaker."""
        return f'{self._head}{{"role":"assistant","content":"","refusal":null}}{self._tail}'

    def delta(self, delta: Delta) -> str:
        """Return one chunk for each kind of output in the delta."""
        if delta.text and not (delta.reasoning or delta.tool_calls or delta.refusal or delta.logprobs):
            return f"{self._text_head}{_unbroken(_encode_string(delta.text))}{self._text_tail}"
        chunks: list[str] = []
        if delta.reasoning:
            chunks.append(self._chunk({"reasoning_content": delta.reasoning}))
        if delta.text or delta.logprobs:
            chunks.append(self._chunk({"content": delta.text}, logprobs_object(delta.logprobs)))
        if delta.refusal:
            chunks.append(self._chunk({"refusal": delta.refusal}))
        if delta.tool_calls:
            calls = [{"index": i, **call} for i, call in enumerate(delta.tool_calls)]
            chunks.append(self._chunk({"tool_calls": calls}))
        return "".join(chunks)

    def _chunk(self, delta: Mapping[str, object], logprobs: Mapping[str, object] | None = None) -> str:
        tail = f',"logprobs":{json_text(logprobs)}{self._end}' if logprobs else self._tail
        return f"{self._head}{json_text(delta)}{tail}"

    def finish(self, finish_reason: str, podium: Mapping[str, object] | None) -> str:
        """Return the finishing chunk, with the `podium` object on the last answer's."""
        reason = json_text(finish_reason)
        told = "" if podium is None else f',"podium":{json_text(podium)}'
        return f'{self._head}{{}},"logprobs":null,"finish_reason":{reason}}}]{self._usage}{told}}}\n\n'

    def usage(self, finished: RunFinished) -> str:
        """Return the usage chunk if it was asked for."""
        if not self._include_usage:
            return ""
        usage = json_text(usage_object(finished.usage, finished.other_usage))
        return f'{self._envelope}"choices":[],"usage":{usage}}}\n\n'

    def event(self, podium: Mapping[str, object]) -> str:
        """Return a step event. It is shaped as a chunk without choices, so typed clients survive it."""
        return f'event: podium\n{self._envelope}"choices":[]{self._usage},"podium":{json_text(podium)}}}\n\n'


def error_event(body: Mapping[str, object]) -> str:
    """Return the event for a failure after the first byte."""
    return f"data: {json_text(body)}\n\n"


def _unbroken(text: str) -> str:
    if not text.isascii():
        for loose, escape in _LOOSE_BREAKS:
            if loose in text:
                text = text.replace(loose, escape)
    return text
