import io
from typing import Any

from rich.console import Console

from podium_cli.gateway_client import News
from podium_cli.run_view import RunView

PLAN = {
    "source": "rules",
    "round": 0,
    "steps": [
        {"worker": "demo-arithmetic", "subtask": "Multiply 17 by 23.", "access": [], "fallback": None},
        {"worker": "gpt", "subtask": "", "access": [0], "fallback": None},
    ],
}
FINISHED: dict[str, Any] = {
    "run_id": "run_1",
    "outcome": "answered",
    "plan": PLAN,
    "steps": [
        {
            "step": 0,
            "worker": "demo-arithmetic",
            "ok": True,
            "cost_usd_micros": 3,
            "latency_ms": 40,
            "attempts": [{}],
        },
        {
            "step": 1,
            "worker": "spare",
            "ok": True,
            "cost_usd_micros": 4,
            "latency_ms": 60,
            "attempts": [{}, {}],
        },
    ],
    "usage": {"billed": {"total_tokens": 77}},
    "cost_usd_micros": 7,
    "duration_ms": 120,
    "receipt": {
        "run_id": "run_1",
        "leaf_indices": [3, 4, 9, 10, 11, 12],
        "checkpoint": "podium.local/audit\n13\nroot\n\n",
    },
}


def shown(view: RunView, *, is_live: bool = False) -> str:
    console = Console(file=io.StringIO(), width=120, force_terminal=False)
    console.print(view.render(is_live=is_live))
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def view_of(*news: News) -> RunView:
    view = RunView(frozenset({"demo-arithmetic"}))
    for each in news:
        view.take(each)
    return view


def test_a_run_is_shown_while_it_happens() -> None:
    assert "asking the Conductor" in shown(view_of(), is_live=True)
    planned = News("planned", {"run_id": "run_1", "plan": PLAN})
    said = shown(
        view_of(planned, News("step_started", {"step": 0, "worker": "demo-arithmetic"})), is_live=True
    )
    assert "2 steps, source: rules" in said
    assert "demo-arithmetic [demo]" in said
    assert "sees 0  waiting" in said
    assert "the question itself" in said


def test_the_end_shows_answer_cost_and_receipt() -> None:
    said = shown(
        view_of(
            News("planned", {"run_id": "run_1", "plan": PLAN}),
            News("step_ended", {"step": 0, "ok": False, "error": "provider_failed", "latency_ms": 5}),
            News("text", {"text": "39"}),
            News("text", {"text": "1\n"}),
            News("finished", FINISHED),
        )
    )
    assert "failed in 0.01 s" in said or "failed in 0.00 s" in said
    assert "provider_failed" in said
    assert "391" in said
    assert "$0.000007, 77 tokens, 3 provider calls, 0.12 s" in said
    assert "leaves 3, 4, 9 to 12; checkpoint of 13 leaves signed by podium.local/audit" in said
    assert "their prices are invented" in said


def test_a_stream_without_step_events_shows_the_same_plan() -> None:
    said = shown(view_of(News("finished", FINISHED)))
    assert "source: rules" in said
    assert "spare instead of gpt" in said
    assert "done in 0.06 s, $0.000004" in said


def test_a_failure_and_text_that_steers_terminals_are_shown_plainly() -> None:
    view = view_of(
        News("text", {"text": "\x1b[2Jgone"}),
        News("error", {"message": "the \x1b[31mworker failed", "code": "x"}),
    )
    said = shown(view)
    assert "\x1b" not in said
    assert "\\x1b[2Jgone" in said
    assert "no plan was made" in said


def test_an_interrupted_run_is_not_shown_as_going_on() -> None:
    view = view_of(News("planned", {"run_id": "run_1", "plan": PLAN}), News("step_started", {"step": 0}))
    view.stop()
    said = shown(view)
    assert "demo-arithmetic [demo]  stopped" in said
    assert "sees 0  not begun" in said


def test_a_failed_run_says_where_to_look() -> None:
    planned = News("planned", {"run_id": "run_1", "plan": PLAN})
    said = shown(view_of(planned, News("error", {"message": "too dear", "code": "cap_max_usd"})))
    assert "failed: too dear (cap_max_usd)" in said
    assert "`podium show run_1`" in said


def test_news_that_fits_nothing_is_harmless() -> None:
    view = view_of(News("step_started", {"step": 9}), News("step_ended", {}), News("finished", {}))
    assert "none: the run is not sealed" in shown(view)


def test_rounds_are_told_and_an_accepting_plan_hides_nothing() -> None:
    rounds = [{}, {"changed": True}, {"failure": "plan_deadline"}, {"accepted": True}]
    text = shown(
        view_of(
            News("planned", {"plan": PLAN}),
            News("planned", {"plan": {"source": "worker", "round": 1, "steps": []}}),
            News("finished", {**FINISHED, "rounds": rounds, "planning": [{}]}),
        )
    )
    assert "2 steps, source: rules" in text
    assert "answer changed, no plan (plan_deadline), answer accepted" in text
    assert "4 provider calls" in text


def test_a_fallback_plan_says_why() -> None:
    plan = {**PLAN, "source": "fallback", "fallback_reason": "plan_no_triple"}
    assert "source: fallback, because plan_no_triple" in shown(view_of(News("planned", {"plan": plan})))
