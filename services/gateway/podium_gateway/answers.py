"""From a run's events to an answer, whichever protocol it is told in."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from podium_core.config.tenants import Principal
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.run import RunOutcome
from podium_core.orchestration.events import (
    AnswerDelta,
    Planned,
    RunEvent,
    RunFinished,
    StepResult,
)
from podium_core.orchestration.ports import Delta, PlanReply
from podium_gateway.codecs.client_request import ClientRequest
from podium_gateway.codecs.podium_object import PodiumView
from podium_gateway.live_run import LiveRun
from podium_gateway.sse import Heartbeat

RUN_ID_HEADER = "x-podium-run-id"
_REQUEST_ID_HEADERS = ("request-id", "x-request-id")


@dataclass(frozen=True, slots=True)
class AnswerContext:
    """What every answer to one request repeats."""

    run_id: str
    model: str
    created: int
    view: PodiumView
    on_first_output: Callable[[], None]

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every response of the run; Anthropic's and OpenAI's clients show the last two."""
        return dict.fromkeys((RUN_ID_HEADER, *_REQUEST_ID_HEADERS), self.run_id)


class RunFailedError(PodiumError):
    """A run that was performed and gave no answer, with everything else its client may know."""

    def __init__(self, error: PodiumError, podium: Mapping[str, object]) -> None:
        super().__init__(
            error.code,
            error.message,
            reason=error.reason,
            param=error.param,
            metadata=error.metadata,
            retry_after_s=error.retry_after_s,
        )
        self.podium = podium


@dataclass(frozen=True, slots=True)
class Answered:
    """A run that gave an answer: the answering step, and what the client may know of the run."""

    finished: RunFinished
    answer: StepResult
    podium: Mapping[str, object]


class StreamedAnswer(ABC):
    """Renders a run's events as server-sent events, each batch as one text.

    A subclass per protocol says how; this class says when.
    """

    def __init__(self, context: AnswerContext) -> None:
        self._context = context
        self._plans: list[PlanReply] = []
        self._has_output = False
        self._choice = 0
        """Which answer the output belongs to, where several were asked for."""
        self.is_complete = False
        self.is_answered = False

    def render(self, events: Sequence[RunEvent]) -> str:
        """Return the text of a batch; empty when it holds nothing for this client."""
        texts: list[str] = []
        for event in events:
            if isinstance(event, AnswerDelta):
                self._choice = event.choice
                self._output(event.delta, texts)
            elif isinstance(event, RunFinished):
                self._finish(event, texts)
            else:
                if isinstance(event, Planned):
                    self._plans.append(event.reply)
                self._news(event, texts)
        return "".join(texts)

    def failed(self, error: PodiumError) -> str:
        """Return the end of a stream whose run gave no result."""
        self.is_complete = True
        return self._failed(error, None, is_sealed=True)

    def raise_if_failed(self, finished: RunFinished) -> None:
        """Raise what a status code must say about a run that gave no answer."""
        answered(finished, self._podium(finished))

    @abstractmethod
    def keep_alive(self) -> str:
        """Return what shows this protocol's readers that the run is still at work."""

    @abstractmethod
    def _news(self, event: RunEvent, texts: list[str]) -> None:
        """Add what is told of an event that is neither output nor the end."""

    @abstractmethod
    def _delta(self, delta: Delta, texts: list[str]) -> None:
        """Add output."""

    @abstractmethod
    def _answered(self, done: Answered, texts: list[str]) -> None:
        """Add the good end. All output has been added."""

    @abstractmethod
    def _failed(self, error: PodiumError, podium: Mapping[str, object] | None, *, is_sealed: bool) -> str:
        """Return the bad end. Without a seal nothing that was said is proven: it must not look whole."""

    def _output(self, delta: Delta, texts: list[str]) -> None:
        if not self._has_output:
            self._has_output = True
            self._context.on_first_output()
        self._delta(delta, texts)

    def _finish(self, finished: RunFinished, texts: list[str]) -> None:
        self.is_complete = True
        podium = self._podium(finished)
        try:
            done = answered(finished, podium)
        except RunFailedError as error:
            texts.append(self._failed(error, podium, is_sealed=finished.receipt is not None))
            return
        answer = done.answer
        if not self._has_output and answer.delta.has_output:
            self._output(answer.delta, texts)
        self.is_answered = True
        self._answered(done, texts)

    def _podium(self, finished: RunFinished) -> dict[str, object]:
        return self._context.view.finished(finished, self._plans)


class Rendering(Protocol):
    """How one request's answer is told."""

    def whole(self, done: Answered, context: AnswerContext) -> str:
        """Return the body of an answer that is not streamed."""
        ...

    def dry_run(self, podium: Mapping[str, object], context: AnswerContext) -> str:
        """Return the body of a dry run's answer."""
        ...

    def streamed(self, context: AnswerContext) -> StreamedAnswer:
        """Return a renderer of one streamed answer."""
        ...


Fields = Mapping[str, object]


def _nothing(_: Fields) -> Sequence[Fields]:
    return ()


@dataclass(frozen=True, slots=True)
class Asked:
    """One decoded request, and how its answer is told.

    `keep` is called with the answer before the client hears of its end. A run that `is_detached` goes on
    without its client, who reads the response later; `conversation_after` are the messages it ends; those
    from `asked[0]` to before `asked[1]` came with the request.
    """

    request: ClientRequest
    rendering: Rendering
    keep: Callable[[Answered, AnswerContext], Awaitable[None]] | None = None
    is_detached: bool = False
    conversation_after: Callable[[Fields], Sequence[Fields]] = _nothing
    asked: tuple[int, int] = (0, 0)


class Front(Protocol):
    """One protocol that clients speak."""

    async def decode(self, body: bytes, principal: Principal) -> Asked:
        """Return what the client asks for; raise PodiumError naming the field to blame."""
        ...


async def next_text(run: LiveRun, answer: StreamedAnswer, heartbeat: Heartbeat, *, is_open: bool) -> str:
    """Return what to send next; raise PodiumError while a status code can still say it (not `is_open`)."""
    try:
        events = await run.batch()
    except PodiumError as error:
        if not is_open:
            error.metadata.setdefault("run_id", run.run_id)
            raise
        return answer.failed(error)
    last = events[-1] if events else None
    if isinstance(last, RunFinished) and not is_open:
        answer.raise_if_failed(last)
    text = answer.render(events)
    if not text and heartbeat.is_due:
        text = answer.keep_alive()
    return text


async def kept_events(
    events: AsyncGenerator[RunEvent, None], asked: Asked, context: AnswerContext
) -> AsyncGenerator[RunEvent, None]:
    """Yield a run's events, keeping its answer, if it is to be kept, before its end is told."""
    plans: list[PlanReply] = []
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Planned):
                plans.append(event.reply)
            elif isinstance(event, RunFinished) and asked.keep is not None:
                try:
                    done = answered(event, context.view.finished(event, plans))
                except RunFailedError:
                    pass  # nothing to keep
                else:
                    await asked.keep(done, context)
            yield event


async def whole_answer(run: LiveRun, context: AnswerContext) -> Answered:
    """Return the answer once the run is sealed; raise PodiumError when it gave none."""
    plans: list[PlanReply] = []
    while True:
        try:
            events = await run.batch()
        except PodiumError as error:
            error.metadata.setdefault("run_id", run.run_id)
            raise
        for event in events:
            if isinstance(event, Planned):
                plans.append(event.reply)
            elif isinstance(event, RunFinished):
                done = answered(event, context.view.finished(event, plans))
                context.on_first_output()
                return done


def answered(finished: RunFinished, podium: Mapping[str, object]) -> Answered:
    """Return the run's answer; raise RunFailedError when there is none that may be given out."""
    error = finished.error
    if finished.receipt is None:
        error = PodiumError(
            Code.AUDIT_UNAVAILABLE,
            "the run was performed but could not be sealed, so its answer is withheld",
            reason="SEAL_FAILED",
        )
    elif finished.outcome is RunOutcome.ANSWERED and finished.answer is not None:
        return Answered(finished, finished.answer, podium)
    failure = RunFailedError(error or PodiumError(Code.INTERNAL, "the run ended without an answer"), podium)
    failure.metadata.setdefault("run_id", finished.run_id)
    raise failure
