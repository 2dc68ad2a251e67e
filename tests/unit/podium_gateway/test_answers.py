"""From run events to bytes: chunks, usage, receipts and endings as official clients read them."""

import json
from typing import Any

import pytest

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import Plan, PlanSource, Step
from podium_core.domain.run import AttemptKind, AttemptOutcome, Caps, RunOutcome
from podium_core.domain.usage import Usage
from podium_core.orchestration.events import (
    AnswerDelta,
    Planned,
    RunFinished,
    StepEnded,
    StepResult,
    StepStarted,
)
from podium_core.orchestration.ports import AttemptResult, Delta, PlanReply, Receipt
from podium_gateway.answers import AnswerContext, RunFailedError, StreamedAnswer
from podium_gateway.codecs.openai_answer import completion_object
from podium_gateway.codecs.podium_object import PodiumView
from podium_gateway.fronts.chat import ChatRendering

RECEIPT = Receipt("run_1", (3, 4, 7), "note")
PLAN = Plan((Step("alpha", "do it", fallback_worker_id="beta"),), PlanSource.RULES)
VIEW = PodiumView(Caps(), {"team": "x"}, frozenset({"alpha"}))


def _step(**changes: Any) -> StepResult:
    attempts = (
        AttemptResult(
            "att_1", AttemptKind.STEP, "alpha", AttemptOutcome.FAILED, Usage(5, 1), 2, 900, "PROVIDER_FAILED"
        ),
        AttemptResult(
            "att_2", AttemptKind.STEP, "alpha", AttemptOutcome.COMPLETED, Usage(10, 5, 4, 0, 2), 7, 1_500
        ),
    )
    given: dict[str, Any] = {
        "round": 0,
        "step_index": 0,
        "worker_id": "alpha",
        "ok": True,
        "text": "Hello",
        "reasoning": "",
        "tool_calls": (),
        "finish_reason": "stop",
        "attempts": attempts,
        "started_us": 1_000,
        "ended_us": 4_000,
    }
    return StepResult(**{**given, **changes})


def _finished(**changes: Any) -> RunFinished:
    given: dict[str, Any] = {
        "run_id": "run_1",
        "outcome": RunOutcome.ANSWERED,
        "answer": _step(),
        "steps": (_step(),),
        "usage": Usage(10, 5, 4, 0, 2),
        "other_usage": Usage(25, 6, 3),
        "cost_usd_micros": 9,
        "duration_us": 5_000,
        "receipt": RECEIPT,
    }
    return RunFinished(**{**given, **changes})


def _answer(*, events: bool = False, usage: bool = False) -> StreamedAnswer:
    context = AnswerContext("run_1", "podium", 1_790_000_000, VIEW, lambda: None)
    return ChatRendering(events, usage).streamed(context)


def _datas(text: str) -> list[Any]:
    datas = [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: ")]
    return [data if data == "[DONE]" else json.loads(data) for data in datas]


def test_a_stream_speaks_first_then_talks_then_ends() -> None:
    answer = _answer()
    assert answer.render([Planned("run_1", PlanReply(PLAN), ()), StepStarted(0, 0, "alpha")]) == ""
    first = _datas(answer.render([AnswerDelta(Delta("Hel")), AnswerDelta(Delta("lo"))]))
    assert [chunk["choices"][0]["delta"] for chunk in first] == [
        {"role": "assistant", "content": "", "refusal": None},
        {"content": "Hel"},
        {"content": "lo"},
    ]
    assert {(c["id"], c["object"], c["created"], c["model"]) for c in first} == {
        ("chatcmpl-1", "chat.completion.chunk", 1_790_000_000, "podium")
    }
    assert not any("usage" in chunk for chunk in first)
    final, done = _datas(answer.render([StepEnded(_step()), _finished()]))
    assert final["choices"] == [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}]
    assert final["podium"]["receipt"] == {"run_id": "run_1", "leaf_indices": [3, 4, 7], "checkpoint": "note"}
    assert done == "[DONE]"
    assert answer.is_complete


def test_the_usage_chunk_comes_once_with_empty_choices_and_only_when_asked_for() -> None:
    datas = _datas(_answer(usage=True).render([AnswerDelta(Delta("x")), _finished()]))
    *chunks, usage, done = datas
    assert all(chunk["usage"] is None for chunk in chunks)
    assert usage["choices"] == []
    assert usage["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {
            "cached_tokens": 4,
            "orchestration_input_tokens": 25,
            "orchestration_input_cached_tokens": 3,
        },
        "completion_tokens_details": {"reasoning_tokens": 2, "orchestration_output_tokens": 6},
    }
    assert done == "[DONE]"


def test_step_events_are_chunks_without_choices_under_their_own_name() -> None:
    text = _answer(events=True).render(
        [
            Planned("run_1", PlanReply(PLAN), ()),
            StepStarted(0, 0, "alpha"),
            StepEnded(_step(worker_id="beta")),
        ]
    )
    assert text.count("event: podium\n") == 3
    role, *events = _datas(text)
    assert role["choices"][0]["delta"]["role"] == "assistant"
    assert [event["choices"] for event in events] == [[], [], []]
    assert [event["podium"]["event"] for event in events] == ["planned", "step_started", "step_ended"]
    planned = events[0]["podium"]["plan"]
    assert planned == {
        "source": "rules",
        "round": 0,
        "steps": [{"worker": "alpha", "demo": True, "subtask": "do it", "access": [], "fallback": "beta"}],
    }
    assert events[1]["podium"]["demo"] is True
    assert "demo" not in events[2]["podium"]


@pytest.mark.parametrize("text", ["\u2028\u2029\u0085", 'q"\\\n\r\t\0', "日本語 😀", "</script>"])
def test_text_survives_every_line_splitter(text: str) -> None:
    chunk = _answer().render([AnswerDelta(Delta(text))])
    assert len(chunk.splitlines()) == chunk.count("\n")
    assert _datas(chunk)[1]["choices"][0]["delta"] == {"content": text}


def test_tool_calls_keep_their_indices_and_get_them_where_missing() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}
    chunks = _datas(
        _answer().render(
            [
                AnswerDelta(Delta(tool_calls=({"index": 1, **call},))),
                AnswerDelta(Delta(tool_calls=(call, call))),
            ]
        )
    )
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks[1:]]
    assert [c["index"] for c in deltas[0]["tool_calls"]] == [1]
    assert [c["index"] for c in deltas[1]["tool_calls"]] == [0, 1]


def test_reasoning_and_text_in_one_delta_become_two_chunks() -> None:
    chunks = _datas(_answer().render([AnswerDelta(Delta("so", "hm"))]))
    assert [c["choices"][0]["delta"] for c in chunks[1:]] == [{"reasoning_content": "hm"}, {"content": "so"}]


def test_an_answer_that_was_never_streamed_is_sent_whole() -> None:
    chunks = _datas(_answer().render([_finished()]))
    assert [c["choices"][0]["delta"] for c in chunks[:-1]][1] == {"content": "Hello"}


def test_a_failed_run_ends_with_its_error_and_done() -> None:
    answer = _answer()
    answer.render([AnswerDelta(Delta("He"))])
    error = PodiumError(Code.PROVIDER_FAILED, "the worker failed")
    event, done = _datas(answer.render([_finished(outcome=RunOutcome.FAILED, answer=None, error=error)]))
    assert event["error"] == {
        "message": "the worker failed",
        "type": "server_error",
        "code": "provider_failed",
        "param": None,
    }
    assert event["podium"]["receipt"]["leaf_indices"] == [3, 4, 7]
    assert done == "[DONE]"


def test_a_failed_seal_ends_without_done() -> None:
    answer = _answer()
    answer.render([AnswerDelta(Delta("He"))])
    error = PodiumError(Code.AUDIT_UNAVAILABLE, "gone")
    (event,) = _datas(answer.render([_finished(receipt=None, error=error)]))
    assert event["error"]["code"] == "seal_failed"
    assert answer.is_complete


def test_before_the_first_byte_a_failure_is_a_status() -> None:
    error = PodiumError(Code.DEADLINE, "too late", retry_after_s=None)
    with pytest.raises(RunFailedError) as caught:
        _answer().raise_if_failed(_finished(outcome=RunOutcome.FAILED, answer=None, error=error))
    assert caught.value.code is Code.DEADLINE
    assert caught.value.metadata["run_id"] == "run_1"
    assert caught.value.podium["outcome"] == "failed"


def test_the_whole_answer_says_what_was_billed_and_who_did_what() -> None:
    finished = _finished()
    podium = VIEW.finished(finished, [PlanReply(PLAN)])
    body = completion_object(finished, model="podium", created=1, podium=podium)
    assert body["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hello", "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ]
    usage = podium["usage"]
    assert isinstance(usage, dict)
    assert usage["billed"]["input_tokens"] == 35
    assert usage["billed"]["total_tokens"] == 46
    assert podium["metadata"] == {"team": "x"}
    steps = podium["steps"]
    assert isinstance(steps, list)
    (step,) = steps
    assert (step["worker"], step["demo"], step["ok"], step["latency_ms"], step["cost_usd_micros"]) == (
        "alpha",
        True,
        True,
        3,
        9,
    )
    assert [attempt["error"] for attempt in step["attempts"]] == ["provider_failed", None]


def test_an_answer_of_tool_calls_only_has_null_content() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    step = _step(text="", tool_calls=(call,), finish_reason="tool_calls")
    body = completion_object(_finished(answer=step), model="podium", created=1, podium={})
    choices = body["choices"]
    assert isinstance(choices, list)
    assert choices[0]["message"]["content"] is None
    assert choices[0]["message"]["tool_calls"] == [call]
