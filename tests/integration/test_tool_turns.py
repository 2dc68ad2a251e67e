"""Tool turns over the gateway's edge: signed ids, the way back to the worker that asked, and every refusal."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from podium_core.config.tenants import Tenant
from podium_core.domain.conversation import ItemKey, ItemKind
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.pool import Pool
from podium_core.domain.run import AttemptKind
from tests.fakes.conversations import FakeConversations
from tests.fakes.gateway import COLLEAGUE_TOKEN, EdgeServer, running_edge
from tests.fakes.ids import FakeClock
from tests.fakes.planner import FakePlanner, plan_of
from tests.fakes.pools import pool, worker
from tests.fakes.recorder import FakeRecorder
from tests.fakes.worker import FakeWorkers, Reply

URL = "/v1/chat/completions"
TOOLS = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in ("weather", "clock")]
USER = {"role": "user", "content": "Weather and time in Oslo?"}
ASKED: dict[str, Any] = {"model": "podium", "messages": [USER], "tools": TOOLS}
UPSTREAM_CALLS = (
    {
        "index": 0,
        "id": "call_upstream_one_with_a_very_long_id_of_its_own",
        "type": "function",
        "function": {"name": "weather", "arguments": '{"city":"Oslo"}'},
    },
    {"index": 1, "id": "two", "type": "function", "function": {"name": "clock", "arguments": "{}"}},
)
PAUSE = Reply(text="", tool_calls=UPSTREAM_CALLS, finish_reason="tool_calls")
DONE = Reply("Rain at noon.")


def tool_pool() -> Pool:
    return pool(worker("alpha", features=frozenset({"tools"})), worker("beta", features=frozenset({"tools"})))


class Scene:
    """Two steps: alpha looks first, beta answers and asks for tools; then beta is done."""

    def __init__(self, *replies: Reply) -> None:
        self.workers = FakeWorkers({"alpha": Reply("a hint"), "beta": replies or (PAUSE, DONE)})
        self.kept = FakeConversations(clock=FakeClock())
        self.recorder = FakeRecorder()
        self.planner = FakePlanner(plan_of(("alpha", "look", ()), ("beta", "answer", (0,))))

    def edge(self, **settings: Any) -> Any:
        """Return a gateway; several share what is kept."""
        return running_edge(
            workers=self.workers,
            planner=self.planner,
            recorder=self.recorder,
            conversations=self.kept,
            workers_of=tool_pool(),
            **settings,
        )


async def post(edge: EdgeServer, body: dict[str, Any], **headers: str) -> tuple[int, Any]:
    async with (
        aiohttp.ClientSession(headers={**edge.auth, **headers}) as session,
        session.post(edge.url + URL, json=body) as response,
    ):
        return response.status, await response.json()


async def paused(edge: EdgeServer) -> dict[str, Any]:
    status, answer = await post(edge, ASKED)
    assert status == 200, answer
    message: dict[str, Any] = answer["choices"][0]["message"]
    return message


def results(message: dict[str, Any], **changes: str) -> dict[str, Any]:
    tools = [
        {"role": "tool", "tool_call_id": call["id"], "content": f"result {place}"}
        for place, call in enumerate(message["tool_calls"])
    ]
    tools[0] |= changes
    return {**ASKED, "messages": [USER, message, *tools]}


async def test_a_result_returns_to_the_worker_that_asked_with_all_that_it_was_sent() -> None:
    scene = Scene()
    async with scene.edge() as first, scene.edge() as second:
        message = await paused(first)
        ids = [call["id"] for call in message["tool_calls"]]
        assert all(len(call_id) <= 40 and call_id.startswith("pod_") for call_id in ids)
        assert len(set(ids)) == 2
        status, answer = await post(second, results(message))  # another replica
    assert status == 200
    assert answer["choices"][0]["message"]["content"] == "Rain at noon."
    assert [step["worker"] for step in answer["podium"]["steps"]] == ["beta"]
    look, asked, continued = scene.workers.calls
    assert continued.kind is AttemptKind.CONTINUATION
    assert continued.worker_id == "beta"
    sent = [dict(message.fields) for message in (*continued.prompt.history, continued.prompt.question)]
    # What beta was sent, hint included, then what it said under its provider's own ids, then the results.
    assert "a hint" in str(sent[0]["content"])
    assert str(sent[0]["content"]) == "".join(piece.text for piece in asked.prompt.pieces)
    assert [call["id"] for call in sent[1]["tool_calls"]] == [call["id"] for call in UPSTREAM_CALLS]  # type: ignore[attr-defined]
    assert [(one["tool_call_id"], one["content"]) for one in sent[2:]] == [
        (UPSTREAM_CALLS[0]["id"], "result 0"),
        (UPSTREAM_CALLS[1]["id"], "result 1"),
    ]
    assert "tools" in continued.parameters
    assert "tools" not in look.parameters
    assert len(scene.planner.queries) == 1  # the Conductor hears nothing of the trajectory
    first_run, second_run = [run.opened for run in scene.recorder.runs.values()]
    assert second_run.continues_run_id == first_run.run_id


async def test_a_streamed_pause_carries_the_same_kind_of_ids_and_can_be_continued() -> None:
    pieces = (
        {"index": 0, "id": "u1", "type": "function", "function": {"name": "weather", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"city":'}},
        {"index": 1, "id": "u2", "type": "function", "function": {"name": "clock", "arguments": "{}"}},
        {"index": 0, "function": {"arguments": '"Oslo"}'}},
    )
    scene = Scene(Reply(text="", tool_calls=pieces, finish_reason="tool_calls"), DONE)
    async with scene.edge() as edge:
        async with (
            aiohttp.ClientSession(headers=edge.auth) as session,
            session.post(edge.url + URL, json={**ASKED, "stream": True}) as response,
        ):
            text = await response.text()
        chunks = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
        calls: dict[int, dict[str, Any]] = {}
        for chunk in chunks:
            for delta in chunk["choices"][0]["delta"].get("tool_calls", []) if chunk["choices"] else []:
                call = calls.setdefault(delta["index"], {"id": "", "arguments": ""})
                call["id"] = delta.get("id") or call["id"]
                call["arguments"] += delta["function"].get("arguments", "")
        assert [call["arguments"] for call in calls.values()] == ['{"city":"Oslo"}', "{}"]
        said = {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": call["id"], "type": "function", "function": {"name": "f", "arguments": "{}"}}
                for call in calls.values()
            ],
        }
        status, _ = await post(edge, results(said))
    assert status == 200
    last = scene.workers.calls[-1].prompt
    assert last.question.fields["tool_call_id"] == "u2"
    assert last.history[-1].fields["tool_call_id"] == "u1"


async def test_the_same_result_posted_twice_is_one_dispatch_and_one_answer() -> None:
    gate = asyncio.Event()
    scene = Scene(PAUSE, Reply("Rain at noon.", gate=gate))
    async with scene.edge() as first, scene.edge() as second:
        message = await paused(first)
        posting = [asyncio.create_task(post(edge, results(message))) for edge in (first, first, second)]
        await asyncio.sleep(0.2)
        gate.set()
        answers = [answer for _, answer in await asyncio.gather(*posting)]
        answers.append((await post(second, results(message)))[1])
    assert all(answer == answers[0] for answer in answers)
    assert len(scene.workers.calls_of("beta")) == 2


async def test_a_tool_turn_may_be_followed_by_another_and_remembers_the_first() -> None:
    scene = Scene(PAUSE, PAUSE, DONE)
    async with scene.edge() as edge:
        first = await paused(edge)
        body = results(first)
        _, answer = await post(edge, body)
        second = answer["choices"][0]["message"]
        assert not {c["id"] for c in first["tool_calls"]} & {c["id"] for c in second["tool_calls"]}
        tools = [
            {"role": "tool", "tool_call_id": call["id"], "content": "more"} for call in second["tool_calls"]
        ]
        status, answer = await post(edge, {**ASKED, "messages": [*body["messages"], second, *tools]})
    assert (status, answer["choices"][0]["message"]["content"]) == (200, "Rain at noon.")
    prompt = scene.workers.calls[-1].prompt
    roles = [message.role for message in (*prompt.history, prompt.question)]
    assert roles == ["user", "assistant", "tool", "tool", "assistant", "tool", "tool"]


async def test_a_later_question_is_planned_anew_and_every_step_has_the_memory_of_the_tools() -> None:
    scene = Scene(PAUSE, DONE, DONE)
    async with scene.edge() as edge:
        message = await paused(edge)
        body = results(message)
        _, answer = await post(edge, body)
        said = answer["choices"][0]["message"]
        later = [*body["messages"], said, {"role": "user", "content": "And tomorrow?"}]
        status, _ = await post(edge, {**ASKED, "messages": later})
    assert status == 200
    assert len(scene.planner.queries) == 2
    for call in scene.workers.calls[-2:]:
        assert "result 0" in [message.text for message in call.prompt.history]


@pytest.mark.parametrize("place", range(4, 38, 3))
async def test_an_altered_id_is_refused_whichever_character_it_is(place: int) -> None:
    scene = Scene()
    async with scene.edge() as edge:
        message = await paused(edge)
        good = message["tool_calls"][0]["id"]
        bad = good[:place] + ("A" if good[place] != "A" else "B") + good[place + 1 :]
        status, answer = await post(edge, results(message, tool_call_id=bad))
    assert (status, answer["error"]["code"]) == (400, "tool_call_id_invalid")
    assert answer["error"]["param"] == "messages[2].tool_call_id"
    assert len(scene.workers.calls) == 2


async def test_another_tenants_id_is_refused_like_an_altered_one() -> None:
    scene = Scene()
    async with scene.edge() as mine, scene.edge(tenant=Tenant("other")) as theirs:
        message = await paused(mine)
        status, answer = await post(theirs, results(message))
    assert (status, answer["error"]["code"]) == (400, "tool_call_id_invalid")
    assert len(scene.workers.calls) == 2


async def test_another_keys_id_is_refused_too_although_its_tenant_is_the_same() -> None:
    scene = Scene()
    async with scene.edge() as edge:
        message = await paused(edge)
        status, answer = await post(edge, results(message), Authorization=f"Bearer {COLLEAGUE_TOKEN}")
        assert (status, answer["error"]["code"]) == (400, "tool_call_id_invalid")
        assert len(scene.workers.calls) == 2, "no worker is asked to tell one key what another has said"
        assert (await post(edge, results(message)))[0] == 200


async def test_a_tenant_whose_words_are_not_kept_uses_tools_by_its_own_history() -> None:
    scene = Scene()
    scene.kept.error = PodiumError(Code.POLICY_DENIED, "content is never stored", reason="CONTENT_NOT_KEPT")
    asked = {**ASKED, "model": "worker/beta"}
    async with scene.edge(tenant=Tenant("acme", keeps_content=False)) as edge:
        status, first = await post(edge, asked)
        assert status == 200, first
        message = first["choices"][0]["message"]
        status, second = await post(edge, {**results(message), "model": "worker/beta"})
        assert status == 200, second
    assert [call["id"] for call in message["tool_calls"]] == [call["id"] for call in UPSTREAM_CALLS]
    assert second["choices"][0]["message"]["content"] == "Rain at noon."
    prompt = scene.workers.calls[-1].prompt
    sent = [*prompt.history, prompt.question]
    assert [m.fields["content"] for m in sent if m.role == "tool"] == ["result 0", "result 1"]


async def test_an_expired_pause_says_so() -> None:
    scene = Scene()
    async with scene.edge(continuation_ttl_s=60) as edge:
        message = await paused(edge)
        assert isinstance(scene.kept.clock, FakeClock)
        scene.kept.clock.advance(61)
        status, answer = await post(edge, results(message))
    assert (status, answer["error"]["code"]) == (400, "continuation_expired")


async def test_a_deleted_pause_and_a_worker_that_left_the_pool_say_the_same() -> None:
    scene = Scene()
    async with scene.edge() as edge:
        message = await paused(edge)
        edge.pool.pool = pool(worker("alpha", features=frozenset({"tools"})))
        gone = await post(edge, results(message))
        edge.pool.pool = tool_pool()
        run_id = next(iter(scene.recorder.runs))
        assert await scene.kept.delete(ItemKey("acme", ItemKind.CONTINUATION, run_id))
        deleted = await post(edge, results(message))
    assert {gone[1]["error"]["code"], deleted[1]["error"]["code"]} == {"continuation_expired"}


@pytest.mark.parametrize("kind", ["missing", "twice", "mixed"])
async def test_results_that_do_not_fit_the_calls_are_refused(kind: str) -> None:
    scene = Scene()
    async with scene.edge() as edge:
        message = await paused(edge)
        body = results(message)
        if kind == "missing":
            body["messages"].pop()
        elif kind == "twice":
            body["messages"].append(body["messages"][-1])
        else:
            body["messages"][-1] = {"role": "tool", "tool_call_id": "call_foreign", "content": "x"}
        status, answer = await post(edge, body)
    expected = "tool_call_id_invalid" if kind == "mixed" else "tool_results_missing"
    assert (status, answer["error"]["code"]) == (400, expected)
    assert len(scene.workers.calls) == 2


async def test_foreign_tool_history_is_plain_history_for_one_worker() -> None:
    scene = Scene(DONE)
    call = {"id": "call_foreign", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    foreign = [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_foreign", "content": "sun"},
    ]
    scene.planner = FakePlanner()
    async with scene.edge() as edge:
        status, answer = await post(edge, {**ASKED, "messages": foreign})
    assert status == 200, answer
    (sent,) = scene.workers.calls
    assert [message.fields for message in (*sent.prompt.history, sent.prompt.question)] == foreign
    assert sent.kind is AttemptKind.STEP


async def test_a_pause_that_cannot_be_kept_is_no_answer() -> None:
    scene = Scene()
    async with scene.edge() as edge:
        await paused(edge)  # the tenant's key is known from here on
        scene.workers.scripts = {"alpha": Reply("a hint"), "beta": PAUSE}
        scene.kept.error = PodiumError(Code.AUDIT_UNAVAILABLE, "audit did not answer in time")
        status, answer = await post(edge, ASKED)
    assert (status, answer["error"]["code"]) == (503, "audit_unavailable")


async def test_signatures_of_the_workers_reasoning_survive_the_round_trip() -> None:
    signed = {
        "role": "assistant",
        "content": None,
        "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "sig"}],
        "tool_calls": [{**call, "extra_content": {"signature": "s"}} for call in UPSTREAM_CALLS],
    }
    scene = Scene(Reply(text="", tool_calls=UPSTREAM_CALLS, finish_reason="tool_calls", replay=signed), DONE)
    async with scene.edge() as edge:
        message = await paused(edge)
        assert "thinking_blocks" not in message
        await post(edge, results(message))
    said = scene.workers.calls[-1].prompt.history[1].fields
    assert said["thinking_blocks"] == signed["thinking_blocks"]
    calls: Any = said["tool_calls"]
    assert [call["extra_content"] for call in calls] == [{"signature": "s"}] * 2
    assert [call["id"] for call in calls] == [call["id"] for call in UPSTREAM_CALLS]
