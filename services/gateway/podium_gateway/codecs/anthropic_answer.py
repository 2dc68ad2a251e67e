"""Answers as Anthropic's clients read them: one message, or the events that build it up block by block."""

import json
from collections.abc import Mapping

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.usage import Usage
from podium_core.orchestration.events import RunFinished, StepResult
from podium_core.orchestration.ports import Delta
from podium_gateway.codecs.openai_answer import json_text

_STOP_REASONS = {
    "content_filter": "refusal",
    "function_call": "tool_use",
    "length": "max_tokens",
    "stop": "end_turn",
    "tool_calls": "tool_use",
}


def message_id(run_id: str) -> str:
    """Return the Anthropic-style id of a run's answer."""
    return f"msg_{run_id.rpartition('_')[2]}"


def usage_object(usage: Usage, other: Usage) -> dict[str, object]:
    """Return the answering attempt's `usage`; as in Anthropic's API, `input_tokens` has no cached ones."""
    plain = usage.input_tokens - usage.cached_input_tokens - usage.cache_write_input_tokens
    return {
        "input_tokens": max(0, plain),
        "output_tokens": usage.output_tokens,
        "cache_creation_input_tokens": usage.cache_write_input_tokens,
        "cache_read_input_tokens": usage.cached_input_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_output_tokens},
        "orchestration_input_tokens": other.input_tokens,
        "orchestration_input_cached_tokens": other.cached_input_tokens,
        "orchestration_output_tokens": other.output_tokens,
    }


def message_object(
    finished: RunFinished,
    answer: StepResult,
    *,
    model: str,
    podium: Mapping[str, object],
    shows_thinking: bool,
) -> dict[str, object]:
    """Return the body of an answer that is not streamed; raise PodiumError for unreadable tool arguments."""
    content: list[object] = []
    if answer.reasoning and shows_thinking:
        content.append({"type": "thinking", "thinking": answer.reasoning, "signature": ""})
    if answer.words:
        content.append({"type": "text", "text": answer.words})
    content.extend(_tool_use(call) for call in answer.tool_calls)
    return {
        **_envelope(finished.run_id, model),
        "content": content,
        "stop_reason": stop_reason(answer),
        "usage": usage_object(finished.usage, finished.other_usage),
        "podium": podium,
    }


def dry_run_object(run_id: str, *, model: str, podium: Mapping[str, object]) -> dict[str, object]:
    """Return the body of a dry run: a message that says nothing, with the plan in `podium`."""
    return {**_envelope(run_id, model), "stop_reason": "end_turn", "podium": podium}


def stop_reason(answer: StepResult) -> str:
    """Return why the answer ended, in Anthropic's words."""
    return "refusal" if answer.refusal else _STOP_REASONS.get(answer.finish_reason, "end_turn")


def _envelope(run_id: str, model: str) -> dict[str, object]:
    return {
        "id": message_id(run_id),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }


def _function(call: Mapping[str, object]) -> Mapping[str, object]:
    function = call.get("function")
    return function if isinstance(function, Mapping) else {}


def _tool_use(call: Mapping[str, object]) -> dict[str, object]:
    function = _function(call)
    arguments = str(function.get("arguments") or "{}")
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise PodiumError(
            Code.PROVIDER_FAILED,
            "the worker called a tool with arguments that are no JSON object; ask again",
            reason="TOOL_ARGUMENTS_INVALID",
        )
    return {"type": "tool_use", "id": call.get("id"), "name": function.get("name"), "input": given}


def _event(name: str, **fields: object) -> str:
    return f"event: {name}\ndata: {json_text({'type': name, **fields})}\n\n"


PING = _event("ping")


def error_event(body: Mapping[str, object]) -> str:
    """Return the event for a failure after the first byte."""
    return f"event: error\ndata: {json_text(body)}\n\n"


class MessageEncoder:
    """Renders one streamed answer. Blocks come one after the other, as the protocol wants them.

    A piece of another block that comes while a tool call is unfinished waits until the call is whole.
    """

    def __init__(self, run_id: str, *, model: str, shows_thinking: bool) -> None:
        self._run_id = run_id
        self._model = model
        self._shows_thinking = shows_thinking
        self._index = -1
        self._open: tuple[str, int] | None = None
        self._arguments = ""
        self._closed: set[tuple[str, int]] = set()
        self._late: list[tuple[tuple[str, int], str, Mapping[str, object]]] = []

    def start(self) -> str:
        """Return the first event, which names the speaker; what was used is told at the end."""
        return _event("message_start", message=_envelope(self._run_id, self._model))

    def delta(self, delta: Delta) -> str:
        """Return the events for the output in the delta."""
        texts: list[str] = []
        if delta.reasoning and self._shows_thinking:
            self._place(("thinking", 0), delta.reasoning, {}, texts)
        if words := delta.text or delta.refusal:
            self._place(("text", 0), words, {}, texts)
        for position, call in enumerate(delta.tool_calls):
            index = call.get("index", position)
            place = ("tool_use", index if isinstance(index, int) else position)
            self._place(place, str(_function(call).get("arguments") or ""), call, texts)
        return "".join(texts)

    def finish(self, finished: RunFinished, answer: StepResult, podium: Mapping[str, object]) -> str:
        """Return what is still to be said, why the answer ended, and what was used."""
        texts: list[str] = []
        late, self._late = self._late, []
        for place, text, call in sorted(late, key=lambda piece: piece[0]):
            self._write(place, text, call, texts)
        self._close(texts)
        ended = {"stop_reason": stop_reason(answer), "stop_sequence": None}
        usage = usage_object(finished.usage, finished.other_usage)
        texts.append(_event("message_delta", delta=ended, usage=usage, podium=podium))
        texts.append(_event("message_stop"))
        return "".join(texts)

    def _place(self, place: tuple[str, int], text: str, call: Mapping[str, object], texts: list[str]) -> None:
        if place in self._closed and place[0] == "tool_use":
            return  # only white space can follow arguments that were whole
        if place != self._open and (self._late or self._is_unfinished()):
            self._late.append((place, text, call))
        else:
            self._write(place, text, call, texts)

    def _is_unfinished(self) -> bool:
        if self._open is None or self._open[0] != "tool_use":
            return False
        try:
            json.loads(self._arguments)
        except (ValueError, RecursionError):
            return True
        return False

    def _write(self, place: tuple[str, int], text: str, call: Mapping[str, object], texts: list[str]) -> None:
        if place != self._open:
            self._close(texts)
            self._open, self._arguments = place, ""
            self._index += 1
            block = _empty_block(place[0], call)
            texts.append(_event("content_block_start", index=self._index, content_block=block))
        if not text:
            return
        self._arguments += text if place[0] == "tool_use" else ""
        texts.append(_event("content_block_delta", index=self._index, delta=_block_delta(place[0], text)))

    def _close(self, texts: list[str]) -> None:
        if self._open is not None:
            texts.append(_event("content_block_stop", index=self._index))
            self._closed.add(self._open)
            self._open = None


def _empty_block(kind: str, call: Mapping[str, object]) -> dict[str, object]:
    if kind == "thinking":
        return {"type": kind, "thinking": "", "signature": ""}
    if kind == "text":
        return {"type": kind, "text": ""}
    return {"type": kind, "id": call.get("id"), "name": _function(call).get("name"), "input": {}}


def _block_delta(kind: str, text: str) -> dict[str, object]:
    if kind == "thinking":
        return {"type": "thinking_delta", "thinking": text}
    if kind == "text":
        return {"type": "text_delta", "text": text}
    return {"type": "input_json_delta", "partial_json": text}
