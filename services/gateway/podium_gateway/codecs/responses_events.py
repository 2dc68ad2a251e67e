"""One streamed response, event by event: items are opened, grown and closed, and the numbers only rise."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from podium_core.domain.errors import PodiumError
from podium_core.orchestration.events import RunFinished, StepResult
from podium_core.orchestration.ports import Delta
from podium_gateway.codecs.openai_answer import json_text
from podium_gateway.codecs.responses_answer import Item, ResponseFrame, refusal_part, text_part


@dataclass(slots=True)
class _Open:
    """An output item that still grows."""

    index: int
    kind: str
    summary: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    call: dict[str, object] = field(default_factory=dict)

    parts: list["_Part"] = field(default_factory=list)

    @property
    def whole(self) -> str:
        return "".join(self.text)


@dataclass(slots=True)
class _Part:
    """A part of a message that still grows: its text, or a refusal."""

    index: int
    is_refusal: bool
    text: list[str] = field(default_factory=list)
    logprobs: list[Mapping[str, object]] = field(default_factory=list)

    @property
    def shown(self) -> Item:
        text = "".join(self.text)
        return refusal_part(text) if self.is_refusal else text_part(text, self.logprobs)


class ResponseEncoder:
    """Renders one streamed response. Each method returns the text of its events."""

    def __init__(self, frame: ResponseFrame) -> None:
        self._frame = frame
        self._number = 0
        self._done: dict[int, Item] = {}
        self._count = 0
        self._reasoning: _Open | None = None
        self._message: _Open | None = None
        self._calls: dict[int, _Open] = {}

    def start(self) -> str:
        """Return the first events."""
        response = self._frame.response("in_progress", [])
        created = self._event("response.created", response=response)
        return created + self._event("response.in_progress", response=response)

    def keep_alive(self) -> str:
        """Return an event that says no more than that the run is at work."""
        response = self._frame.response("in_progress", self._output())
        return self._event("response.in_progress", response=response)

    def summary(self, text: str) -> str:
        """Return a part of the reasoning's summary."""
        texts: list[str] = []
        item = self._open_reasoning(texts)
        place = {**self._place(item, "rs"), "summary_index": len(item.summary)}
        item.summary.append(text)
        name = "response.reasoning_summary"
        empty, whole = ({"type": "summary_text", "text": given} for given in ("", text))
        texts.append(self._event(f"{name}_part.added", **place, part=empty))
        texts.append(self._event(f"{name}_text.delta", **place, delta=text))
        texts.append(self._event(f"{name}_text.done", **place, text=text))
        texts.append(self._event(f"{name}_part.done", **place, part=whole))
        return "".join(texts)

    def delta(self, delta: Delta) -> str:
        """Return the events for the output in the delta."""
        texts: list[str] = []
        if delta.reasoning:
            item = self._open_reasoning(texts)
            item.text.append(delta.reasoning)
            place = {**self._place(item, "rs"), "content_index": 0}
            texts.append(self._event("response.reasoning_text.delta", **place, delta=delta.reasoning))
        if delta.text:
            part, place = self._said(delta.text, texts, is_refusal=False)
            part.logprobs.extend(delta.logprobs)
            told = list(delta.logprobs)
            texts.append(self._event("response.output_text.delta", **place, delta=delta.text, logprobs=told))
        if delta.refusal:
            _, place = self._said(delta.refusal, texts, is_refusal=True)
            texts.append(self._event("response.refusal.delta", **place, delta=delta.refusal))
        for position, call in enumerate(delta.tool_calls):
            self._close_reasoning(texts)
            index = call.get("index", position)
            self._grow_call(index if isinstance(index, int) else position, call, texts)
        return "".join(texts)

    def finish(self, finished: RunFinished, answer: StepResult, podium: Mapping[str, object]) -> str:
        """Return what closes every item, and the one terminal event."""
        texts: list[str] = []
        self._close_reasoning(texts)
        if self._message is None and not self._calls:
            self._said("", texts, is_refusal=False)
        if self._message is not None:
            self._close_message(self._message, texts)
        for item in self._calls.values():
            self._close_call(item, texts)
        response = self._frame.finished(finished, answer, self._output(), podium)
        texts.append(self._event(f"response.{response['status']}", response=response))
        return "".join(texts)

    def failed(self, error: PodiumError, message: str, podium: Mapping[str, object] | None) -> str:
        """Return the one terminal event of a run that gave no answer."""
        response = self._frame.failed(error, message, self._output(), podium)
        return self._event("response.failed", response=response)

    def _event(self, kind: str, /, **fields: object) -> str:
        body = json_text({"type": kind, "sequence_number": self._number, **fields})
        self._number += 1
        return f"event: {kind}\ndata: {body}\n\n"

    def _output(self) -> list[Item]:
        return [self._done[index] for index in sorted(self._done)]

    def _place(self, item: _Open, prefix: str) -> dict[str, object]:
        return {"item_id": self._frame.item_id(prefix, item.index), "output_index": item.index}

    def _opened(self, kind: str) -> _Open:
        item = _Open(self._count, kind)
        self._count += 1
        return item

    def _added(self, item: _Open, shown: Item, texts: list[str]) -> None:
        texts.append(self._event("response.output_item.added", output_index=item.index, item=shown))

    def _closed(self, item: _Open, shown: Item, texts: list[str]) -> None:
        self._done[item.index] = shown
        texts.append(self._event("response.output_item.done", output_index=item.index, item=shown))

    # --- reasoning -------------------------------------------------------------------------------

    def _open_reasoning(self, texts: list[str]) -> _Open:
        if self._reasoning is None:
            self._reasoning = item = self._opened("reasoning")
            self._added(item, self._frame.reasoning(item.index, (), "", "in_progress"), texts)
        return self._reasoning

    def _close_reasoning(self, texts: list[str]) -> None:
        item, self._reasoning = self._reasoning, None
        if item is None:
            return
        if item.text:
            place = {**self._place(item, "rs"), "content_index": 0}
            texts.append(self._event("response.reasoning_text.done", **place, text=item.whole))
        self._closed(item, self._frame.reasoning(item.index, item.summary, item.whole), texts)

    # --- message ---------------------------------------------------------------------------------

    def _said(self, text: str, texts: list[str], *, is_refusal: bool) -> tuple[_Part, dict[str, object]]:
        """Add text to a part of the message, opened if need be; return the part and its place."""
        self._close_reasoning(texts)
        if self._message is None:
            self._message = item = self._opened("message")
            self._added(item, self._frame.message(item.index, (), "in_progress"), texts)
        item = self._message
        part = next((part for part in item.parts if part.is_refusal == is_refusal), None)
        if part is None:
            part = _Part(len(item.parts), is_refusal)
            item.parts.append(part)
            place = self._part_place(item, part)
            texts.append(self._event("response.content_part.added", **place, part=part.shown))
        part.text.append(text)
        return part, self._part_place(item, part)

    def _part_place(self, item: _Open, part: _Part) -> dict[str, object]:
        return {**self._place(item, "msg"), "content_index": part.index}

    def _close_message(self, item: _Open, texts: list[str]) -> None:
        for part in item.parts:
            place, shown = self._part_place(item, part), part.shown
            if part.is_refusal:
                texts.append(self._event("response.refusal.done", **place, refusal=shown["refusal"]))
            else:
                told = {"text": shown["text"], "logprobs": shown["logprobs"]}
                texts.append(self._event("response.output_text.done", **place, **told))
            texts.append(self._event("response.content_part.done", **place, part=shown))
        self._closed(item, self._frame.message(item.index, [part.shown for part in item.parts]), texts)

    # --- tool calls ------------------------------------------------------------------------------

    def _grow_call(self, index: int, piece: Mapping[str, object], texts: list[str]) -> None:
        function = piece.get("function")
        inner: Mapping[str, object] = function if isinstance(function, Mapping) else {}
        arguments = str(inner.get("arguments") or "")
        item = self._calls.get(index)
        if item is None:
            self._calls[index] = item = self._opened("call")
            named = {"name": inner.get("name") or "", "arguments": ""}
            item.call = {"id": piece.get("id"), "function": named}
            self._added(item, self._frame.call(item.index, item.call, "in_progress"), texts)
        if not arguments:
            return
        item.text.append(arguments)
        # A custom tool's text is unwrapped once it is whole.
        if not self._is_custom(item):
            place = self._place(item, "fc")
            texts.append(self._event("response.function_call_arguments.delta", **place, delta=arguments))

    def _is_custom(self, item: _Open) -> bool:
        function = item.call["function"]
        return isinstance(function, dict) and function["name"] in self._frame.custom_tools

    def _close_call(self, item: _Open, texts: list[str]) -> None:
        function = item.call["function"]
        assert isinstance(function, dict)
        shown = self._frame.call(item.index, {**item.call, "function": {**function, "arguments": item.whole}})
        if self._is_custom(item):
            place, text = self._place(item, "ctc"), shown["input"]
            texts.append(self._event("response.custom_tool_call_input.delta", **place, delta=text))
            texts.append(self._event("response.custom_tool_call_input.done", **place, input=text))
        else:
            place, name = self._place(item, "fc"), shown["name"]
            texts.append(
                self._event("response.function_call_arguments.done", **place, name=name, arguments=item.whole)
            )
        self._closed(item, shown, texts)
