"""Vertex AI on loopback: Gemini's format at an address and with credentials of its own.

Refuses what the real one would, by the API reference of `projects.locations.publishers.models` (v1).
"""

import re
from typing import Any

from aiohttp import web
from typing_extensions import override

from tests.fakes.upstream import Reply
from tests.fakes.wire_formats import WireUpstream, gemini_answer


class VertexUpstream(WireUpstream):
    """Gemini's two calls under `/v1/projects/{project}/locations/{location}/publishers/google`."""

    place = "/v1/projects/our-project/locations/europe-west4/publishers/google"

    @staticmethod
    @override
    def answer(text: str) -> Reply:
        return gemini_answer({"text": text})

    @override
    def is_stream(self, path: str, body: bytes) -> bool:
        return path.endswith(":streamGenerateContent")

    @override
    def check(self, request: web.Request, fields: dict[str, Any]) -> str:
        if not re.fullmatch(
            self.place + r"/models/[^/]+:(generateContent|streamGenerateContent)", request.path
        ):
            return f"no such path: {request.path}"
        if not self.key_of(request).startswith("Bearer ") or "x-goog-api-key" in request.headers:
            return "Request is missing required authentication credential. Expected OAuth 2 access token"
        if self.is_stream(request.path, b"") and request.query.get("alt") != "sse":
            return "a JSON array is nobody's stream here"
        if any(content.get("role") not in ("user", "model") for content in fields["contents"]):
            return "Please use a valid role: user, model."
        unknown = fields.keys() - {
            "contents", "systemInstruction", "system_instruction", "tools", "toolConfig", "safetySettings",
            "generationConfig", "cachedContent", "labels",
        }  # fmt: skip
        return f"Invalid JSON payload received. Unknown name {sorted(unknown)}" if unknown else ""
