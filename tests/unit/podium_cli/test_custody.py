"""What `podium erase`, `hold`, `approve`, `reads` and `retention` send, and what they print of the answers."""

import argparse
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from rich.console import Console

from podium_cli import custody
from podium_cli.audit_client import AuditClient
from podium_cli.failures import CliError
from podium_cli.home import open_home
from podium_cli.settings import CliSettings


class Audit:
    """Answers as it is told and keeps what it was sent."""

    def __init__(self) -> None:
        self.answer: tuple[int, Any] = (200, {})
        self.sent: list[tuple[str, Any]] = []

    async def handle(self, request: web.Request) -> web.Response:
        """Keep and answer."""
        body = await request.json() if request.can_read_body else dict(request.query)
        self.sent.append((request.path, body))
        status, answer = self.answer
        return web.json_response(answer, status=status)


@pytest.fixture
async def audit() -> AsyncIterator[tuple[Audit, AuditClient]]:
    made = Audit()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.handle)
    async with TestServer(app) as server:
        yield made, AuditClient(str(server.make_url("")), "podium_key_x")


async def test_what_is_sent_arrives_and_answers_are_made_plain(audit: tuple[Audit, AuditClient]) -> None:
    made, client = audit
    made.answer = (200, {"erased": [{"run_id": "run_1\x1b[2J", "leaf_index": 7}]})
    answer = await client.send("/v1/erasures", {"run_ids": ["run_1"], "basis": "subject_request"})
    assert made.sent == [("/v1/erasures", {"run_ids": ["run_1"], "basis": "subject_request"})]
    assert "\x1b" not in answer["erased"][0]["run_id"]


async def test_a_refusal_says_what_audit_says(audit: tuple[Audit, AuditClient]) -> None:
    made, client = audit
    made.answer = (409, {"error": {"code": "CONFLICT", "message": "a legal hold protects it"}})
    with pytest.raises(CliError, match="409: a legal hold protects it"):
        await client.send("/v1/erasures", {})


async def test_an_approval_goes_along_with_the_run_it_is_for(audit: tuple[Audit, AuditClient]) -> None:
    made, client = audit
    await client.run("run_1", "apr_1")
    assert made.sent == [("/v1/runs/run_1", {"approval": "apr_1"})]


def test_ids_that_would_bend_an_address_are_refused() -> None:
    arguments = argparse.Namespace(
        release="../x", approval="a", audit_url="http://127.0.0.1:1", api_key="k", run=[], all=False, case=""
    )
    with pytest.raises(CliError, match="is no id"):
        custody.hold(arguments, Console(), open_home(Path("/nonexistent")), CliSettings())
