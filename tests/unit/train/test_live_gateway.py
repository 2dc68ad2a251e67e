"""Live workers through a gateway's real HTTP edge, from the command down to the call."""

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest

from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import Access
from podium_core.domain.run import AttemptKind, Message
from podium_core.domain.usage import Usage
from podium_core.orchestration.ports import Completion, Permitted, PromptPiece, StepCall, StepPrompt
from podium_train.__main__ import main
from podium_train.environments.live_gateway import GatewayWorkers
from tests.fakes.gateway import TOKEN, running_edge
from tests.fakes.waiting import PATIENCE_S
from tests.fakes.worker import FakeWorkers, Reply, WorkerScript
from tests.unit.train.recorded import write_lines

POOL = """
workers:
  - id: alpha
    provider: openai-compatible
    model: alpha-model
    base_url: http://127.0.0.1:1
    price: {input_usd_per_mtok: 1, output_usd_per_mtok: 2}
  - id: beta
    provider: openai-compatible
    model: beta-model
    base_url: http://127.0.0.1:1
    price: {input_usd_per_mtok: 1, output_usd_per_mtok: 2}
"""


def call(worker_id: str = "alpha", *pieces: str) -> StepCall:
    question = Message("user", "What is 6 times 7?", {"role": "user", "content": "What is 6 times 7?"})
    prompt = StepPrompt((), question, tuple(PromptPiece(text) for text in pieces))
    return StepCall(
        "att_1", "run_1", "t", AttemptKind.STEP, 0, 0, worker_id, "p", prompt, Access(), {}, 100,
        stream=False, timeout_s=10.0,
    )  # fmt: skip


async def asked(url: str, key: str, one: StepCall) -> list[object]:
    async with aiohttp.ClientSession() as session:
        return [event async for event in GatewayWorkers(url, key, session, SystemClock()).complete(one)]


async def test_a_call_is_a_run_of_the_named_worker_and_says_what_it_cost() -> None:
    real = FakeWorkers({"alpha": Reply("42", usage=Usage(11, 5), cost_usd_micros=21)})
    async with running_edge(workers=real) as edge:
        permitted, completion = await asked(edge.url, TOKEN, call("alpha", "<task>", "6*7?", "</task>"))
    assert isinstance(permitted, Permitted)
    assert isinstance(completion, Completion)
    assert (completion.message.text, completion.finish_reason) == ("42", "stop")
    assert (completion.usage, completion.cost_usd_micros) == (Usage(11, 5), 21)
    (sent,) = real.calls
    assert (sent.worker_id, sent.prompt.question.text) == ("alpha", "<task>6*7?</task>")


async def test_refusals_keep_their_reason_and_say_whether_a_retry_helps() -> None:
    slow = PodiumError(Code.RATE_LIMITED, "slow down", reason="PROVIDER_RATE_LIMITED", retry_after_s=30.0)
    real = FakeWorkers({"alpha": Reply(error=slow, permitted=False)})
    async with running_edge(workers=real) as edge:
        with pytest.raises(PodiumError) as limited:
            await asked(edge.url, TOKEN, call())
        with pytest.raises(PodiumError) as unknown:
            await asked(edge.url, TOKEN, call("nobody"))
        with pytest.raises(PodiumError) as stranger:
            await asked(edge.url, "wrong", call())
        url = edge.url
    assert (limited.value.code, limited.value.reason) == (Code.RATE_LIMITED, "PROVIDER_RATE_LIMITED")
    assert limited.value.retry_after_s == 30.0
    assert unknown.value.code in {Code.NOT_FOUND, Code.INVALID_REQUEST}
    assert stranger.value.code is Code.UNAUTHENTICATED
    with pytest.raises(PodiumError) as gone:
        await asked(url, TOKEN, call())
    assert (gone.value.code, gone.value.reason) == (Code.UNAVAILABLE, "GATEWAY_UNREACHABLE")


@contextmanager
def gateway_beside(scripts: Mapping[str, WorkerScript]) -> Iterator[tuple[str, FakeWorkers]]:
    """Serve an edge from another thread, as the command runs an event loop of its own."""
    real, found, stop = FakeWorkers(scripts), threading.Event(), threading.Event()
    urls: list[str] = []

    async def serve() -> None:
        async with running_edge(workers=real) as edge:
            urls.append(edge.url)
            found.set()
            while not stop.is_set():
                await asyncio.sleep(0.01)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert found.wait(PATIENCE_S)
        yield urls[0], real
    finally:
        stop.set()
        thread.join()


def arguments(folder: Path, url: str, *more: str) -> list[str]:
    rows = [
        {"id": f"sums/{n}", "family": "sums", "category": "maths", "difficulty": "standard", "q": f"{n} + 1?",
         "a": str(n + 1), "grader": "number"}
        for n in range(5)
    ]  # fmt: skip
    write_lines(folder / "data" / "questions" / "sums.jsonl", rows)
    (folder / "pool.yaml").write_text(POOL)
    (folder / "key").write_text(TOKEN + "\n")
    return [
        "live", "--gateway", url, "--key-file", str(folder / "key"), "--pool", str(folder / "pool.yaml"),
        "--data", str(folder / "data"), "--set", "sums", "--max-usd", "1", "--cache", str(folder / "cache"), *more,
    ]  # fmt: skip


def test_the_command_asks_grades_and_asks_nothing_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def adds(call: StepCall) -> Reply:
        return Reply(str(int(call.prompt.question.text.split()[0]) + 1))

    trace = tmp_path / "trace.jsonl"
    with gateway_beside({"alpha": adds, "beta": Reply("I would say 3.")}) as (url, real):
        assert main(arguments(tmp_path, url, "--trace", str(trace))) == 0
        printed = capsys.readouterr().out
        assert "| alpha | 5 | 0 | 100.0 |" in printed
        assert "| beta | 5 | 0 | 20.0 |" in printed
        assert len(real.calls) == 10
        assert main(arguments(tmp_path, url)) == 0
        assert len(real.calls) == 10
        assert capsys.readouterr().out == printed
        assert main(arguments(tmp_path, url, "--workers", "gamma")) == 1
        assert "no worker 'gamma'" in capsys.readouterr().err
    facts = [json.loads(line) for line in trace.read_text().splitlines()]
    assert [fact["verdict"] for fact in facts] == ["scored"] * 10


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with gateway_beside({}) as (url, _):
        assert main(arguments(tmp_path, url, "--trace", "/dev/full")) == 1
    assert "TRACE_UNWRITABLE" in capsys.readouterr().err


def test_the_command_refuses_a_worker_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = PodiumError(
        Code.PROVIDER_FAILED, "no", reason="PROVIDER_FAILED", metadata={"retryable": "false"}
    )
    with gateway_beside({"alpha": Reply(error=broken)}) as (url, _):
        assert main(arguments(tmp_path, url, "--workers", "alpha")) == 1
    assert "5 of 5 completions could not be scored (5 of PROVIDER_FAILED)" in capsys.readouterr().err
