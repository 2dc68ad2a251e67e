"""The clients that people use, unchanged, against the running stack."""

import asyncio
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import openai
import pytest

from tests.e2e.cluster import Cluster
from tests.fakes.waiting import PATIENCE_S

ASKED = "Multiply 17 by 23, write the result as a Roman numeral, and reverse the letters."
ANSWER = "ICXCCC"
_NODE_HOME = os.environ.get("PODIUM_TEST_NODE", "")


def v1(podium: Cluster) -> str:
    return f"{podium.gateway_url}/v1"


def test_openai_python_speaks_responses(podium: Cluster) -> None:
    with openai.OpenAI(base_url=v1(podium), api_key=podium.api_key, max_retries=0) as api:
        whole = api.responses.create(model="podium", input=ASKED, reasoning={"summary": "auto"})
        with api.responses.stream(model="podium", input=ASKED) as stream:
            events = list(stream)
            streamed = stream.get_final_response()
    assert ANSWER in whole.output_text
    assert whole.output[0].type == "reasoning"
    assert ANSWER in streamed.output_text
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert streamed.usage is not None
    assert streamed.usage.total_tokens == streamed.usage.input_tokens + streamed.usage.output_tokens


def test_openai_python_stores_continues_and_leaves_to_the_background(podium: Cluster) -> None:
    with openai.OpenAI(base_url=v1(podium), api_key=podium.api_key, max_retries=0) as api:
        begun = api.responses.create(model="podium", input=ASKED, background=True)
        done, until = begun, time.monotonic() + PATIENCE_S
        while done.status in ("queued", "in_progress") and time.monotonic() < until:
            time.sleep(0.05)
            done = api.responses.retrieve(begun.id)
        assert ANSWER in done.output_text
        follow = api.responses.create(
            model="podium-fast", input="What is 17 * 23?", previous_response_id=begun.id
        )
        assert "391" in follow.output_text
        resumed = list(api.responses.retrieve(begun.id, stream=True, starting_after=1))
        assert resumed[-1].type == "response.completed"
        assert resumed[0].sequence_number > 1
        for response_id in (begun.id, follow.id):
            api.responses.delete(response_id)
            with pytest.raises(openai.NotFoundError):
                api.responses.retrieve(response_id)


def test_anthropic_python_speaks_messages(podium: Cluster) -> None:
    asked: Any = {"model": "podium", "max_tokens": 500, "messages": [{"role": "user", "content": ASKED}]}
    with anthropic.Anthropic(base_url=podium.gateway_url, api_key=podium.api_key, max_retries=0) as api:
        whole = api.messages.create(**asked)
        with api.messages.stream(**asked) as stream:
            text = "".join(stream.text_stream)
            streamed = stream.get_final_message()
        counted = api.messages.count_tokens(model="podium", messages=asked["messages"])
    assert ANSWER in whole.content[0].text
    assert ANSWER in text
    assert streamed.stop_reason == whole.stop_reason == "end_turn"
    assert streamed.usage.input_tokens > 0
    assert counted.input_tokens > 0


def test_langchain_speaks_chat_and_responses(podium: Cluster) -> None:
    langchain_openai = pytest.importorskip("langchain_openai")
    for use_responses in (False, True):
        model = langchain_openai.ChatOpenAI(
            model="podium",
            base_url=v1(podium),
            api_key=podium.api_key,
            max_retries=0,
            use_responses_api=use_responses,
        )
        whole = model.invoke([("system", "Be brief."), ("user", ASKED)])
        pieces = list(model.stream(ASKED))
        assert ANSWER in whole.text
        assert whole.usage_metadata["total_tokens"] > 0
        assert ANSWER in "".join(piece.text for piece in pieces)


def test_the_agents_sdk_runs_an_agent_on_both_protocols(podium: Cluster) -> None:
    agents = pytest.importorskip("agents")
    agents.set_tracing_disabled(disabled=True)

    async def run() -> list[str]:
        answers = []
        async with openai.AsyncOpenAI(base_url=v1(podium), api_key=podium.api_key, max_retries=0) as api:
            for make in (agents.OpenAIResponsesModel, agents.OpenAIChatCompletionsModel):
                agent = agents.Agent(
                    name="asker", instructions="Be brief.", model=make(model="podium", openai_client=api)
                )
                result = await agents.Runner.run(agent, ASKED)
                answers.append(result.final_output)
                streamed = agents.Runner.run_streamed(agent, ASKED)
                async for _ in streamed.stream_events():
                    pass
                answers.append(streamed.final_output)
        return answers

    answers = asyncio.run(run())
    assert len(answers) == 4
    assert all(ANSWER in answer for answer in answers)


_NODE = """
const OpenAI = require("openai").OpenAI, Anthropic = require("@anthropic-ai/sdk").Anthropic;
(async () => {
  const [url, apiKey, asked] = process.argv.slice(1);
  const api = new OpenAI({ baseURL: url + "/v1", apiKey, maxRetries: 0 });
  const messages = [{ role: "user", content: asked }];
  const whole = await api.chat.completions.create({ model: "podium", messages });
  const chunks = [];
  const stream = await api.chat.completions.create({ model: "podium", messages, stream: true });
  for await (const chunk of stream) chunks.push(chunk.choices[0]?.delta?.content ?? "");
  const response = await api.responses.create({ model: "podium", input: asked });
  const events = api.responses.stream({ model: "podium", input: asked });
  const final = await events.finalResponse();
  const claude = new Anthropic({ baseURL: url, apiKey, maxRetries: 0 });
  const message = await claude.messages.stream({ model: "podium", max_tokens: 500, messages }).finalMessage();
  const models = (await api.models.list()).data.map((model) => model.id);
  console.log(JSON.stringify({
    chat: whole.choices[0].message.content, chunks: chunks.join(""), response: response.output_text,
    events: final.output_text, message: message.content[0].text, models,
  }));
})();
"""


@pytest.mark.skipif(
    not (shutil.which("node") and (Path(_NODE_HOME) / "node_modules" / "openai").is_dir()),
    reason="`make node-test` installs the official Node clients (needs node and npm)",
)
def test_node_clients_speak_all_three(podium: Cluster) -> None:
    run = subprocess.run(
        ["node", "-e", _NODE, podium.gateway_url, podium.api_key, ASKED],
        cwd=_NODE_HOME,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2_000:]
    said = json.loads(run.stdout)
    assert {"podium", "podium-fast"} <= set(said.pop("models"))
    assert all(ANSWER in text for text in said.values()), said


def _codex_request(**changes: Any) -> dict[str, Any]:
    """Return a request with every field that the Codex command line sends."""
    return {
        "model": "podium-fast",
        "instructions": "You are a coding agent.",
        "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Rules."}]},
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "What is 17 * 23?"}],
            },
        ],
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "reasoning": {"summary": "auto"},
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "client_metadata": {"x-codex-installation-id": "0"},
        **changes,
    }


async def test_a_codex_shaped_request_read_event_by_event(podium: Cluster) -> None:
    async with (
        aiohttp.ClientSession(headers=podium.headers) as session,
        session.post(f"{v1(podium)}/responses", json=_codex_request()) as answer,
    ):
        assert answer.status == 200, await answer.text()
        lines = [line async for line in answer.content]
    events = [json.loads(line[6:]) for line in lines if line.startswith(b"data: ")]
    assert events[0]["type"] == "response.created"
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert "391" in next(item for item in done if item["type"] == "message")["content"][0]["text"]
    assert events[-1]["type"] == "response.completed"
    usage = events[-1]["response"]["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


async def test_codex_reads_the_model_list_as_a_catalogue_and_sdks_as_a_list(podium: Cluster) -> None:
    async with (
        aiohttp.ClientSession(headers=podium.headers) as session,
        session.get(f"{v1(podium)}/models?client_version=0.160.0") as answer,
    ):
        listed = await answer.json()
    windows = {model["id"]: model["context_window"] for model in listed["data"]}
    assert {model["slug"]: model["context_window"] for model in listed["models"]} == windows
    assert {"podium", "podium-fast", "podium-max"} <= windows.keys()


async def test_an_opencode_shaped_request_read_chunk_by_chunk(podium: Cluster) -> None:
    body = {
        "model": "podium-fast",
        "messages": [
            {"role": "system", "content": "You are a coding agent."},
            {"role": "user", "content": [{"type": "text", "text": "What is 17 * 23?"}]},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 32_000,
    }
    async with (
        aiohttp.ClientSession(headers=podium.headers) as session,
        session.post(f"{v1(podium)}/chat/completions", json=body) as answer,
    ):
        assert answer.status == 200, await answer.text()
        lines = [line.strip() async for line in answer.content if line.startswith(b"data: ")]
    assert lines[-1] == b"data: [DONE]"
    chunks = [json.loads(line[6:]) for line in lines[:-1]]
    reasons = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]]
    assert [reason for reason in reasons if reason] == ["stop"]
    assert chunks[-1]["usage"]["total_tokens"] > 0
