"""Sound in a question reaches a worker that hears, as it was sent; answers are text, and asking for sound says so."""

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.planner import plan_of
from tests.fakes.stack import Stack, running_stack
from tests.fakes.upstream import answer

SOUND = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
PARTS = [{"type": "text", "text": "What is said?"}, SOUND]
HEARD: Any = [{"role": "user", "content": PARTS}]
WORKERS: dict[str, dict[str, Any]] = {"hears": {"modalities": ["text", "audio"]}, "deaf": {}}


def heard(stack: Stack) -> list[object]:
    """Return what each request to the provider ended with."""
    return [sent["messages"][-1]["content"] for sent in stack.sent]


async def test_a_plan_goes_to_workers_that_hear_and_to_no_other(tls_dir: Path, tmp_path: Path) -> None:
    async with running_stack(tls_dir, tmp_path, workers=WORKERS) as stack:
        stack.upstream.default = answer("Hello.")
        stack.conductor.plan = plan_of(("hears", "", ()))
        for model in ("podium", "worker/hears"):
            status, body = await stack.ask(model=model, messages=HEARD)
            assert (status, body["choices"][0]["message"]["content"]) == (200, "Hello.")
        assert heard(stack) == [PARTS, PARTS]
        assert {sent["model"] for sent in stack.sent} == {"hears-model"}


async def test_a_worker_that_does_not_hear_is_refused_by_its_rule(tls_dir: Path, tmp_path: Path) -> None:
    async with running_stack(tls_dir, tmp_path, workers=WORKERS) as stack:
        status, body = await stack.ask(model="worker/deaf", messages=HEARD)
        assert (status, stack.sent) == (400, [])
        assert "capability.audio" in body["error"]["message"]


async def test_responses_take_sound_too(tls_dir: Path, tmp_path: Path) -> None:
    async with running_stack(tls_dir, tmp_path, workers=WORKERS) as stack:
        item = {"role": "user", "content": [{"type": "input_text", "text": "What is said?"}, SOUND]}
        async with stack.session.post(
            "/v1/responses", json={"model": "worker/hears", "input": [item]}
        ) as response:
            assert response.status == 200, await response.text()
        assert heard(stack) == [PARTS]


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"modalities": ["audio"]}, "modalities"),
        ({"audio": {"voice": "alloy", "format": "wav"}}, "audio"),
    ],
)
async def test_an_answer_in_sound_is_refused_by_name(
    asked: dict[str, Any], param: str, tls_dir: Path, tmp_path: Path
) -> None:
    async with running_stack(tls_dir, tmp_path, workers=WORKERS) as stack:
        status, body = await stack.ask(model="worker/hears", messages=HEARD, **asked)
        assert (status, body["error"]["param"], stack.sent) == (400, param, [])
        assert "answer in text" in body["error"]["message"]
