from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium_cli.sse import ServerEvent, SseDecoder

STREAM = (
    ": keep-alive\n\n"
    'data: {"a": "Grüße 🎼"}\n\n'
    "event: podium\r\ndata: one\r\ndata: two\r\n\r\n"
    "id: 7\nretry: 3\ndata:no space\n\n"
    "event: lonely\n\n"
    "data: [DONE]\n\n"
).encode()
EVENTS = [
    ServerEvent("message", '{"a": "Grüße 🎼"}'),
    ServerEvent("podium", "one\ntwo"),
    ServerEvent("message", "no space"),
    ServerEvent("message", "[DONE]"),
]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(0, len(STREAM)), max_size=12).map(sorted))
def test_bytes_may_be_cut_anywhere(cuts: list[int]) -> None:
    decoder = SseDecoder()
    pieces = [STREAM[a:b] for a, b in zip([0, *cuts], [*cuts, len(STREAM)], strict=True)]
    assert [event for piece in pieces for event in decoder.feed(piece)] == EVENTS


def test_an_event_that_was_not_finished_is_not_an_event() -> None:
    assert SseDecoder().feed(b"data: half") == []


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=80))
def test_any_bytes_decode(data: bytes) -> None:
    SseDecoder().feed(data)
