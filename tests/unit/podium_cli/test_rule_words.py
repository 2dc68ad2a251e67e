"""Why a worker may not work, in words, and why the Conductor chose one, in percent."""

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from podium_cli.record_view import RecordView, rule_words
from podium_core.domain.pool import Card, Skill


@pytest.mark.parametrize(
    ("rule_id", "words"),
    [
        ("default.allow", "nothing stands against it"),
        ("tenant.workers.only", "the tenant's lists of workers allow others only"),
        ("key.regions.except", "the key's lists of regions exclude it"),
        ("capability.tools", "it lacks tools"),
        ("capability.context", "the messages are longer than its window"),
        ("later.version", ""),
    ],
)
def test_every_rule_has_words(rule_id: str, words: str) -> None:
    assert rule_words(rule_id) == words


def test_a_plan_tells_why_this_worker_and_what_became_of_the_rounds() -> None:
    step = {
        "worker_id": "alpha",
        "access": [],
        "sees_previous_round": False,
        "fallback_worker_id": "beta",
        "subtask_part_id": "",
    }
    chances = [
        {"worker_id": name, "raw_ppm": ppm, "eligible_ppm": ppm}
        for name, ppm in (("beta", 90_000), ("alpha", 700_000), ("c", 5), ("d", 4), ("e", 3))
    ]
    plan = {
        "round": 0,
        "source": "embedded",
        "fallback_reason": "",
        "steps": [step],
        "choices": [{"step_index": 0, "chances": chances}],
    }
    rounds = {"round_count": "2", "flip_count": "1"}
    records: list[dict[str, Any]] = [
        {"type": "plan", "facts": plan, "contents": []},
        {"type": "note", "facts": {"kind": "rounds", "facts": rounds}, "contents": []},
    ]
    card = Card((Skill("sums", 980_000, 50, "2026-11-30"), Skill("dates", 500_000, 50, "2026-11-30")))
    console = Console(width=200, record=True, file=StringIO())
    view = RecordView({"records": records}, frozenset(), {"alpha": card})
    for part in view.render(with_content=False):
        console.print(part)
    said = console.export_text()
    assert "chosen by the Conductor: alpha 70.0 %, beta 9.0 %, c 0.0 %, d 0.0 %, 1 more" in said
    assert "card now: sums 98.0 %, dates 50.0 %" in said
    assert "else beta" in said
    assert "rounds flip_count 1, round_count 2" in said
