"""`POST /v1/responses`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from podium_core.config.tenants import Principal
from podium_core.domain.errors import Code, PodiumError
from podium_core.orchestration.events import Planned, RunEvent, StepEnded, StepResult, StepStarted
from podium_core.orchestration.ports import PlanReply
from podium_core.runtime.side_thread import aside
from podium_gateway.answers import AnswerContext, Answered, Asked, Fields, StreamedAnswer
from podium_gateway.codecs.fields import refuse
from podium_gateway.codecs.openai_answer import json_text
from podium_gateway.codecs.responses_answer import ResponseFrame, output_items
from podium_gateway.codecs.responses_events import ResponseEncoder
from podium_gateway.codecs.responses_input import decode_input
from podium_gateway.codecs.responses_request import (
    ResponsesRequest,
    decode_responses_request,
    previous_response_id,
)
from podium_gateway.codecs.strict_json import parse_object
from podium_gateway.errors import INTERNAL_MESSAGE
from podium_gateway.fronts.encoded_stream import EncodedStream
from podium_gateway.fronts.keeping import kept_or_logged
from podium_gateway.stored import StoredResponse, StoredResponses

_US_PER_S = 1_000_000


class ResponsesFront:
    """OpenAI's Responses."""

    def __init__(self, stored: StoredResponses) -> None:
        self._stored = stored

    async def decode(self, body: bytes, principal: Principal) -> Asked:
        """Return what the client asks for; raise PodiumError naming the field to blame."""
        fields = await aside(len(body), parse_object, body)
        decoded = decode_responses_request(fields, await self._earlier(fields, principal))
        if not (principal.tenant.keeps_content or decoded.is_background):
            # Nobody may store this tenant's words, and its clients must not believe that they can be read.
            decoded = replace(decoded, is_stored=False, echo={**decoded.echo, "store": False})
        rendering = ResponsesRendering(decoded)

        async def keep(done: Answered, context: AnswerContext) -> None:
            response = rendering.response(done, context)
            stored = StoredResponse(response, rendering.conversation_after(response), asked=decoded.asked)
            await kept_or_logged(self._stored.put(principal, stored, context.run_id), context.run_id)

        return Asked(
            decoded.request,
            rendering,
            keep=keep if decoded.is_stored and not decoded.is_background else None,
            is_detached=decoded.is_background,
            conversation_after=rendering.conversation_after,
            asked=decoded.asked,
        )

    async def _earlier(self, fields: Mapping[str, object], principal: Principal) -> Sequence[Fields]:
        """Return the conversation that a request continues."""
        response_id = previous_response_id(fields)
        if response_id is None:
            return ()
        try:
            stored = await self._stored.get(principal, response_id)
        except PodiumError as error:
            if error.code is Code.NOT_FOUND:
                raise refuse("previous_response_id", error.message, reason=error.reason) from None
            raise
        if not stored.conversation:
            raise refuse("previous_response_id", "that response has no answer to go on from")
        return stored.conversation


@dataclass(frozen=True, slots=True)
class ResponsesRendering:
    """Tells one answer as a response, or as the events that build it."""

    asked: ResponsesRequest

    def response(self, done: Answered, context: AnswerContext) -> dict[str, object]:
        """Return the response object of an answer."""
        frame = self._frame(context)
        summary = self._summary(done.finished.steps, context) if self.asked.wants_summary else ()
        output = output_items(frame, done.answer, summary)
        return frame.finished(done.finished, done.answer, output, done.podium)

    def conversation_after(self, response: Fields) -> Sequence[Fields]:
        """Return the messages of the conversation with the response's own; none if it says nothing."""
        output = response.get("output")
        said = decode_input(output) if output else []
        return (*self.asked.conversation, *said) if said else ()

    def whole(self, done: Answered, context: AnswerContext) -> str:
        """Return the response."""
        return json_text(self.response(done, context))

    def dry_run(self, podium: Mapping[str, object], context: AnswerContext) -> str:
        """Return a response without output that carries the plan."""
        return json_text(self._frame(context).response("completed", [], podium=podium))

    def streamed(self, context: AnswerContext) -> StreamedAnswer:
        """Return a renderer of events."""
        return ResponsesStream(context, self._frame(context), wants_summary=self.asked.wants_summary)

    def _frame(self, context: AnswerContext) -> ResponseFrame:
        return ResponseFrame(
            context.run_id, context.model, context.created, self.asked.echo, self.asked.custom_tools
        )

    def _summary(self, steps: Sequence[StepResult], context: AnswerContext) -> list[str]:
        return [_ended(step, is_demo=context.view.is_demo(step.worker_id)) for step in steps]


class ResponsesStream(EncodedStream[ResponseEncoder]):
    """Renders a run as items that open, grow and close, then one terminal event."""

    def __init__(self, context: AnswerContext, frame: ResponseFrame, *, wants_summary: bool) -> None:
        super().__init__(context, ResponseEncoder(frame))
        self._wants_summary = wants_summary

    def keep_alive(self) -> str:
        """Return `response.in_progress`, since readers of parsed events never see a comment."""
        if self._is_started:
            return self._encoder.keep_alive()
        texts: list[str] = []
        self._start(texts)
        return "".join(texts)

    def _news(self, event: RunEvent, texts: list[str]) -> None:
        # Once the answer has begun, its reasoning is over.
        if not self._wants_summary or self._has_output:
            return
        text = self._told(event)
        if text:
            self._start(texts)
            texts.append(self._encoder.summary(text))

    def _told(self, event: RunEvent) -> str:
        view = self._context.view
        if isinstance(event, Planned):
            return _planned(event.reply)
        if isinstance(event, StepStarted):
            return _started(event, self._plans[-1], is_demo=view.is_demo(event.worker_id))
        if isinstance(event, StepEnded):
            return _ended(event.result, is_demo=view.is_demo(event.result.worker_id))
        return ""

    def _failed(self, error: PodiumError, podium: Mapping[str, object] | None, *, is_sealed: bool) -> str:
        del is_sealed  # a response that failed is never taken for whole
        texts: list[str] = []
        self._start(texts)
        message = INTERNAL_MESSAGE if error.code is Code.INTERNAL else error.message
        texts.append(self._encoder.failed(error, message, podium))
        return "".join(texts)


def _planned(reply: PlanReply) -> str:
    steps = reply.plan.steps
    if not steps:
        return "**The answer stands**"
    head = f"**Round {reply.plan.round + 1}**\n\n" if reply.plan.round else ""
    count = "one step" if len(steps) == 1 else f"{len(steps)} steps"
    return f"{head}**Planned {count}**\n\nBy {', then '.join(step.worker_id for step in steps)}."


def _started(event: StepStarted, reply: PlanReply, *, is_demo: bool) -> str:
    steps = reply.plan.steps
    subtask = steps[event.step_index].subtask if event.step_index < len(steps) else ""
    head = f"**Step {event.step_index + 1}: {_named(event.worker_id, is_demo=is_demo)}**"
    return f"{head}\n\n{subtask or 'The question as it is.'}"


def _ended(step: StepResult, *, is_demo: bool) -> str:
    took_s = (step.ended_us - step.started_us) / _US_PER_S
    named = _named(step.worker_id, is_demo=is_demo)
    how = "done" if step.ok else f"failed ({step.error.reason.lower() if step.error else 'no answer'})"
    return f"**Step {step.step_index + 1}: {named} {how}**\n\nAfter {took_s:.1f} s."


def _named(worker_id: str, *, is_demo: bool) -> str:
    return f"{worker_id} (demo)" if is_demo else worker_id
