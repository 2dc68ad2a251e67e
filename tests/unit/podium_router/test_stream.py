"""A whole stream gives the same answer however its bytes are cut."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from podium_router.answer import Answer
from podium_router.calls import Delta
from podium_router.providers.native import _take_events
from podium_router.providers.sse import SseParser
from tests.fakes.upstream import answer, chunk, event


class Sink:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.deltas: list[Delta] = []

    def put(self, delta: Delta) -> None:
        self.deltas.append(delta)

    @property
    def has_room(self) -> bool:
        return True

    async def room(self) -> None:
        return


def read(stream: bytes, cuts: list[int]) -> tuple[str, str, str, object, bool]:
    parser, taken, sink = SseParser(1_000_000), Answer(), Sink()
    places = [0, *sorted({cut % (len(stream) + 1) for cut in cuts}), len(stream)]
    is_done = False
    for start, end in pairwise(places):
        is_done = _take_events(parser.feed(stream[start:end]), taken, sink) or is_done
    assert "".join(delta.text for delta in sink.deltas) == taken.text
    return taken.text, taken.reasoning, taken.finish_reason, taken.usage, is_done


TEXTS = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12), min_size=1, max_size=8
)


@given(
    TEXTS,
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(0, 100_000), max_size=40),
    st.text(max_size=4),
)
def test_cuts_change_no_answer(texts: list[str], ending: str, cuts: list[int], reasoning: str) -> None:
    events = [
        b": hi\n\n",
        event({"choices": []}),
        event(chunk(None)),
        *answer(*texts, reasoning=reasoning).events,
    ]
    stream = b"".join(part.replace(b"\n", ending.encode()) for part in events)
    whole = read(stream, [])
    assert whole[0] == "".join(texts)
    assert whole[4]
    assert read(stream, cuts) == whole
    assert read(stream, list(range(len(stream)))) == whole
