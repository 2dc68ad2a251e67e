"""Answers as readers of OpenAI's Responses know them: one response object and its output items."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.usage import Usage
from podium_core.orchestration.events import RunFinished, StepResult
from podium_gateway.codecs.responses_tools import raw_input

_INCOMPLETE = {"content_filter": "content_filter", "length": "max_output_tokens"}
# Codes that clients branch on; Codex takes any other one for a reason to send everything again.
_CODES = {
    Code.BUDGET_EXHAUSTED: "insufficient_quota",
    Code.INVALID_REQUEST: "invalid_prompt",
    Code.POLICY_DENIED: "invalid_prompt",
    Code.RATE_LIMITED: "rate_limit_exceeded",
}
_CONTEXT_LENGTH = "CONTEXT_LENGTH_EXCEEDED"

Item = dict[str, object]


@dataclass(frozen=True, slots=True)
class ResponseFrame:
    """What every state of one response repeats: its ids, and the request's own fields."""

    run_id: str
    model: str
    created: int
    echo: Mapping[str, object]
    custom_tools: frozenset[str]

    @property
    def response_id(self) -> str:
        """The OpenAI-style id of the run's answer."""
        return response_id(self.run_id)

    def item_id(self, prefix: str, index: int) -> str:
        """Return the id of an output item, below 64 characters."""
        return f"{prefix}_{self.run_id.rpartition('_')[2]}_{index}"

    def response(self, status: str, output: Sequence[Item], **fields: object) -> dict[str, object]:
        """Return the response in one of its states."""
        return {
            "id": self.response_id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "model": self.model,
            "output": list(output),
            "usage": None,
            **self.echo,
            **fields,
        }

    def finished(
        self, finished: RunFinished, answer: StepResult, output: Sequence[Item], podium: Mapping[str, object]
    ) -> dict[str, object]:
        """Return the response of a run that gave an answer, cut short or not."""
        reason = _INCOMPLETE.get(answer.finish_reason)
        return self.response(
            "completed" if reason is None else "incomplete",
            output,
            incomplete_details=None if reason is None else {"reason": reason},
            usage=usage_object(finished.usage, finished.other_usage),
            podium=podium,
        )

    def failed(
        self, error: PodiumError, message: str, output: Sequence[Item], podium: Mapping[str, object] | None
    ) -> dict[str, object]:
        """Return the response of a run that gave none, cancelled or failed."""
        shown = {} if podium is None else {"podium": podium}
        told = {"code": error_code(error), "message": message, "reason": error.reason.lower()}
        if error.code is Code.CANCELLED:
            return self.response("cancelled", output, **shown)
        return self.response("failed", output, error=told, **shown)

    def reasoning(self, index: int, summary: Sequence[str], text: str, status: str = "completed") -> Item:
        """Return a reasoning item: the plan's steps as its summary, the worker's own words as its content."""
        return {
            "type": "reasoning",
            "id": self.item_id("rs", index),
            "summary": [{"type": "summary_text", "text": part} for part in summary],
            "content": [{"type": "reasoning_text", "text": text}] if text else [],
            "encrypted_content": None,
            "status": status,
        }

    def message(self, index: int, parts: Sequence[Item], status: str = "completed") -> Item:
        """Return a message item."""
        return {
            "type": "message",
            "id": self.item_id("msg", index),
            "role": "assistant",
            "status": status,
            "content": list(parts),
        }

    def call(self, index: int, call: Mapping[str, object], status: str = "completed") -> Item:
        """Return the item of a tool call: of a function, or of a custom tool with its raw text."""
        function = call.get("function")
        inner: Mapping[str, object] = function if isinstance(function, Mapping) else {}
        name, arguments = str(inner.get("name") or ""), str(inner.get("arguments") or "")
        named = {"call_id": call.get("id") or "", "name": name, "status": status}
        if name in self.custom_tools:
            text = raw_input(arguments) if arguments else ""
            return {
                "type": "custom_tool_call",
                "id": self.item_id("ctc", index),
                **named,
                "input": text,
            }
        return {"type": "function_call", "id": self.item_id("fc", index), **named, "arguments": arguments}


def response_id(run_id: str) -> str:
    """Return the OpenAI-style id of a run's answer."""
    return f"resp_{run_id.rpartition('_')[2]}"


def text_part(text: str, logprobs: Sequence[Mapping[str, object]] = ()) -> Item:
    """Return a message's text."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": list(logprobs)}


def refusal_part(text: str) -> Item:
    """Return why a worker gives no answer, in its own words."""
    return {"type": "refusal", "refusal": text}


def error_code(error: PodiumError) -> str:
    """Return the code that Responses clients know a failure by."""
    if error.reason == _CONTEXT_LENGTH:
        return _CONTEXT_LENGTH.lower()
    return _CODES.get(error.code, "server_error")


def usage_object(usage: Usage, other: Usage) -> dict[str, object]:
    """Return the answering attempt's `usage`, every other attempt's tokens beside it as details."""
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_input_tokens,
            "orchestration_input_tokens": other.input_tokens,
            "orchestration_input_cached_tokens": other.cached_input_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {
            "reasoning_tokens": usage.reasoning_output_tokens,
            "orchestration_output_tokens": other.output_tokens,
        },
        "total_tokens": usage.total_tokens,
    }


def output_items(frame: ResponseFrame, answer: StepResult, summary: Sequence[str]) -> list[Item]:
    """Return the output of an answer that is not streamed."""
    items: list[Item] = []
    if summary or answer.reasoning:
        items.append(frame.reasoning(0, summary, answer.reasoning))
    parts = [text_part(answer.text, answer.logprobs)] if answer.text else []
    parts += [refusal_part(answer.refusal)] if answer.refusal else []
    if parts or not answer.tool_calls:
        items.append(frame.message(len(items), parts or [text_part("")]))
    for call in answer.tool_calls:
        items.append(frame.call(len(items), call))
    return items
