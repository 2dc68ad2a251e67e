"""Providers on loopback that speak Anthropic's, Gemini's, Bedrock's and Azure's own formats.

Each refuses a request that the real one would refuse (a missing header, a wrong role, a bad signature) and
keeps a log of all it was sent, as the upstream that it stands on does. Shapes follow the providers' API
references: Anthropic Messages (2023-06-01), Gemini generateContent (v1beta), Amazon Bedrock Converse and
ConverseStream (application/vnd.amazon.eventstream), Azure OpenAI (deployments and v1).
"""

import base64
import binascii
import hashlib
import hmac
import json
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Self

from aiohttp import web
from typing_extensions import override

from tests.fakes.upstream import DONE, Reply, SeenRequest, Upstream, answer, event

CACHED_USAGE = {
    "input_tokens": 10,
    "output_tokens": 5,
    "cache_read_input_tokens": 4,
    "cache_creation_input_tokens": 3,
}


class WireUpstream(Upstream):
    """An upstream that first checks what it was sent; `problems` must stay empty."""

    prefix = ""

    def __init__(self) -> None:
        super().__init__(self.answer("hello"))
        self.problems: list[str] = []

    @override
    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.base_url = self.base_url.removesuffix("/v1") + self.prefix
        return self

    @staticmethod
    def answer(text: str) -> Reply:
        """Return a plain answer of this provider."""
        raise NotImplementedError

    def check(self, request: web.Request, fields: dict[str, Any]) -> str:
        """Return what is wrong with a request; empty when nothing is."""
        raise NotImplementedError

    @override
    async def _answer(self, request: web.Request, body: bytes, reply: Reply) -> web.StreamResponse:
        if problem := self.check(request, json.loads(body)):
            self.problems.append(problem)
            return web.json_response({"message": problem}, status=400)
        return await super()._answer(request, body, reply)


# Anthropic


def sse(name: str, **fields: Any) -> bytes:
    """Return one of Anthropic's events."""
    return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode()


def anthropic_answer(
    *blocks: Mapping[str, Any],
    stop_reason: str = "end_turn",
    usage: Mapping[str, int] = CACHED_USAGE,
    pieces: int = 2,
) -> Reply:
    """Return a message of these content blocks: whole, and streamed with each text in so many pieces."""
    head = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-served",
        "stop_sequence": None,
    }
    body = {**head, "content": list(blocks), "stop_reason": stop_reason, "usage": dict(usage)}
    start: dict[str, Any] = {
        **head,
        "content": [],
        "stop_reason": None,
        "usage": {**usage, "output_tokens": 1},
    }
    events = [sse("message_start", message=start), sse("ping")]
    for index, block in enumerate(blocks):
        events += _block_events(index, block, pieces)
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    events.append(sse("message_delta", delta=delta, usage={"output_tokens": usage["output_tokens"]}))
    events.append(sse("message_stop"))
    return Reply(json.dumps(body).encode(), tuple(events))


def _block_events(index: int, block: Mapping[str, Any], pieces: int) -> list[bytes]:
    kind = block["type"]
    opening: dict[str, Any]
    if kind == "text":
        opening, deltas = (
            {"text": ""},
            [("text_delta", "text", piece) for piece in _cut(block["text"], pieces)],
        )
    elif kind == "tool_use":
        opening = {"id": block["id"], "name": block["name"], "input": {}}
        arguments = _cut(json.dumps(block["input"]), pieces)
        deltas = [("input_json_delta", "partial_json", piece) for piece in arguments]
    elif kind == "thinking":
        opening = {"thinking": "", "signature": ""}
        deltas = [("thinking_delta", "thinking", piece) for piece in _cut(block["thinking"], pieces)]
        deltas.append(("signature_delta", "signature", block["signature"]))
    else:
        opening, deltas = {"data": block["data"]}, []
    return [
        sse("content_block_start", index=index, content_block={"type": kind, **opening}),
        *(
            sse("content_block_delta", index=index, delta={"type": name, field: piece})
            for name, field, piece in deltas
        ),
        sse("content_block_stop", index=index),
    ]


class AnthropicUpstream(WireUpstream):
    """`POST /v1/messages`."""

    @staticmethod
    @override
    def answer(text: str) -> Reply:
        return anthropic_answer({"type": "text", "text": text})

    @override
    def key_of(self, request: web.Request) -> str:
        return request.headers.get("x-api-key", "")

    @override
    def is_stream(self, path: str, body: bytes) -> bool:
        return json.loads(body).get("stream") is True

    @override
    def check(self, request: web.Request, fields: dict[str, Any]) -> str:
        if request.path != "/v1/messages":
            return f"no such path: {request.path}"
        if "anthropic-version" not in request.headers or not self.key_of(request):
            return "missing header"
        if type(fields.get("max_tokens")) is not int:
            return "max_tokens: field required"
        if any(message["role"] not in ("user", "assistant") for message in fields["messages"]):
            return "messages: unexpected role"
        unknown = fields.keys() - {
            "model", "messages", "max_tokens", "system", "stream", "temperature", "top_p", "stop_sequences",
            "tools", "tool_choice", "thinking", "metadata", "output_config", "output_format",
        }  # fmt: skip
        return f"{sorted(unknown)}: extra inputs are not permitted" if unknown else ""


# Gemini


GEMINI_USAGE = {
    "promptTokenCount": 12,
    "candidatesTokenCount": 5,
    "thoughtsTokenCount": 2,
    "cachedContentTokenCount": 4,
    "totalTokenCount": 19,
}


def gemini_answer(
    *parts: Mapping[str, Any], finish: str = "STOP", usage: Mapping[str, int] | None = None
) -> Reply:
    """Return a candidate of these parts: whole, and streamed with one event a part."""

    def body(parts: Sequence[Mapping[str, Any]], finish: str | None) -> dict[str, Any]:
        candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
        return {
            "candidates": [{**candidate, "finishReason": finish} if finish else candidate],
            "usageMetadata": dict(usage or GEMINI_USAGE),
            "modelVersion": "gemini-served",
            "responseId": "resp_1",
        }

    events = [body([part], None) for part in parts[:-1]] + [body(parts[-1:], finish)]
    data = tuple(b"data: " + json.dumps(event).encode() + b"\r\n\r\n" for event in events)
    return Reply(json.dumps(body(parts, finish)).encode(), data)


class GeminiUpstream(WireUpstream):
    """`POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent?alt=sse`."""

    prefix = "/v1beta"

    @staticmethod
    @override
    def answer(text: str) -> Reply:
        return gemini_answer({"text": text})

    @override
    def key_of(self, request: web.Request) -> str:
        return request.headers.get("x-goog-api-key", "")

    @override
    def is_stream(self, path: str, body: bytes) -> bool:
        return path.endswith(":streamGenerateContent")

    @override
    def check(self, request: web.Request, fields: dict[str, Any]) -> str:
        if not re.fullmatch(
            r"/v1beta/models/[^/]+:(generateContent|streamGenerateContent|batchEmbedContents)", request.path
        ):
            return f"no such path: {request.path}"
        if "key" in request.query or not self.key_of(request):
            return "the key belongs in its header"
        if request.path.endswith("Contents"):
            return "" if all(item["content"]["parts"] for item in fields["requests"]) else "requests: empty"
        if any(content.get("role") not in ("user", "model") for content in fields["contents"]):
            return "contents: unexpected role"
        return ""


# Bedrock


def frame(event_type: str, payload: Mapping[str, Any], message_type: str = "event") -> bytes:
    """Return one message of application/vnd.amazon.eventstream."""
    kind = ":event-type" if message_type == "event" else ":exception-type"
    names = {kind: event_type, ":content-type": "application/json", ":message-type": message_type}
    headers = b"".join(
        struct.pack("!B", len(name))
        + name.encode()
        + b"\x07"
        + struct.pack("!H", len(value))
        + value.encode()
        for name, value in names.items()
    )
    data = json.dumps(payload).encode()
    prelude = struct.pack("!II", len(headers) + len(data) + 16, len(headers))
    message = prelude + struct.pack("!I", binascii.crc32(prelude)) + headers + data
    return message + struct.pack("!I", binascii.crc32(message))


BEDROCK_USAGE = {
    "inputTokens": 10,
    "outputTokens": 5,
    "totalTokens": 22,
    "cacheReadInputTokens": 4,
    "cacheWriteInputTokens": 3,
}


def bedrock_answer(*blocks: Mapping[str, Any], stop_reason: str = "end_turn") -> Reply:
    """Return a message of these content blocks: whole, and as event stream frames."""
    body = {
        "output": {"message": {"role": "assistant", "content": list(blocks)}},
        "stopReason": stop_reason,
        "usage": BEDROCK_USAGE,
        "metrics": {"latencyMs": 1},
    }
    frames = [frame("messageStart", {"role": "assistant"})]
    for index, block in enumerate(blocks):
        if "toolUse" in block:
            use = block["toolUse"]
            start = {"toolUse": {"toolUseId": use["toolUseId"], "name": use["name"]}}
            frames.append(frame("contentBlockStart", {"start": start, "contentBlockIndex": index}))
            pieces: list[dict[str, Any]] = [
                {"toolUse": {"input": piece}} for piece in _cut(json.dumps(use["input"]), 2)
            ]
        elif "reasoningContent" in block:
            thought = block["reasoningContent"]["reasoningText"]
            pieces = [{"reasoningContent": {"text": piece}} for piece in _cut(thought["text"], 2)]
            pieces.append({"reasoningContent": {"signature": thought["signature"]}})
        else:
            pieces = [{"text": piece} for piece in _cut(block["text"], 2)]
        frames += [
            frame("contentBlockDelta", {"delta": piece, "contentBlockIndex": index}) for piece in pieces
        ]
        frames.append(frame("contentBlockStop", {"contentBlockIndex": index}))
    frames.append(frame("messageStop", {"stopReason": stop_reason}))
    frames.append(frame("metadata", {"usage": BEDROCK_USAGE, "metrics": {"latencyMs": 1}}))
    return Reply(json.dumps(body).encode(), tuple(frames))


class BedrockUpstream(WireUpstream):
    """`POST /model/{id}/converse` and `/converse-stream`, with AWS Signature Version 4 or a bearer key."""

    secret = "aws-secret-canary-77aa"
    region = "eu-central-1"

    @staticmethod
    @override
    def answer(text: str) -> Reply:
        return bedrock_answer({"text": text})

    @override
    def is_stream(self, path: str, body: bytes) -> bool:
        return path.endswith("/converse-stream")

    @override
    def check(self, request: web.Request, fields: dict[str, Any]) -> str:
        if not re.fullmatch(r"/model/[^/]+/converse(-stream)?", request.path):
            return f"no such path: {request.path}"
        if any(message["role"] not in ("user", "assistant") for message in fields["messages"]):
            return "messages: unexpected role"
        authorization = request.headers.get("Authorization", "")
        if authorization.startswith("Bearer "):
            return ""
        return "" if self._is_signed(request, authorization) else "The request signature does not match"

    def _is_signed(self, request: web.Request, authorization: str) -> bool:
        match = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=(\w+)/(\d{8})/([a-z0-9-]+)/bedrock/aws4_request, "
            r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})",
            authorization,
        )
        if match is None:
            return False
        _, day, region, names, signature = match.groups()
        if region != self.region:
            return False
        headers = "".join(f"{name}:{request.headers[name].strip()}\n" for name in names.split(";"))
        digest = hashlib.sha256(self.requests[-1].body).hexdigest()
        # The path that is signed is the sent one, encoded once more (all services but S3).
        path = request.raw_path.replace("%", "%25")
        canonical = f"POST\n{path}\n\n{headers}\n{names}\n{digest}"
        scope = f"{day}/{region}/bedrock/aws4_request"
        to_sign = "\n".join(
            (
                "AWS4-HMAC-SHA256",
                request.headers["x-amz-date"],
                scope,
                hashlib.sha256(canonical.encode()).hexdigest(),
            )
        )
        key = b"AWS4" + self.secret.encode()
        for word in (day, region, "bedrock", "aws4_request", to_sign):
            key = hmac.new(key, word.encode(), hashlib.sha256).digest()
        return hmac.compare_digest(key.hex(), signature)


# Azure


class AzureUpstream(WireUpstream):
    """`POST /openai/deployments/{name}/chat/completions?api-version=` and the version-free `/openai/v1`."""

    @staticmethod
    @override
    def answer(text: str) -> Reply:
        reply = answer(*_cut(text, 2))
        filters = event({"choices": [], "prompt_filter_results": [{"prompt_index": 0}]})
        return reply.but(events=(filters, *reply.events[:-1], DONE))

    @override
    def key_of(self, request: web.Request) -> str:
        return request.headers.get("api-key", "")

    @override
    def check(self, request: web.Request, fields: dict[str, Any]) -> str:
        if "Authorization" in request.headers or not self.key_of(request):
            return "Access denied due to missing subscription key"
        if re.fullmatch(r"/openai/deployments/[^/]+/chat/completions", request.path):
            return "" if request.query.get("api-version") else "Missing required query parameter: api-version"
        if request.path == "/openai/v1/chat/completions":
            return "" if fields.get("model") else "model is required"
        return f"no such path: {request.path}"


def _cut(text: str, pieces: int) -> list[str]:
    size = max(1, -(-len(text) // pieces))
    return [text[start : start + size] for start in range(0, len(text), size)]


def joined(seen: Sequence[SeenRequest]) -> list[str]:
    """Return the attempt ids of what an upstream was sent, in order."""
    return [request.attempt_id for request in seen]


def png() -> str:
    """Return a data URL of a very small image."""
    one_pixel = (
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
        b"\x00\x00\x00\rIDATx\x9cc\xf8\xff\xff?\x00\x05\xfe\x02\xfe\xdc\xccY\xe7\x00\x00\x00\x00IEND\xaeB`\x82"
    )
    return "data:image/png;base64," + base64.b64encode(one_pixel).decode()
