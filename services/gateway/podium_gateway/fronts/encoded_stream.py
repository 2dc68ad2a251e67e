"""Streams of protocols that open with an event of their own and are written by one encoder."""

from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

from podium_core.orchestration.events import RunFinished, StepResult
from podium_core.orchestration.ports import Delta
from podium_gateway.answers import AnswerContext, Answered, StreamedAnswer


class Encoder(Protocol):
    """Writes one answer's events, in order."""

    def start(self) -> str:
        """Return the opening."""
        ...

    def delta(self, delta: Delta) -> str:
        """Return output."""
        ...

    def finish(self, finished: RunFinished, answer: StepResult, podium: Mapping[str, object]) -> str:
        """Return the good end."""
        ...


E = TypeVar("E", bound=Encoder)


class EncodedStream(StreamedAnswer, Generic[E]):
    """Opens the stream before whatever comes first."""

    def __init__(self, context: AnswerContext, encoder: E) -> None:
        super().__init__(context)
        self._encoder = encoder
        self._is_started = False

    def _delta(self, delta: Delta, texts: list[str]) -> None:
        self._start(texts)
        texts.append(self._encoder.delta(delta))

    def _answered(self, done: Answered, texts: list[str]) -> None:
        self._start(texts)
        texts.append(self._encoder.finish(done.finished, done.answer, done.podium))

    def _start(self, texts: list[str]) -> None:
        if not self._is_started:
            self._is_started = True
            texts.append(self._encoder.start())
