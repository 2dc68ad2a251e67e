"""One question, four services, one audited answer: what a developer and an auditor see."""

import asyncio
import json
from typing import Any

import aiohttp
import openai
import pytest

from podium_verifier.faults import Fault
from podium_verifier.verify import Verified, verify_export
from tests.e2e.cluster import Cluster

THREE_SPECIALISTS = "Multiply 17 by 23, write the result as a Roman numeral, and reverse the letters."
ANSWER = "ICXCCC"


def client(podium: Cluster) -> Any:
    return openai.OpenAI(base_url=f"{podium.gateway_url}/v1", api_key=podium.api_key, max_retries=0)


async def export_of(podium: Cluster, run_id: str) -> bytes:
    url = f"{podium.audit_url}/v1/runs/{run_id}/export"
    async with aiohttp.ClientSession(headers=podium.headers) as session, session.get(url) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.read()


def test_three_specialists_answer_through_the_official_client(podium: Cluster) -> None:
    with client(podium) as api:
        completion = api.chat.completions.create(
            model="podium", messages=[{"role": "user", "content": THREE_SPECIALISTS}]
        )
    told = completion.model_extra["podium"]
    assert ANSWER in completion.choices[0].message.content
    assert completion.choices[0].finish_reason == "stop"
    assert told["plan"]["source"] == "embedded"
    assert len({step["worker"] for step in told["plan"]["steps"]}) == 3
    assert told["receipt"]["run_id"] == told["run_id"]
    assert told["receipt"]["leaf_indices"]
    assert (
        completion.usage.total_tokens == completion.usage.prompt_tokens + completion.usage.completion_tokens
    )


def test_the_stream_has_the_same_answer_and_ends_with_the_receipt(podium: Cluster) -> None:
    with client(podium) as api:
        chunks = list(
            api.chat.completions.create(
                model="podium",
                messages=[{"role": "user", "content": THREE_SPECIALISTS}],
                stream=True,
                stream_options={"include_usage": True},
            )
        )
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert ANSWER in text
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [c.choices[0].finish_reason for c in chunks if c.choices and c.choices[0].finish_reason] == [
        "stop"
    ]
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    told = next(c.model_extra["podium"] for c in chunks if c.model_extra and "podium" in c.model_extra)
    assert told["receipt"]["checkpoint"]


def test_models_list_and_a_named_worker(podium: Cluster) -> None:
    with client(podium) as api:
        ids = [model.id for model in api.models.list()]
        assert "podium" in ids
        assert "worker/demo-numerals" in ids
        completion = api.chat.completions.create(
            model="worker/demo-numerals",
            messages=[{"role": "user", "content": "Write 2026 in Roman numerals."}],
        )
    assert "MMXXVI" in completion.choices[0].message.content
    assert completion.model_extra["podium"]["plan"]["source"] == "named"


@pytest.mark.parametrize(
    ("changes", "error", "code"),
    [
        ({"model": "gpt-99"}, openai.NotFoundError, "model_not_found"),
        ({"model": "worker/nobody"}, openai.NotFoundError, "model_not_found"),
        ({"extra_body": {"podium": {"budget": 1}}}, openai.BadRequestError, None),
        ({"extra_body": {"podium": {"workers": {"only": ["nobody"]}}}}, openai.BadRequestError, None),
        ({"extra_body": {"podium": {"max_usd": 0}}}, openai.PermissionDeniedError, None),
    ],
)
def test_bad_requests_say_what_to_change(
    podium: Cluster, changes: dict[str, object], error: type[openai.APIStatusError], code: str | None
) -> None:
    asked: dict[str, Any] = {
        "model": "podium",
        "messages": [{"role": "user", "content": "Add 1 and 1."}],
        **changes,
    }
    with client(podium) as api, pytest.raises(error) as caught:
        api.chat.completions.create(**asked)
    body: Any = caught.value.body
    assert body["message"]
    if code is not None:
        assert body["code"] == code


def test_a_wrong_key_is_refused(podium: Cluster) -> None:
    wrong = podium.api_key[:-4] + "AAAA"
    api = openai.OpenAI(base_url=f"{podium.gateway_url}/v1", api_key=wrong, max_retries=0)
    with api, pytest.raises(openai.AuthenticationError):
        api.models.list()


async def test_an_exported_run_verifies_offline(podium: Cluster) -> None:
    run_id = await asyncio.to_thread(ask, podium)
    export = await export_of(podium, run_id)
    verified = verify_export(export)
    assert isinstance(verified, Verified), verified
    types = [
        json.loads(json.loads(line)["leaf"])["type"]
        for line in export.splitlines()
        if b'"line":"leaf"' in line
    ]
    assert types[:2] == ["opened", "plan"]
    assert types.count("attempt_begun") == types.count("attempt_ended") == 3
    assert "sealed" in types


@pytest.mark.slow
async def test_any_single_flipped_byte_of_a_real_export_is_found_and_placed(podium: Cluster) -> None:
    export = await export_of(podium, await asyncio.to_thread(ask, podium))
    for position in range(len(export)):
        flipped = bytearray(export)
        flipped[position] ^= 1 << position % 8
        fault = verify_export(bytes(flipped))
        assert isinstance(fault, Fault), f"byte {position} can be flipped unnoticed"
        assert fault.line is not None, f"byte {position} is found but not placed: {fault}"


def ask(podium: Cluster, question: str = THREE_SPECIALISTS) -> str:
    with client(podium) as api:
        completion = api.chat.completions.create(
            model="podium", messages=[{"role": "user", "content": question}]
        )
        return str(completion.model_extra["podium"]["run_id"])


async def test_every_provider_request_joins_one_committed_attempt(podium: Cluster) -> None:
    run_id = await asyncio.to_thread(ask, podium)
    export = await export_of(podium, run_id)
    leaves = [
        json.loads(json.loads(line)["leaf"]) for line in export.splitlines() if b'"line":"leaf"' in line
    ]
    begun = {leaf["facts"]["attempt_id"]: leaf for leaf in leaves if leaf["type"] == "attempt_begun"}
    arrived = {r["attempt_id"]: r for r in podium.provider_requests() if r["attempt_id"] in begun}
    assert arrived.keys() == begun.keys()
    for attempt_id, leaf in begun.items():
        assert leaf["time_us"] * 1_000 <= arrived[attempt_id]["time_ns"]


async def test_independent_steps_overlap_in_time(podium: Cluster) -> None:
    question = (
        "What is 12*12, and how many days are there from 2026-01-01 to 2026-03-01? Then add both results."
    )
    async with aiohttp.ClientSession() as session:
        for model in ("demo-arithmetic", "demo-dates"):
            fault = {"model": model, "kind": "delay", "seconds": 1.0, "count": 1}
            async with session.post(f"{podium.demo_url}/faults", json=fault) as answer:
                assert answer.status < 300, await answer.text()
    with client(podium) as api:
        completion = await asyncio.to_thread(
            api.chat.completions.create, model="podium", messages=[{"role": "user", "content": question}]
        )
    assert "203" in completion.choices[0].message.content
    run_id = completion.model_extra["podium"]["run_id"]
    export = await export_of(podium, run_id)
    leaves = [
        json.loads(json.loads(line)["leaf"]) for line in export.splitlines() if b'"line":"leaf"' in line
    ]
    begun = {
        leaf["facts"]["step_index"]: leaf["time_us"] for leaf in leaves if leaf["type"] == "attempt_begun"
    }
    ended = {
        leaf["facts"]["attempt_id"]: leaf["time_us"] for leaf in leaves if leaf["type"] == "attempt_ended"
    }
    ends = {
        leaf["facts"]["step_index"]: ended[leaf["facts"]["attempt_id"]]
        for leaf in leaves
        if leaf["type"] == "attempt_begun"
    }
    assert max(begun[0], begun[1]) < min(ends[0], ends[1])
    assert begun[2] >= max(ends[0], ends[1])
