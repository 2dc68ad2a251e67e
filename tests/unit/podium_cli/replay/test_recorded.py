"""Reading a run back from its export: any words of any client, and a clear word where they are missing."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_cli.failures import CliError
from podium_cli.replay.recorded import read_run

OPENED: dict[str, Any] = {
    "kind": "chat",
    "requested_model": "podium",
    "continues_run_id": "",
    "verdicts": [{"worker_id": "a", "allowed": True}, {"worker_id": "b", "allowed": False}],
    "caps": dict.fromkeys(
        (
            "max_steps", "max_calls", "max_tokens", "max_cost_usd_micros", "max_rounds", "max_attempts_per_step",
            "max_duration_ms", "straggler_wait_ms", "quorum",
        )
    ),
    "pool_digest": "p",
}  # fmt: skip
SEALED = {"outcome": "answered", "cost_usd_micros": 3}


def export(question: bytes, history: bytes = b"", *, sealed: bool = True, kept: bool = True) -> bytes:
    parts = {"question": question} | ({"history": history} if history else {})
    opened = _leaf("opened", OPENED, list(parts))
    leaves = [opened, *([_leaf("sealed", SEALED)] if sealed else [])]
    lines: list[dict[str, Any]] = [{"line": "header", "with_content": kept}]
    lines += [{"line": "leaf", "index": at + 40, "leaf": json.dumps(leaf)} for at, leaf in enumerate(leaves)]
    for part_id, data in parts.items() if kept else ():
        lines.append({"line": "content", "part_id": part_id, "data": base64.b64encode(data).decode()})
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def _leaf(kind: str, facts: dict[str, Any], parts: list[str] | None = None) -> dict[str, Any]:
    contents = [
        {"part_id": part_id, "name": part_id, "media_type": "application/json"} for part_id in parts or ()
    ]
    return {
        "type": kind,
        "run_id": "run_1",
        "run_seq": 0,
        "facts": facts,
        "contents": contents,
        "event_id": "e",
    }


@given(st.text())
def test_any_question_comes_back_as_its_client_wrote_it(text: str) -> None:
    kept = json.dumps(text, ensure_ascii=True)[1:-1].encode()
    assert read_run(export(kept)).question.last.text == text


def test_a_question_of_parts_keeps_them_and_its_history_their_roles() -> None:
    last = {"role": "user", "content": [{"type": "text", "text": "and"}, {"type": "text", "text": "this?"}]}
    history = b'{"role":"system","content":"Be brief."},{"role":"assistant","content":null}'
    run = read_run(export(json.dumps(last).encode(), history))
    assert [(message.role, message.text) for message in run.question.messages] == [
        ("system", "Be brief."),
        ("assistant", ""),
        ("user", "and\nthis?"),
    ]
    assert run.allowed == {"a"}


@pytest.mark.parametrize(
    ("data", "word"),
    [(export(b"x", kept=False), "holds no content"), (export(b"x", sealed=False), "still open")],
)
def test_what_cannot_be_replayed_says_why(data: bytes, word: str) -> None:
    with pytest.raises(CliError, match=word):
        read_run(data)
