"""Providers on loopback that make vectors in formats of their own: Bedrock's InvokeModel and Cohere's embed.

Shapes follow the references of Amazon Titan Text Embeddings V2 and Cohere Embed on Bedrock, and of Cohere's
`/v1/embed`.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from aiohttp import web
from typing_extensions import override

from tests.fakes.upstream import Reply
from tests.fakes.wire_formats import BedrockUpstream, WireUpstream

Vectors = Sequence[Sequence[float]]


def titan_vector(vector: Sequence[float], tokens: int) -> Reply:
    """Return Titan's answer to its one text."""
    return Reply(json.dumps({"embedding": vector, "inputTextTokenCount": tokens}).encode())


def cohere_vectors(vectors: Vectors, tokens: int) -> Reply:
    """Return Cohere's answer, with what it bills."""
    body = {
        "id": "emb_1",
        "embeddings": vectors,
        "texts": [],
        "response_type": "embeddings_floats",
        "meta": {"billed_units": {"input_tokens": tokens}},
    }
    return Reply(json.dumps(body).encode())


class InvokeUpstream(BedrockUpstream):
    """`POST /model/{id}/invoke` for models that make vectors, signed as all of Bedrock."""

    @staticmethod
    @override
    def answer(text: str) -> Reply:
        return titan_vector([0.0], 1)

    @override
    def check(self, request: web.Request, fields: dict[str, Any]) -> str:
        if not re.fullmatch(r"/model/[^/]+/invoke", request.path):
            return f"no such path: {request.path}"
        is_cohere = "cohere." in request.path
        if is_cohere and not (fields.get("texts") and fields.get("input_type")):
            return "Malformed input request: texts and input_type are required"
        if not is_cohere and not isinstance(fields.get("inputText"), str):
            return "Malformed input request: expected type: String, found: JSONArray"
        authorization = request.headers.get("Authorization", "")
        if authorization.startswith("Bearer ") or self._is_signed(request, authorization):
            return ""
        return "The request signature does not match"


class CohereUpstream(WireUpstream):
    """`POST /v1/embed`."""

    prefix = "/v1/embed"

    @staticmethod
    @override
    def answer(text: str) -> Reply:
        return cohere_vectors([[0.0]], 1)

    @override
    def check(self, request: web.Request, fields: dict[str, Any]) -> str:
        if request.path != self.prefix:
            return f"no such path: {request.path}"
        if not self.key_of(request).startswith("Bearer "):
            return "no api key supplied"
        return "" if fields.get("texts") and fields.get("input_type") else "invalid request"
