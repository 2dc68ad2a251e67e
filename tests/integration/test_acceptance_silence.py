"""A worker that says nothing for forty seconds, read on every API as real clients read: with a limit on silence."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.stack import Stack, running_stack
from tests.fakes.upstream import answer

_SILENCE_S = 40.0
_HEARTBEAT_S = 2.0
_IDLE_LIMIT_S = 10.0
_QUESTION = [{"role": "user", "content": "6 times 7?"}]

_ASKED: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"model": "worker/w", "messages": _QUESTION, "stream": True},
    "/v1/responses": {"model": "worker/w", "input": "6 times 7?", "stream": True},
    "/v1/messages": {"model": "worker/w", "messages": _QUESTION, "max_tokens": 50, "stream": True},
}


async def read(stack: Stack, path: str) -> tuple[list[tuple[float, str]], list[str]]:
    """Read a stream; return each event, with its moment, and the comments between them.

    A reader of events gives up when none of them came for a while; Chat's readers count any byte.
    """
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    events: list[tuple[float, str]] = []
    comments: list[str] = []
    counts_bytes = path == "/v1/chat/completions"
    async with stack.session.post(path, json=_ASKED[path]) as response:
        assert response.status == 200
        limit = asyncio.timeout(_IDLE_LIMIT_S)
        async with limit:
            async for line in response.content:
                text = line.decode().strip()
                if text.startswith(":"):
                    comments.append(text)
                elif text.startswith("data: "):
                    events.append((loop.time() - began_s, text.removeprefix("data: ")))
                if counts_bytes or text.startswith("data: "):
                    limit.reschedule(loop.time() + _IDLE_LIMIT_S)
    return events, comments


@pytest.mark.slow
async def test_forty_seconds_of_silence_cut_no_reader_on_any_api(tls_dir: Path, tmp_path: Path) -> None:
    slow: dict[str, Any] = {"w": {"limits": {}}}
    async with running_stack(tls_dir, tmp_path, workers=slow, keep_alive_s=_HEARTBEAT_S) as stack:
        stack.upstream.default = answer("forty-two").but(delay_s=_SILENCE_S)
        chat, responses, messages = await asyncio.gather(*[read(stack, path) for path in _ASKED])
    least = _SILENCE_S / _HEARTBEAT_S / 2

    events, comments = chat
    assert len(comments) >= least
    assert events[-1][1] == "[DONE]"
    assert "forty-two" in "".join(text for _, text in events)

    told = [(when, json.loads(text)) for when, text in responses[0]]
    numbers = [event["sequence_number"] for _, event in told]
    assert numbers == sorted(set(numbers)), "they rise, and none comes twice"
    assert sum(event["type"] == "response.in_progress" for _, event in told) >= least
    assert told[0][0] < _IDLE_LIMIT_S, "the first bytes do not wait for the worker"
    assert told[-1][1]["type"] == "response.completed"

    kinds = [json.loads(text)["type"] for _, text in messages[0]]
    assert kinds.count("ping") >= least
    assert kinds[-1] == "message_stop"
