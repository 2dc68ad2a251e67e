"""What another installation tells is shown, never obeyed: not by the terminal, not by the file system."""

from collections.abc import Mapping
from typing import Any

import pytest

from podium_cli.audit_client import LAST, AuditClient
from podium_cli.failures import CliError
from podium_cli.gateway_client import read_event
from podium_cli.sse import ServerEvent
from podium_cli.words import plain_facts

EVIL = "\x1b[2J\u202e\x07"
TAME = "\\x1b[2J\\u202e\\x07"


class OneRun(AuditClient):
    """An installation that names one run."""

    def __init__(self, run_id: object) -> None:
        super().__init__("http://127.0.0.1:1", "key")
        self._run_id = run_id

    async def runs(
        self, limit: int, before: str | None = None, filters: Mapping[str, str] | None = None
    ) -> Mapping[str, Any]:
        return {"runs": [{"run_id": self._run_id}]}


def test_facts_lose_their_control_characters_at_any_depth() -> None:
    assert plain_facts({EVIL: [{"a": EVIL}, 7, None, "ok\n"]}) == {TAME: [{"a": TAME}, 7, None, "ok\n"]}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("message", '{"error": {"message": "\\u001b[2J\\u202e\\u0007"}}'),
        ("podium", '{"podium": {"event": "step_ended", "message": "\\u001b[2J\\u202e\\u0007"}}'),
        ("message", '{"choices": [], "podium": {"message": "\\u001b[2J\\u202e\\u0007"}}'),
    ],
    ids=["error", "step event", "end"],
)
def test_news_hold_no_control_characters(name: str, data: str) -> None:
    (news,) = read_event(ServerEvent(name, data))
    assert news.facts["message"] == TAME


async def test_the_newest_run_is_resolved() -> None:
    assert await OneRun("run_1").resolve(LAST) == "run_1"


@pytest.mark.parametrize("run_id", ["../../.ssh/x", "/etc/x", "a/b", ".hidden", "", "x" * 129, "a\nb"])
async def test_no_id_leads_out_of_the_directory(run_id: str) -> None:
    with pytest.raises(CliError, match="no id of a run"):
        await OneRun(run_id).resolve(LAST)
