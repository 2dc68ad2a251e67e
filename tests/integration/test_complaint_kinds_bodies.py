"""Faults of large, hostile and misdirected requests that users of other gateways report, one test for each kind."""

import asyncio
import gzip
import io
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.stack import URL, Stack, asked, running_stack
from tests.fakes.waiting import PATIENCE_S

_MIB = 1024 * 1024
SEES: dict[str, dict[str, Any]] = {"w": {"modalities": ["text", "image"]}}


def with_image(url: str, text: str = "what is this?") -> list[dict[str, Any]]:
    parts = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": url}}]
    return [{"role": "user", "content": parts}]


def data_url(size_bytes: int) -> str:
    return "data:image/png;base64," + "iVBORw0K" * (size_bytes // 8)


async def post(stack: Stack, body: bytes, **headers: str) -> tuple[int, Any]:
    async with stack.session.post(URL, data=io.BytesIO(body), headers=headers) as response:
        return response.status, await response.json()


@pytest.mark.parametrize("encoding", ["", "gzip"])
async def test_thirty_mebibytes_of_images_are_taken(tls_dir: Path, tmp_path: Path, encoding: str) -> None:
    body = json.dumps(asked(messages=with_image(data_url(30 * _MIB)))).encode()
    async with running_stack(tls_dir, tmp_path, workers=SEES) as stack:
        if encoding:
            status, _ = await post(stack, gzip.compress(body, 1), **{"Content-Encoding": encoding})
        else:
            status, _ = await post(stack, body)
        assert status == 200
        assert len(stack.upstream.requests[0].body) > 30 * _MIB


async def test_a_larger_body_is_refused_with_the_limit_named(tls_dir: Path, tmp_path: Path) -> None:
    async with running_stack(tls_dir, tmp_path, max_body_bytes=_MIB) as stack:
        status, body = await post(stack, b" " * (_MIB + 1))
        assert stack.upstream.requests == []
    assert (status, body["error"]["code"]) == (413, "body_too_large")
    assert str(_MIB) in body["error"]["message"]


async def test_a_decompression_bomb_is_refused_early(tls_dir: Path, tmp_path: Path) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    begun = b"".join([packer.compress(b" " * _MIB) for _ in range(8)]) + packer.flush(zlib.Z_FULL_FLUSH)
    bomb = begun + b"\xff" * _MIB  # whoever unpacked more than fits would find that this is no gzip
    async with running_stack(tls_dir, tmp_path, max_body_bytes=_MIB) as stack:
        status, body = await post(stack, bomb[:_MIB], **{"Content-Encoding": "gzip"})
    assert (status, body["error"]["code"]) == (413, "body_too_large")


@pytest.mark.parametrize("is_over", [True, False])
async def test_a_conversation_that_fits_no_window_is_refused_before_anything_is_sent(
    tls_dir: Path, tmp_path: Path, is_over: bool
) -> None:
    workers: dict[str, dict[str, Any]] = {"w": {"limits": {"context_tokens": 1_000, "timeout_s": 30}}}
    async with running_stack(tls_dir, tmp_path, workers=workers) as stack:
        status, body = await stack.ask("x" * (4_100 if is_over else 3_000))
        count = len(stack.upstream.requests)
    if is_over:
        assert (status, body["error"]["code"], count) == (400, "context_length_exceeded", 0)
    else:
        assert (status, count) == (200, 1)


async def test_an_image_address_is_passed_on_and_never_fetched(tls_dir: Path, tmp_path: Path) -> None:
    workers: dict[str, dict[str, Any]] = {
        "w": {"modalities": ["text", "image"], "features": ["image_urls"]},
        "v": {"modalities": ["text", "image"]},
    }
    async with running_stack(tls_dir, tmp_path, workers=workers) as stack:
        address = stack.upstream.base_url.replace("/v1", "/picture.png")
        status, _ = await stack.ask(messages=with_image(address))
        assert status == 200
        refused, told = await stack.ask(model="worker/v", messages=with_image(address))
        assert [request.path for request in stack.upstream.requests] == ["/v1/chat/completions"]
        assert stack.sent[0]["messages"] == with_image(address)
    assert refused == 400
    assert "capability.image_urls" in told["error"]["message"]


@pytest.mark.parametrize("name", ["base_url", "api_base", "api_key", "extra_headers", "fallbacks"])
async def test_a_body_cannot_choose_where_it_is_sent(tls_dir: Path, tmp_path: Path, name: str) -> None:
    async with running_stack(tls_dir, tmp_path) as stack:
        changes: dict[str, Any] = {name: "http://127.0.0.1:1"}
        status, body = await stack.ask(**changes)
        assert stack.upstream.requests == []
    assert (status, body["error"]["param"]) == (400, name)


async def test_nothing_of_the_callers_headers_reaches_the_provider(tls_dir: Path, tmp_path: Path) -> None:
    canary = "canary-7f3a"
    headers = {
        "Cookie": f"session={canary}",
        "X-Forwarded-For": canary,
        "OpenAI-Organization": canary,
        "Connection": f"keep-alive, X-{canary}",
        f"X-{canary}": "1",
        "Proxy-Authorization": f"Basic {canary}",
        "TE": "trailers",
    }
    async with running_stack(tls_dir, tmp_path) as stack:
        status, _ = await post(stack, json.dumps(asked()).encode(), **headers)
        assert status == 200
        (seen,) = stack.upstream.requests
        key = stack.audit.tokens["key1"]
    assert canary not in str(seen.headers)
    assert key not in str(seen.headers)


@pytest.mark.parametrize(
    "key", ["' OR '1'='1", "../../etc/passwd", "%00", "a" * 4_000, "pk-1'; DROP TABLE keys;--", "\u00e9"]
)
async def test_odd_keys_open_nothing(tls_dir: Path, tmp_path: Path, key: str) -> None:
    async with running_stack(tls_dir, tmp_path) as stack:
        for path in (URL, "/v1/models", "/v1/models/../models"):
            async with stack.session.get(path, headers={"Authorization": f"Bearer {key}"}) as response:
                assert response.status in {401, 405}
        status, _ = await post(stack, b"{}", Authorization=f"Bearer {key}")
        assert status == 401
        assert stack.upstream.requests == []


@pytest.mark.parametrize("name", ["Authorization", "x-api-key", "Idempotency-Key"])
async def test_a_header_that_comes_twice_is_refused(tls_dir: Path, tmp_path: Path, name: str) -> None:
    async with running_stack(tls_dir, tmp_path) as stack:
        key = stack.session.headers["Authorization"]
        reader, writer = await asyncio.open_connection("127.0.0.1", stack.gateway.port)
        body = json.dumps(asked()).encode()
        head = f"POST {URL} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\nAuthorization: {key}\r\n"
        twice = f"{name}: other\r\n" * (1 if name == "Authorization" else 2)
        writer.write(f"{head}{twice}\r\n".encode() + body)
        answered = await reader.readuntil(b"}}")
        writer.transport.abort()
        assert answered.startswith(b"HTTP/1.1 400")
        assert b'"code":"header_repeated"' in answered
        assert stack.upstream.requests == []


@pytest.mark.parametrize("host", ["x:4000/#@y", "127.0.0.1@evil", "evil.example", ""])
async def test_a_host_header_opens_nothing(tls_dir: Path, tmp_path: Path, host: str) -> None:
    headers = {"Host": host, "Authorization": ""}
    async with (
        running_stack(tls_dir, tmp_path) as stack,
        stack.session.get("/v1/models", headers=headers) as response,
    ):
        assert response.status in {400, 401}


@pytest.mark.parametrize(
    "smuggled",
    [
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"X: a\r\n b\r\nContent-Length : 5\r\n",
        b"X-Bad: \x00\r\nContent-Length: 5\r\n",
    ],
)
async def test_requests_that_two_servers_would_read_differently_are_refused(
    tls_dir: Path, tmp_path: Path, smuggled: bytes
) -> None:
    async with running_stack(tls_dir, tmp_path) as stack:
        reader, writer = await asyncio.open_connection("127.0.0.1", stack.gateway.port)
        key = stack.audit.tokens["key1"].encode()
        head = b"POST %b HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %b\r\n%b\r\nhello"
        writer.write(head % (URL.encode(), key, smuggled))
        told = await asyncio.wait_for(reader.read(), PATIENCE_S)
        writer.close()
        assert stack.upstream.requests == []
    assert told.split()[1] == b"400"
    assert told.count(b"Content-Type:") == 1


async def test_images_pass_through_a_plan_to_the_workers_that_see(tls_dir: Path, tmp_path: Path) -> None:
    workers: dict[str, dict[str, Any]] = {"alpha": SEES["w"], "beta": {}}
    async with running_stack(tls_dir, tmp_path, workers=workers) as stack:
        status, _ = await stack.ask(model="podium", messages=with_image(data_url(800)))
        assert status == 200
        by_model = {sent["model"]: sent["messages"][-1]["content"] for sent in stack.sent}
        (image,) = [part for part in by_model["alpha-model"] if part["type"] == "image_url"]
        assert image["image_url"]["url"] == data_url(800)
        assert "what is this?\n[image omitted: this worker cannot see]" in by_model["beta-model"]
        refused, body = await stack.ask(model="worker/beta", messages=with_image(data_url(800)))
        assert len(stack.sent) == 2
    assert refused == 400
    assert "capability.image" in body["error"]["message"]
