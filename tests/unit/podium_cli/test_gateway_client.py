import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium_cli.gateway_client import News, read_event
from podium_cli.sse import ServerEvent


def event(data: Any, name: str = "message") -> list[News]:
    return read_event(ServerEvent(name, json.dumps(data)))


def chunk(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}], **more}


def test_text_comes_from_chunks() -> None:
    assert event(chunk({"content": "42"})) == [News("text", {"text": "42"})]
    assert event(chunk({"role": "assistant", "content": ""})) == []
    assert event(chunk({"tool_calls": []})) == []


def test_step_events_are_told_apart_from_the_answer() -> None:
    step = {"event": "step_started", "step": 1, "worker": "demo-text"}
    assert event({"choices": [], "podium": step}, "podium") == [News("step_started", step)]
    bare = {"type": "plan", "source": "rules", "steps": []}
    assert event(bare, "podium") == [News("planned", bare)]
    assert event({"type": "something_new"}, "podium") == []


def test_the_last_chunk_brings_everything() -> None:
    whole = {"run_id": "run_1", "outcome": "answered"}
    assert event(chunk({}, podium=whole)) == [News("finished", whole)]
    assert event({"error": {"message": "no", "code": "x"}}) == [News("error", {"message": "no", "code": "x"})]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["choices", "delta", "content", "podium", "event", "type", "error", "steps"]),
                inner,
            )
        ),
        max_leaves=8,
    ),
    st.sampled_from(["message", "podium"]),
)
def test_nothing_that_a_gateway_sends_makes_it_raise(data: Any, name: str) -> None:
    event(data, name)
    read_event(ServerEvent(name, "not json"))
