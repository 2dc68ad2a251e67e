"""Events come out the same however the network cut their bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_router.providers.sse import EventTooLargeError, SseEvent, SseParser

LIMIT = 10_000


def parse(data: bytes, cuts: list[int] | None = None) -> list[SseEvent]:
    parser = SseParser(LIMIT)
    places = sorted({cut % (len(data) + 1) for cut in cuts or []})
    events: list[SseEvent] = []
    for start, end in zip([0, *places], [*places, len(data)], strict=True):
        events += parser.feed(data[start:end])
    return events + parser.finish()


def datas(data: bytes) -> list[bytes]:
    return [event.data for event in parse(data)]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b"data:a\n\n", [b"a"]),
        (b"data:  a\n\n", [b" a"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"data\ndata: b\n\n", [b"\nb"]),
        (b"data\n\n", [b""]),
        (b": keep-alive\n\n: another\n\ndata: a\n\n", [b"a"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"id: 7\nretry: 10\nunknown: x\ndata: a\n\n", [b"a"]),
        (b"\n\n\n\ndata: a\n\n\n\n", [b"a"]),
        (b"event: ping\n\ndata: a\n\n", [b"a"]),
        (b"data: a\n\ndata: cut", [b"a", b"cut"]),
        (b"data: a\n", [b"a"]),
        (b"", []),
    ],
)
def test_reads_what_the_standard_says(stream: bytes, expected: list[bytes]) -> None:
    assert datas(stream) == expected


def test_names_belong_to_their_own_event() -> None:
    assert parse(b"event: error\ndata: x\n\ndata: y\n\n") == [(b"error", b"x"), (b"", b"y")]


def test_a_name_without_data_is_forgotten() -> None:
    assert parse(b"event: error\n\ndata: y\n\n") == [(b"", b"y")]


def test_an_event_is_there_as_soon_as_its_blank_line_is() -> None:
    parser = SseParser(LIMIT)
    assert parser.feed(b"data: a\r\n") == []
    assert [event.data for event in parser.feed(b"\r")] == [b"a"]
    assert parser.feed(b"\ndata: b\r\n") == []
    assert [event.data for event in parser.feed(b"\r\n")] == [b"b"]


LINES = st.one_of(
    st.text(max_size=20)
    .filter(lambda text: not set(text) & {"\r", "\n"})
    .map(lambda text: f"data: {text}".encode()),
    st.sampled_from(
        [b"", b":", b": note", b"data", b"data:", b"event: error", b"id: 1", b"\xef\xbb\xbfdata: x"]
    ),
)


@given(
    st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r\n", b"\r"])), max_size=30),
    st.lists(st.integers(min_value=0, max_value=10_000), max_size=60),
)
def test_cuts_change_nothing(lines: list[tuple[bytes, bytes]], cuts: list[int]) -> None:
    stream = b"".join(line + ending for line, ending in lines)
    assert parse(stream, cuts) == parse(stream)
    assert parse(stream, list(range(len(stream)))) == parse(stream)


@given(st.binary(max_size=300), st.lists(st.integers(min_value=0, max_value=300), max_size=20))
def test_any_bytes_are_read_the_same_way_however_they_are_cut(data: bytes, cuts: list[int]) -> None:
    assert parse(data, cuts) == parse(data)


@pytest.mark.parametrize("piece", [b"x", b"x" * 100, b"data: x\n", b"data\n"])
def test_one_event_is_bounded(piece: bytes) -> None:
    parser = SseParser(LIMIT)

    def feed_for_ever() -> None:
        for _ in range(2 * LIMIT):
            parser.feed(piece)

    with pytest.raises(EventTooLargeError):
        feed_for_ever()


def test_many_events_are_not() -> None:
    parser = SseParser(100)
    for number in range(1_000):
        for piece in (
            b"da",
            b"ta: ",
            str(number).encode(),
            b"\n",
            b": a comment that counts for nothing\n",
            b"\n",
        ):
            events = parser.feed(piece)
        assert [event.data for event in events] == [str(number).encode()]
