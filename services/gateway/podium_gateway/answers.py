"""From a run's events to what the client reads: one JSON body, or a stream of chunks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from aiohttp import web

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
from podium_gateway.codecs.openai_answer import (
    DONE,
    KEEP_ALIVE,
    ChunkEncoder,
    completion_object,
    error_event,
    json_text,
)
from podium_gateway.codecs.podium_object import PodiumView
from podium_gateway.errors import error_body
from podium_gateway.live_run import LiveRun

RUN_ID_HEADER = "x-podium-run-id"
_REQUEST_ID_HEADER = "x-request-id"


@dataclass(frozen=True, slots=True)
class AnswerContext:
    """What every answer to one request repeats."""

    run_id: str
    model: str
    created: int
    view: PodiumView
    wants_events: bool
    include_usage: bool
    on_first_output: Callable[[], None]

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every response of the run; official clients show the second one."""
        return {RUN_ID_HEADER: self.run_id, _REQUEST_ID_HEADER: self.run_id}


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


async def whole_answer(run: LiveRun, context: AnswerContext) -> web.Response:
    """Return the response once the run is sealed; raise PodiumError when it gave no answer."""
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
                podium = context.view.finished(event, plans)
                answer = answer_of(event, podium)
                context.on_first_output()
                body = completion_object(
                    event, answer, model=context.model, created=context.created, podium=podium
                )
                return web.Response(
                    text=json_text(body), content_type="application/json", headers=context.headers
                )


class StreamedAnswer:
    """Renders a run's events as server-sent events, each batch as one text."""

    def __init__(self, context: AnswerContext) -> None:
        self._context = context
        self._encoder = ChunkEncoder(
            context.run_id,
            model=context.model,
            created=context.created,
            include_usage=context.include_usage,
        )
        self._plans: list[PlanReply] = []
        self._has_role = False
        self._has_output = False
        self.is_complete = False

    def render(self, events: Sequence[RunEvent]) -> str:
        """Return the text of a batch; empty when it holds nothing for this client."""
        texts: list[str] = []
        for event in events:
            if isinstance(event, AnswerDelta):
                self._delta(event.delta, texts)
            elif isinstance(event, RunFinished):
                self._finish(event, texts)
            else:
                if isinstance(event, Planned):
                    self._plans.append(event.reply)
                if self._context.wants_events and (news := self._context.view.event(event)) is not None:
                    self._role(texts)
                    texts.append(self._encoder.event(news))
        return "".join(texts)

    def keep_alive(self) -> str:
        """Return a comment, which every reader skips."""
        return KEEP_ALIVE

    def failed(self, error: PodiumError) -> str:
        """Return the end of a stream whose run gave no result."""
        self.is_complete = True
        return error_event(error_body(error)) + DONE

    def raise_if_failed(self, finished: RunFinished) -> None:
        """Raise what a status code must say about a run that gave no answer."""
        answer_of(finished, self._podium(finished))

    def _role(self, texts: list[str]) -> None:
        if not self._has_role:
            self._has_role = True
            texts.append(self._encoder.role())

    def _delta(self, delta: Delta, texts: list[str]) -> None:
        if not self._has_output:
            self._has_output = True
            self._role(texts)
            self._context.on_first_output()
        texts.append(self._encoder.delta(delta))

    def _finish(self, finished: RunFinished, texts: list[str]) -> None:
        self.is_complete = True
        podium = self._podium(finished)
        try:
            answer = answer_of(finished, podium)
        except RunFailedError as error:
            # Without a seal there is no proof of what was just said, so the stream must not end well.
            end = "" if finished.receipt is None else DONE
            texts.append(error_event({**error_body(error), "podium": podium}) + end)
            return
        if not self._has_output and (answer.text or answer.reasoning or answer.tool_calls):
            self._delta(Delta(answer.text, answer.reasoning, answer.tool_calls), texts)
        self._role(texts)
        texts.append(self._encoder.finish(finished, answer.finish_reason, podium) + DONE)

    def _podium(self, finished: RunFinished) -> dict[str, object]:
        return self._context.view.finished(finished, self._plans)


def answer_of(finished: RunFinished, podium: Mapping[str, object]) -> StepResult:
    """Return the answering step; raise RunFailedError when there is none that may be given out."""
    error = finished.error
    if finished.receipt is None:
        error = PodiumError(
            Code.AUDIT_UNAVAILABLE,
            "the run was performed but could not be sealed, so its answer is withheld",
            reason="SEAL_FAILED",
        )
    elif finished.outcome is RunOutcome.ANSWERED and finished.answer is not None:
        return finished.answer
    failure = RunFailedError(error or PodiumError(Code.INTERNAL, "the run ended without an answer"), podium)
    failure.metadata.setdefault("run_id", finished.run_id)
    raise failure
