"""Tool turns and retries as the official client makes them, against two gateways of a running installation."""

import asyncio
import json
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx
import openai
import pytest

from podium_core.config.tenants import new_key
from podium_verifier.verify import Verified, verify_export
from tests.e2e.cluster import Cluster, running
from tests.fakes.upstream import Reply, Upstream, answer
from tests.fakes.waiting import PATIENCE_S, SOON_S, STALL_S, until

pytestmark = pytest.mark.slow

WORKER = """
  - id: scripted
    provider: openai-compatible
    model: scripted
    base_url: "{base_url}"
    price: {{input_usd_per_mtok: "1.00", output_usd_per_mtok: "2.00"}}
    limits: {{max_concurrency: 64, timeout_s: 60, max_output_tokens: 4096}}
    features: [tools]
"""
TOOLS: Any = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in ("weather", "clock")
]
QUESTION: Any = {"role": "user", "content": "Weather and time in Oslo?"}
CALLS = [
    {"id": "call_up_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}},
    {"id": "call_up_2", "type": "function", "function": {"name": "clock", "arguments": "{}"}},
]


class Scene:
    """An installation with two gateways and one scripted worker, which lives in a thread of its own."""

    def __init__(self, cluster: Cluster, upstream: Upstream, loop: asyncio.AbstractEventLoop) -> None:
        self.cluster, self.upstream, self.loop = cluster, upstream, loop
        self.urls = [cluster.gateway_url]
        self.other_key = ""

    def client(self, gateway: int = 0, key: str = "", **options: Any) -> openai.OpenAI:
        """Return an official client of one gateway."""
        options = {"max_retries": 0, **options}
        return openai.OpenAI(
            base_url=f"{self.urls[gateway]}/v1", api_key=key or self.cluster.api_key, **options
        )

    def play(self, *replies: Reply) -> None:
        """Let the worker answer so from now on."""
        self.upstream.requests.clear()
        self.upstream.script.clear()
        self.upstream.script.extend(replies)

    def runs(self) -> list[dict[str, Any]]:
        """Return the tenant's runs, newest first."""
        listed = httpx.get(f"{self.cluster.audit_url}/v1/runs", headers=self.cluster.headers)
        runs: list[dict[str, Any]] = listed.json()["runs"]
        return runs


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    upstream = Upstream()
    asyncio.run_coroutine_threadsafe(upstream.__aenter__(), loop).result(PATIENCE_S)
    cluster = Cluster(
        tmp_path_factory.mktemp("podium"), more_workers=WORKER.format(base_url=upstream.base_url)
    )
    with running(cluster):
        made = Scene(cluster, upstream, loop)
        made.urls.append(cluster.start_replica(continuation_ttl_s="1"))
        made.other_key, digest = new_key("other")
        tenants = json.loads((cluster.home / "tenants.yaml").read_text())
        tenants["tenants"].append(
            {"id": "other", "keys": [{"id": "other", "sha256": digest, "roles": ["client"]}]}
        )
        (cluster.home / "tenants.yaml").write_text(json.dumps(tenants))
        asyncio.run(cluster.wait_ready())
        asyncio.run(settled(made))
        yield made
    asyncio.run_coroutine_threadsafe(upstream.__aexit__(), loop).result(PATIENCE_S)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(PATIENCE_S)
    loop.close()


async def settled(scene: Scene) -> None:
    """Wait until both gateways are ready and know the second tenant."""
    async with asyncio.timeout(PATIENCE_S), httpx.AsyncClient() as http:
        for url in scene.urls:
            for key in (scene.cluster.api_key, scene.other_key):
                while True:
                    try:
                        found = await http.get(f"{url}/v1/models", headers={"Authorization": f"Bearer {key}"})
                        if "worker/scripted" in found.text:
                            break
                    except httpx.HTTPError:
                        pass
                    await asyncio.sleep(0.1)


def ask(scene: Scene, gateway: int = 0) -> Any:
    """Return the assistant's message that asks for both tools."""
    scene.play(answer(tool_calls=CALLS, finish="tool_calls"), answer("Rain ", "at noon."))
    with scene.client(gateway) as api:
        completion = api.chat.completions.create(model="podium", messages=[QUESTION], tools=TOOLS)
    assert completion.choices[0].finish_reason == "tool_calls"
    return completion.choices[0].message


def results(message: Any) -> Any:
    said = message.model_dump(exclude_none=True)
    tools = [
        {"role": "tool", "tool_call_id": call.id, "content": f"result of {call.function.name}"}
        for call in message.tool_calls
    ]
    return [QUESTION, said, *tools]


def test_a_tool_turn_goes_on_at_another_gateway_once_and_is_proven(scene: Scene) -> None:
    message = ask(scene)
    assert all(len(call.id) <= 40 for call in message.tool_calls)
    answers = []
    for gateway in (1, 1, 0):
        with scene.client(gateway) as api:
            answers.append(
                api.chat.completions.create(model="podium", messages=results(message), tools=TOOLS)
            )
    assert answers[0].choices[0].message.content == "Rain at noon."
    assert len({each.id for each in answers}) == 1
    first, second = scene.upstream.requests
    sent = second.fields["messages"]
    assert sent[: len(first.fields["messages"])] == first.fields["messages"]
    assert [call["id"] for call in sent[-3]["tool_calls"]] == ["call_up_1", "call_up_2"]
    assert [one["tool_call_id"] for one in sent[-2:]] == ["call_up_1", "call_up_2"]
    told: Any = answers[0].model_extra
    run_id = told["podium"]["run_id"]
    url = f"{scene.cluster.audit_url}/v1/runs/{run_id}/export"
    export = httpx.get(url, headers=scene.cluster.headers).content
    assert isinstance(verify_export(export, None), Verified)
    opened = json.loads(json.loads(export.splitlines()[2])["leaf"])
    assert opened["facts"]["continues_run_id"] == next(
        run["run_id"] for run in scene.runs() if run["run_id"] != run_id
    )


def test_a_streamed_pause_can_be_continued(scene: Scene) -> None:
    scene.play(answer(tool_calls=CALLS, finish="tool_calls"), answer("Rain ", "at noon."))
    with (
        scene.client() as api,
        api.chat.completions.stream(model="podium", messages=[QUESTION], tools=TOOLS) as stream,
    ):
        message = stream.get_final_completion().choices[0].message
    with (
        scene.client(1) as api,
        api.chat.completions.stream(model="podium", messages=results(message), tools=TOOLS) as stream,
    ):
        assert stream.get_final_completion().choices[0].message.content == "Rain at noon."
    assert len(scene.upstream.requests) == 2


def test_altered_foreign_and_expired_results(scene: Scene) -> None:
    message = ask(scene)
    altered = results(message)
    altered[-1]["tool_call_id"] = altered[-1]["tool_call_id"][:-3] + "AAA"
    for key, messages in ((scene.cluster.api_key, altered), (scene.other_key, results(message))):
        with scene.client(key=key) as api, pytest.raises(openai.BadRequestError) as caught:
            api.chat.completions.create(model="podium", messages=messages, tools=TOOLS)
        assert caught.value.code == "tool_call_id_invalid"
    late = ask(scene, gateway=1)  # which keeps a pause for one second
    threading.Event().wait(1.2)
    with scene.client() as api, pytest.raises(openai.BadRequestError) as caught:
        api.chat.completions.create(model="podium", messages=results(late), tools=TOOLS)
    assert caught.value.code == "continuation_expired"
    assert len(scene.upstream.requests) == 1


@pytest.mark.parametrize("is_keyed", [True, False], ids=["with_a_key", "without"])
def test_a_client_that_times_out_and_retries(scene: Scene, is_keyed: bool) -> None:
    """A time-out of 3 s, two retries, a run of 10 s: with a key one run, without three that are stopped."""
    slow = answer("Rain at noon.").but(delay_s=10.0)
    scene.play(slow, slow, slow)
    headers = {"Idempotency-Key": "retry-1"} if is_keyed else {}
    asked: Any = {"model": "worker/scripted", "messages": [QUESTION], "extra_headers": headers}
    with scene.client(timeout=3.0, max_retries=2) as api:
        if is_keyed:
            try:
                done = api.chat.completions.create(**asked)
            except openai.APITimeoutError:  # a busy machine: its patience ended a moment before the run did
                done = api.chat.completions.create(**asked)
            assert done.choices[0].message.content == "Rain at noon."
            with scene.client(1) as other:
                assert other.chat.completions.create(**asked).id == done.id
            assert len(scene.upstream.requests) == 1
            assert scene.runs()[0]["outcome"] == "answered"
            return
        with pytest.raises(openai.APITimeoutError):
            api.chat.completions.create(**asked)
    assert len(scene.upstream.requests) == 3
    asyncio.run(until(lambda: [run["outcome"] for run in scene.runs()[:3]] == ["cancelled"] * 3))
    for seen in scene.upstream.requests:
        asyncio.run(until(partial(getattr, seen, "ended_s")))
        assert seen.was_hung_up


def test_a_long_run_in_the_background_needs_no_patience(scene: Scene) -> None:
    scene.play(answer("Rain at noon.").but(delay_s=10.0))
    with scene.client(timeout=3.0, max_retries=2) as api:
        job = api.responses.create(model="worker/scripted", input="Rain in Oslo?", background=True)
        while job.status in ("queued", "in_progress"):
            threading.Event().wait(0.5)
            job = api.responses.retrieve(job.id)
    assert (job.status, job.output_text) == ("completed", "Rain at noon.")
    assert len(scene.upstream.requests) == 1


def test_a_stopped_run_ends_within_seconds(scene: Scene) -> None:
    from podium.audit.v1 import stop_service_pb2, stop_service_pb2_grpc
    from podium_core.runtime.grpc_client import open_channel
    from podium_core.runtime.identity import TlsFiles

    tls = scene.cluster.home / "tls"
    files = TlsFiles(tls / "cli" / "cert.pem", tls / "cli" / "key.pem", tls / "ca.pem")

    async def stop(run_id: str) -> None:
        channel = open_channel(f"127.0.0.1:{scene.cluster.ports['audit']}", "audit", files)
        stub: Any = stop_service_pb2_grpc.StopServiceStub(channel)
        request = stop_service_pb2.RequestStopRequest(event_id="stop-1", run_id=run_id, principal_id="ops")
        await stub.RequestStop(request, timeout=60)
        await channel.close()

    scene.play(answer("late").but(delay_s=STALL_S))
    caught: list[Exception] = []

    def ask_slowly() -> None:
        try:
            with scene.client() as api:
                api.chat.completions.create(model="worker/scripted", messages=[QUESTION])
        except openai.APIStatusError as error:
            caught.append(error)

    asking = threading.Thread(target=ask_slowly)
    asking.start()
    asyncio.run_coroutine_threadsafe(scene.upstream.seen(1), scene.loop).result(PATIENCE_S)
    run_id = scene.runs()[0]["run_id"]
    asyncio.run(stop(run_id))
    asking.join(SOON_S)
    assert not asking.is_alive()
    (error,) = caught
    assert isinstance(error, openai.APIStatusError)
    assert error.code == "run_stopped"
    asyncio.run(until(lambda: scene.runs()[0]["outcome"] == "cancelled"))
    asyncio.run(until(lambda: scene.upstream.requests[0].was_hung_up))
