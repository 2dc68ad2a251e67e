"""What a provider has answered so far, in OpenAI's chat format, streamed or whole.

Tolerant where providers differ, typed where they break: nothing here raises but `BadAnswerError`, and
what came before a cut stays, so that a cancelled attempt can still say what it used.
"""

import json
from typing import cast

from podium_core.domain.usage import Usage
from podium_router.calls import Delta
from podium_router.logprobs import token_logprobs
from podium_router.replay import Replay
from podium_router.usage import provider_usage
from podium_router.vectors import BadAnswerError, vectors_of

_FINISH_REASONS = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "max_tokens": "length",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "eos": "stop",
}
_MAX_TOOL_CALLS = 128
_MAX_NAME_CHARS = 128

_Json = dict[str, object]


class ProviderErrorEventError(Exception):
    """The provider reported an error inside an answer that began well."""


class Answer:
    """Collects one attempt's output, usage and finish reason."""

    __slots__ = (
        "_half_reasoning",
        "_half_refusal",
        "_half_text",
        "_logprobs",
        "_reasoning",
        "_refusal",
        "_text",
        "_tool_calls",
        "dispatched",
        "finish_reason",
        "replay",
        "response_id",
        "served_model",
        "usage",
        "vectors",
    )

    def __init__(self) -> None:
        self.dispatched = False
        self.finish_reason = ""
        self.response_id = ""
        self.served_model = ""
        self.usage: Usage | None = None
        self.vectors: tuple[bytes, ...] = ()
        self.replay = Replay()
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._half_text = ""
        self._half_reasoning = ""
        self._half_refusal = ""
        self._refusal: list[str] = []
        self._logprobs: list[_Json] = []
        self._tool_calls: dict[int, _ToolCall] = {}

    @property
    def text(self) -> str:
        """All text so far."""
        return "".join(self._text)

    @property
    def refusal(self) -> str:
        """All text of a refusal so far."""
        return "".join(self._refusal)

    @property
    def reasoning(self) -> str:
        """All reasoning text so far."""
        return "".join(self._reasoning)

    @property
    def logprobs(self) -> tuple[_Json, ...]:
        """The log-probability entries so far."""
        return tuple(self._logprobs)

    @property
    def is_empty(self) -> bool:
        """Whether no output has come yet."""
        return not (self._text or self._reasoning or self._tool_calls or self._refusal)

    @property
    def tool_calls(self) -> tuple[_Json, ...]:
        """The tool calls so far, whole, in index order, as a message holds them."""
        return tuple(call.whole() for _, call in sorted(self._tool_calls.items()))

    @property
    def output_bytes(self) -> int:
        """Size of everything the provider generated, for estimates."""
        arguments = sum(call.size() for call in self._tool_calls.values())
        return len(self.text.encode()) + len(self.refusal.encode()) + self.reasoning_bytes + arguments

    @property
    def reasoning_bytes(self) -> int:
        """Size of the reasoning text."""
        return len(self.reasoning.encode())

    def take_chunk(self, chunk: object) -> Delta | None:
        """Take one streamed chunk and return what it adds, if anything.

        Raises BadAnswerError, ProviderErrorEventError.
        """
        fields = self._take_head(chunk)
        choice = _first_choice(fields)
        if choice is None:
            return None
        self._take_finish(choice)
        return self._take_output(choice.get("delta"), choice.get("logprobs"))

    def take_message(self, body: object) -> Delta:
        """Take a whole answer and return it as one delta. Raises BadAnswerError, ProviderErrorEventError."""
        fields = self._take_head(body)
        choice = _first_choice(fields)
        if choice is None or not isinstance(choice.get("message"), dict):
            raise BadAnswerError
        self._take_finish(choice)
        return self._take_output(choice["message"], choice.get("logprobs")) or Delta()

    def take_vectors(self, body: object) -> Delta:
        """Take the answer to a call for vectors. Raises BadAnswerError, ProviderErrorEventError."""
        fields = self._take_head(body)
        self.vectors = vectors_of(fields.get("data"))
        return Delta()

    def close(self) -> None:
        """Settle the finish reason of an answer whose provider said that it is complete."""
        if self._tool_calls and self.finish_reason in {"", "stop"}:
            self.finish_reason = "tool_calls"
        elif not self.finish_reason:
            self.finish_reason = "stop"

    def message_json(self) -> bytes:
        """Return the assistant message with its tool calls, whole, as JSON text."""
        message = {"role": "assistant", "content": self.text or None, "tool_calls": self.tool_calls}
        if self.refusal:
            message["refusal"] = self.refusal
        return json.dumps(message, separators=(",", ":")).encode()

    def _take_head(self, body: object) -> _Json:
        if not isinstance(body, dict):
            raise BadAnswerError
        fields = cast("_Json", body)
        if fields.get("error"):
            raise ProviderErrorEventError
        if not self.response_id:
            self.response_id = _name(fields.get("id"))
        if not self.served_model:
            self.served_model = _name(fields.get("model"))
        if fields.get("usage"):
            self.usage = provider_usage(fields["usage"]) or self.usage
        return fields

    def _take_finish(self, choice: _Json) -> None:
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            if reason == "error":
                raise ProviderErrorEventError
            self.finish_reason = _FINISH_REASONS.get(reason, "stop")

    def _take_output(self, output: object, logprobs: object) -> Delta | None:
        if not isinstance(output, dict):
            return None
        fields = cast("_Json", output)
        text, refusal = _text_of(fields.get("content")), _text_of(fields.get("refusal"))
        reasoning = _text_of(fields.get("reasoning_content")) or _text_of(fields.get("reasoning"))
        if text:
            text, self._half_text = _whole_characters(self._half_text + text)
        if text:
            self._text.append(text)
        if refusal:
            refusal, self._half_refusal = _whole_characters(self._half_refusal + refusal)
        if refusal:
            self._refusal.append(refusal)
        if reasoning:
            reasoning, self._half_reasoning = _whole_characters(self._half_reasoning + reasoning)
        if reasoning:
            self._reasoning.append(reasoning)
        self.replay.take(fields)
        items = fields.get("tool_calls")
        calls = self._take_tool_calls(cast("list[object]", items)) if isinstance(items, list) else ()
        entries = token_logprobs(logprobs) if logprobs is not None else ()
        self._logprobs.extend(entries)
        if text or reasoning or calls or refusal or entries:
            return Delta(text, reasoning, calls, refusal, entries)
        return None

    def _take_tool_calls(self, items: list[object]) -> tuple[_Json, ...]:
        deltas: list[_Json] = []
        for item in items:
            if not isinstance(item, dict):
                raise BadAnswerError
            delta = cast("_Json", item)
            index = self._index_of(delta)
            call = self._tool_calls.get(index)
            if call is None:
                call = self._tool_calls[index] = _ToolCall()
            deltas.append({"index": index, **call.take(delta)})
        return tuple(deltas)

    def _index_of(self, delta: _Json) -> int:
        index = delta.get("index")
        if index is None:
            # Whole calls, and providers that forget the index: a new id opens a new call.
            call_id = delta.get("id")
            index = next((i for i, call in self._tool_calls.items() if call_id and call.id == call_id), None)
            if index is None:
                last = max(self._tool_calls, default=-1)
                index = last + 1 if call_id or last < 0 else last
        if type(index) is not int or not 0 <= index < _MAX_TOOL_CALLS:
            raise BadAnswerError
        return index


class _ToolCall:
    __slots__ = ("_arguments", "_half", "_name", "id")

    def __init__(self) -> None:
        self.id = ""
        self._name = ""
        self._arguments: list[str] = []
        self._half = ""

    def take(self, delta: _Json) -> _Json:
        """Take a delta and return it in OpenAI's fields and types alone, fit to be encoded."""
        taken: _Json = {}
        call_id = delta.get("id")
        if isinstance(call_id, str) and call_id:
            self.id, _ = _whole_characters(call_id)
            taken["id"] = self.id
        if delta.get("type") == "function":
            taken["type"] = "function"
        function = delta.get("function")
        if isinstance(function, dict):
            taken["function"] = self._take_function(cast("_Json", function))
        return taken

    def _take_function(self, fields: _Json) -> _Json:
        taken: _Json = {}
        name, arguments = fields.get("name"), fields.get("arguments")
        if isinstance(name, str) and name:
            self._name, _ = _whole_characters(name)
            taken["name"] = self._name
        if isinstance(arguments, str):
            arguments, self._half = _whole_characters(self._half + arguments)
            self._arguments.append(arguments)
            taken["arguments"] = arguments
        return taken

    def size(self) -> int:
        return len(self._name) + sum(map(len, self._arguments))

    def whole(self) -> _Json:
        function = {"name": self._name, "arguments": "".join(self._arguments)}
        return {"id": self.id, "type": "function", "function": function}


def _first_choice(fields: _Json) -> _Json | None:
    choices = fields.get("choices")
    if not isinstance(choices, list) or not choices:
        return None
    for choice in cast("list[object]", choices):
        if not isinstance(choice, dict):
            raise BadAnswerError
        if not choice.get("index"):
            return cast("_Json", choice)
    return None


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join([part for part in parts if isinstance(part, str)])
    return ""


def _name(value: object) -> str:
    """Return a short printable word, since what a provider calls itself is stored and shown."""
    if isinstance(value, str) and len(value) <= _MAX_NAME_CHARS and value.isascii() and value.isprintable():
        return value
    return ""


def _whole_characters(text: str) -> tuple[str, str]:
    """Return text that can be encoded, and a trailing half of a surrogate pair to keep for later.

    Some providers cut an escaped character in two and send each half in its own chunk.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        half = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
        whole = text[:-1] if half else text
        return whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace"), half
    return text, ""
