"""`POST /v1/embeddings`."""

from collections.abc import Mapping
from dataclasses import dataclass

from podium_core.config.tenants import Principal
from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.side_thread import aside
from podium_gateway.answers import AnswerContext, Answered, Asked, StreamedAnswer
from podium_gateway.codecs.embeddings import decode_embeddings_request, embeddings_object
from podium_gateway.codecs.openai_answer import json_text


class EmbeddingsFront:
    """OpenAI's Embeddings."""

    async def decode(self, body: bytes, principal: Principal) -> Asked:
        """Return what the client asks for; raise PodiumError naming the field to blame."""
        del principal
        decoded = await aside(len(body), decode_embeddings_request, body)
        return Asked(decoded.request, EmbeddingsRendering(decoded.in_base64))


@dataclass(frozen=True, slots=True)
class EmbeddingsRendering:
    """Tells vectors. They are never streamed, and a dry run of them is refused when it is decoded."""

    in_base64: bool

    def whole(self, done: Answered, context: AnswerContext) -> str:
        """Return the list of vectors."""
        body = embeddings_object(
            done.answer.vectors,
            done.finished.usage,
            model=context.model,
            podium=done.podium,
            in_base64=self.in_base64,
        )
        return json_text(body)

    def dry_run(self, podium: Mapping[str, object], context: AnswerContext) -> str:
        """Refuse."""
        del podium, context
        raise PodiumError(Code.INTERNAL, "embeddings have no dry run")

    def streamed(self, context: AnswerContext) -> StreamedAnswer:
        """Refuse."""
        del context
        raise PodiumError(Code.INTERNAL, "embeddings are not streamed")
