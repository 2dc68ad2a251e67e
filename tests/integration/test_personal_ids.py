"""The ids by which clients name their own users: a pseudonym in the log, and in no table, file, log or span."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.leaves import leaves_in
from tests.fakes.otlp_receiver import OtlpReceiver
from tests.fakes.stack import URL, asked, running_stack

CANARY = "canary-77aa31@example.com"
WORKERS: Mapping[str, Mapping[str, Any]] = {"w": {}}


@pytest.mark.parametrize(
    ("url", "body"),
    [
        (URL, asked(user=CANARY)),
        (URL, asked(safety_identifier=CANARY, user="less telling")),
        ("/v1/responses", {"model": "worker/w", "input": "6 times 7?", "user": CANARY, "store": True}),
        (
            "/v1/messages",
            {
                "model": "worker/w",
                "max_tokens": 16,
                "messages": [{"role": "user", "content": "6 times 7?"}],
                "metadata": {"user_id": CANARY},
            },
        ),
    ],
)
async def test_a_users_id_is_in_no_table_file_log_or_span(
    tls_dir: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    url: str,
    body: dict[str, Any],
) -> None:
    caplog.set_level(logging.DEBUG)
    with OtlpReceiver() as collector:
        async with running_stack(
            tls_dir, tmp_path, workers=WORKERS, otlp_endpoint=collector.endpoint
        ) as stack:
            async with stack.session.post(url, json=body) as response:
                assert response.status == 200
                await response.read()
            (opened,) = leaves_in(tmp_path, "opened")
            assert opened["facts"]["subject"].startswith("sub_")
            files = [file for file in tmp_path.rglob("*") if file.is_file()]
            assert any(file.name == "log.db-wal" for file in files)
            for file in files:
                assert CANARY.encode() not in file.read_bytes(), file.name
        assert collector.requests
        assert not any(CANARY.encode() in request for request in collector.requests)
    told = "".join(f"{vars(record)} {record.getMessage()}" for record in caplog.records)
    assert CANARY not in told + caplog.text + str(capfd.readouterr())
