"""The life of a process: signals end it, and its exit code is honest."""

import asyncio
import logging
import os
import signal

import pytest

from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.service import run_service, until_stopped
from tests.fakes.waiting import PATIENCE_S


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_service_in_order(number: signal.Signals) -> None:
    steps = []

    async def main() -> None:
        asyncio.get_running_loop().call_later(0.01, os.kill, os.getpid(), number)
        await asyncio.wait_for(until_stopped(), PATIENCE_S)
        steps.append("drained")

    run_service(main)
    assert steps == ["drained"]


def test_a_service_that_lacks_a_part_of_itself_does_not_go_on(caplog: pytest.LogCaptureFixture) -> None:
    steps = []

    async def dies() -> None:
        await asyncio.sleep(0.01)
        raise RuntimeError("secret-dsn")

    async def main() -> None:
        lives = asyncio.create_task(asyncio.sleep(60))
        try:
            await asyncio.wait_for(until_stopped(lives, asyncio.create_task(dies())), PATIENCE_S)
        finally:
            lives.cancel()
            steps.append("drained")

    with pytest.raises(SystemExit) as exited:
        run_service(main)
    assert (exited.value.code, steps) == (1, ["drained"])
    assert [record.message for record in caplog.records] == [
        "a part ended",
        "a part of this service ended unexpectedly",
    ]


def test_it_runs_on_uvloop() -> None:
    kinds = []

    async def main() -> None:
        kinds.append(type(asyncio.get_running_loop()).__module__)

    run_service(main)
    assert kinds == ["uvloop"]


def test_an_error_of_ours_is_one_log_line_and_exit_code_1(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        raise PodiumError(Code.INVALID_REQUEST, "cannot listen on 127.0.0.1:1")

    with pytest.raises(SystemExit) as exited:
        run_service(main)
    assert exited.value.code == 1
    assert [record.message for record in caplog.records] == ["cannot listen on 127.0.0.1:1"]


def test_a_defect_is_not_hidden() -> None:
    async def main() -> None:
        raise KeyError("defect")

    with pytest.raises(KeyError):
        run_service(main)


def test_a_failing_callback_is_logged_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise RuntimeError("secret-dsn")

    async def main() -> None:
        asyncio.get_running_loop().call_soon(fail)
        await asyncio.sleep(0.01)

    run_service(main)
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert "secret" not in record.getMessage()
    assert record.exc_info
