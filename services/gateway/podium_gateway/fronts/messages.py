"""`POST /v1/messages`, as Anthropic's clients speak it, and its count of tokens."""

from collections.abc import Mapping
from dataclasses import dataclass

from podium_core.config.tenants import Principal
from podium_core.domain.errors import PodiumError
from podium_core.orchestration.eligible import token_bound
from podium_core.orchestration.events import RunEvent
from podium_core.runtime.side_thread import aside
from podium_gateway.answers import AnswerContext, Answered, Asked, StreamedAnswer
from podium_gateway.codecs.anthropic_answer import (
    PING,
    MessageEncoder,
    dry_run_object,
    error_event,
    message_object,
)
from podium_gateway.codecs.anthropic_request import decode_count_request, decode_messages_request
from podium_gateway.codecs.openai_answer import json_text
from podium_gateway.errors import anthropic_error_body
from podium_gateway.fronts.encoded_stream import EncodedStream

_BYTES_PER_TOKEN = 4
_IMAGE_TOKENS = 1_600
"""What Anthropic counts for an image of its largest useful size (its vision documentation)."""


class MessagesFront:
    """Anthropic's Messages."""

    async def decode(self, body: bytes, principal: Principal) -> Asked:
        """Return what the client asks for; raise PodiumError naming the field to blame."""
        del principal
        decoded = await aside(len(body), decode_messages_request, body)
        return Asked(decoded.request, MessagesRendering(decoded.shows_thinking))


@dataclass(frozen=True, slots=True)
class MessagesRendering:
    """Tells one answer as a message, or as the events that build it."""

    shows_thinking: bool

    def whole(self, done: Answered, context: AnswerContext) -> str:
        """Return the message; raise PodiumError (PROVIDER_FAILED) for tool arguments that are no object."""
        return json_text(
            message_object(
                done.finished,
                done.answer,
                model=context.model,
                podium=done.podium,
                shows_thinking=self.shows_thinking,
            )
        )

    def dry_run(self, podium: Mapping[str, object], context: AnswerContext) -> str:
        """Return an empty message that carries the plan."""
        return json_text(dry_run_object(context.run_id, model=context.model, podium=podium))

    def streamed(self, context: AnswerContext) -> StreamedAnswer:
        """Return a renderer of events."""
        return MessagesStream(context, shows_thinking=self.shows_thinking)


class MessagesStream(EncodedStream[MessageEncoder]):
    """Renders a run as `message_start`, blocks, `message_delta` and `message_stop`."""

    def __init__(self, context: AnswerContext, *, shows_thinking: bool) -> None:
        super().__init__(
            context, MessageEncoder(context.run_id, model=context.model, shows_thinking=shows_thinking)
        )

    def keep_alive(self) -> str:
        """Return a ping, which readers of parsed events see too."""
        texts: list[str] = []
        self._start(texts)
        texts.append(PING)
        return "".join(texts)

    def _news(self, event: RunEvent, texts: list[str]) -> None:
        """Tell nothing: the protocol has no place for it."""

    def _failed(self, error: PodiumError, podium: Mapping[str, object] | None, *, is_sealed: bool) -> str:
        del is_sealed  # without message_stop no reader takes the message for whole
        body = anthropic_error_body(error)
        return error_event(body if podium is None else {**body, "podium": podium})


async def counted_tokens(body: bytes) -> str:
    """Return how many tokens a request holds; raise PodiumError naming the field to blame.

    An estimate at four bytes a token: which worker reads it, and so which tokenizer counts, is not known yet.
    """
    question, tools = await aside(len(body), decode_count_request, body)
    tool_bytes = len(json_text(tools).encode(errors="replace")) if tools else 0
    images = sum(message.image_count for message in question.messages)
    text_tokens = -(-(token_bound(question) + tool_bytes) // _BYTES_PER_TOKEN)
    return json_text(
        {"input_tokens": text_tokens + images * _IMAGE_TOKENS, "podium": {"source": "estimated"}}
    )
