"""`POST /v1/chat/completions`."""

from collections.abc import Mapping
from dataclasses import dataclass

from podium_core.config.tenants import Principal
from podium_core.domain.errors import PodiumError
from podium_core.orchestration.events import RunEvent
from podium_core.orchestration.ports import Delta
from podium_core.runtime.side_thread import aside
from podium_gateway.answers import AnswerContext, Answered, Asked, StreamedAnswer
from podium_gateway.codecs.fields import refuse
from podium_gateway.codecs.openai_answer import (
    DONE,
    KEEP_ALIVE,
    ChunkEncoder,
    completion_object,
    dry_run_object,
    error_event,
    json_text,
)
from podium_gateway.codecs.openai_chat import decode_chat_request
from podium_gateway.completions import StoredCompletions
from podium_gateway.errors import error_body
from podium_gateway.fronts.keeping import kept_or_logged


class ChatFront:
    """OpenAI's Chat Completions."""

    def __init__(self, stored: StoredCompletions) -> None:
        self._stored = stored

    async def decode(self, body: bytes, principal: Principal) -> Asked:
        """Return what the client asks for; raise PodiumError naming the field to blame."""
        request = await aside(len(body), decode_chat_request, body)
        rendering = ChatRendering(request.wishes.events, request.parameters.include_usage)
        if not request.parameters.is_stored:
            return Asked(request, rendering)
        if not principal.tenant.keeps_content:
            problem = "what this tenant's clients say is never stored; send store: false"
            raise refuse("store", problem, reason="CONTENT_NOT_KEPT")

        async def keep(done: Answered, context: AnswerContext) -> None:
            completion = {
                **rendering.completion(done, context),
                "metadata": dict(request.parameters.metadata),
            }
            messages = [message.fields for message in request.question.messages]
            await kept_or_logged(
                self._stored.put(principal, completion, messages, context.run_id), context.run_id
            )

        return Asked(request, rendering, keep=keep)


@dataclass(frozen=True, slots=True)
class ChatRendering:
    """Tells one answer as a completion, or as its chunks."""

    wants_events: bool
    include_usage: bool

    def completion(self, done: Answered, context: AnswerContext) -> dict[str, object]:
        """Return the completion."""
        return completion_object(
            done.finished, model=context.model, created=context.created, podium=done.podium
        )

    def whole(self, done: Answered, context: AnswerContext) -> str:
        """Return the completion's text."""
        return json_text(self.completion(done, context))

    def dry_run(self, podium: Mapping[str, object], context: AnswerContext) -> str:
        """Return an empty completion that carries the plan."""
        return json_text(
            dry_run_object(context.run_id, model=context.model, created=context.created, podium=podium)
        )

    def streamed(self, context: AnswerContext) -> StreamedAnswer:
        """Return a renderer of chunks."""
        return ChatStream(context, wants_events=self.wants_events, include_usage=self.include_usage)


class ChatStream(StreamedAnswer):
    """Renders a run as chunks, then `[DONE]`."""

    def __init__(self, context: AnswerContext, *, wants_events: bool, include_usage: bool) -> None:
        super().__init__(context)
        self._wants_events = wants_events
        self._include_usage = include_usage
        self._encoders: dict[int, ChunkEncoder] = {}

    def keep_alive(self) -> str:
        """Return a comment, which every reader skips."""
        return KEEP_ALIVE

    def _news(self, event: RunEvent, texts: list[str]) -> None:
        if self._wants_events and (news := self._context.view.event(event)) is not None:
            texts.append(self._speaker(0, texts).event(news))

    def _delta(self, delta: Delta, texts: list[str]) -> None:
        texts.append(self._speaker(self._choice, texts).delta(delta))

    def _answered(self, done: Answered, texts: list[str]) -> None:
        answers = done.finished.answers
        for answer in answers:
            podium = done.podium if answer is answers[-1] else None
            texts.append(self._speaker(answer.choice, texts).finish(answer.finish_reason, podium))
        texts.append(self._speaker(0, texts).usage(done.finished) + DONE)

    def _failed(self, error: PodiumError, podium: Mapping[str, object] | None, *, is_sealed: bool) -> str:
        body = error_body(error) if podium is None else {**error_body(error), "podium": podium}
        return error_event(body) + (DONE if is_sealed else "")

    def _speaker(self, choice: int, texts: list[str]) -> ChunkEncoder:
        """Return the encoder of one answer, which first names its speaker."""
        encoder = self._encoders.get(choice)
        if encoder is None:
            context = self._context
            encoder = self._encoders[choice] = ChunkEncoder(
                context.run_id,
                model=context.model,
                created=context.created,
                include_usage=self._include_usage,
                choice=choice,
            )
            texts.append(encoder.role())
        return encoder
