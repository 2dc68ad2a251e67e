"""The worker port in memory: each worker answers from a script, every call and its end are kept."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from podium_core.domain.errors import PodiumError
from podium_core.domain.usage import Usage
from podium_core.orchestration.ports import (
    Completion,
    Delta,
    Permitted,
    StepCall,
    WorkerEvent,
    WorkerPort,
)


@dataclass(frozen=True, slots=True)
class Reply:
    """What one attempt does.

    The text goes out word by word, or as `pieces`. `gate` holds back the first piece and `end_gate` the
    end. `error` comes after `pieces_before_error` pieces; with `permitted` false, before the permit.
    """

    text: str = "an answer"
    pieces: tuple[str, ...] = ()
    reasoning: str = ""
    tool_calls: tuple[dict[str, object], ...] = ()
    replay: Mapping[str, object] | None = None
    finish_reason: str = "stop"
    usage: Usage = Usage(input_tokens=10, output_tokens=5)
    cost_usd_micros: int = 7
    latency_us: int = 1_000
    error: PodiumError | None = None
    pieces_before_error: int = 0
    permitted: bool = True
    gate: asyncio.Event | None = None
    end_gate: asyncio.Event | None = None

    @property
    def streamed(self) -> tuple[str, ...]:
        """The text as it is streamed."""
        if self.pieces or not self.text:
            return self.pieces
        words = self.text.split(" ")
        return (*(word + " " for word in words[:-1]), words[-1])


WorkerScript = Reply | Sequence[Reply] | Callable[[StepCall], Reply]


@dataclass(slots=True)
class FakeWorkers(WorkerPort):
    """Replies by worker id; a sequence gives one reply per call of that worker, the last one repeats."""

    scripts: Mapping[str, WorkerScript] = field(default_factory=dict)
    default: Reply = Reply()
    calls: list[StepCall] = field(default_factory=list)
    log: list[tuple[str, str]] = field(default_factory=list)
    """(`begun` | `completed` | `failed` | `cancelled`, attempt id) in order."""

    def calls_of(self, worker_id: str) -> list[StepCall]:
        """Return the calls that one worker got."""
        return [call for call in self.calls if call.worker_id == worker_id]

    async def complete(self, call: StepCall) -> AsyncGenerator[WorkerEvent, None]:
        """Play the script."""
        self.calls.append(call)
        reply = self._reply(call)
        self.log.append(("begun", call.attempt_id))
        end = "cancelled"
        try:
            async with aclosing(self._play(call, reply)) as events:
                async for event in events:
                    yield event
            end = "completed"
        except PodiumError:
            end = "failed"
            raise
        finally:
            self.log.append((end, call.attempt_id))

    def _reply(self, call: StepCall) -> Reply:
        script = self.scripts.get(call.worker_id, self.default)
        if isinstance(script, Reply):
            return script
        if isinstance(script, Sequence):
            return script[min(len(self.calls_of(call.worker_id)), len(script)) - 1]
        return script(call)

    async def _play(self, call: StepCall, reply: Reply) -> AsyncGenerator[WorkerEvent, None]:
        if reply.error is not None and not reply.permitted:
            raise reply.error
        yield Permitted(leaf_index=len(self.calls))
        if reply.gate is not None:
            await reply.gate.wait()
        count = reply.pieces_before_error if reply.error is not None else len(reply.streamed)
        if call.stream:
            if reply.reasoning:
                yield Delta(reasoning=reply.reasoning)
            for piece in reply.streamed[:count]:
                yield Delta(text=piece)
            if reply.tool_calls and reply.error is None:
                yield Delta(tool_calls=reply.tool_calls)
        if reply.error is not None:
            raise reply.error
        if reply.end_gate is not None:
            await reply.end_gate.wait()
        whole = Delta("".join(reply.streamed), reply.reasoning, reply.tool_calls)
        yield Completion(
            finish_reason=reply.finish_reason,
            usage=reply.usage,
            cost_usd_micros=reply.cost_usd_micros,
            latency_us=reply.latency_us,
            served_model=f"{call.worker_id}-model",
            message=Delta() if call.stream else whole,
            replay=reply.replay,
        )
