"""The one step of a run of kind embed: one worker, one attempt, vectors instead of an answer."""

import asyncio

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.pool import Worker
from podium_core.domain.run import AttemptKind, AttemptOutcome
from podium_core.domain.usage import Usage, UsageSource, read_failure_facts
from podium_core.orchestration.context import RunContext
from podium_core.orchestration.events import StepResult
from podium_core.orchestration.ports import AttemptResult, EmbedCall, Embedded, EmbedPort


async def embed(context: RunContext, embedder: EmbedPort, worker: Worker) -> StepResult:
    """Make the attempt, on the run's account, and return the step, failed or not.

    It is never repeated here: vectors are cheap, and clients ask again by themselves.
    """
    started_us = context.elapsed_us
    attempt_id = context.ids.new("att")
    embedded: Embedded | None = None
    error: PodiumError | None = None
    try:
        reservation = context.ledger.reserve(context.fixed_input_tokens, 1, worker.price)
    except PodiumError as refusal:
        return _step(worker, (), started_us, context.elapsed_us, None, refusal)
    try:
        timeout_s = max(0.0, min(context.limits.step_timeout_s, context.left_s))
        async with asyncio.timeout(timeout_s):
            embedded = await embedder.embed(_call(context, worker, attempt_id, timeout_s))
    except PodiumError as failure:
        error = failure
    except TimeoutError:
        error = context.out_of_time()
    except asyncio.CancelledError:
        error = PodiumError(Code.CANCELLED, "the run was cancelled")
        raise
    finally:
        known = _account(embedded, error)
        usage, cost = known or (Usage(source=UsageSource.UNKNOWN), reservation.cost_usd_micros)
        if known is not None:
            context.ledger.settle(reservation, usage, cost)
        attempt = AttemptResult(
            attempt_id,
            AttemptKind.EMBED,
            worker.worker_id,
            AttemptOutcome.COMPLETED if error is None else _outcome(error),
            usage,
            cost,
            context.elapsed_us - started_us,
            error.reason if error else "",
        )
        context.attempts.append(attempt)
    return _step(worker, (attempt,), started_us, context.elapsed_us, embedded, error)


def _call(context: RunContext, worker: Worker, attempt_id: str, timeout_s: float) -> EmbedCall:
    content = context.question.last.fields.get("content")
    dimensions = context.parameters.get("dimensions")
    return EmbedCall(
        attempt_id=attempt_id,
        run_id=context.run_id,
        tenant_id=context.tenant_id,
        worker_id=worker.worker_id,
        pool_digest=context.pool.pool_digest,
        inputs=tuple(content) if isinstance(content, list) else (),
        dimensions=dimensions if isinstance(dimensions, int) else 0,
        timeout_s=timeout_s,
    )


def _account(embedded: Embedded | None, error: PodiumError | None) -> tuple[Usage, int] | None:
    """Return usage and cost, as far as anybody knows them."""
    if embedded is not None:
        return embedded.usage, embedded.cost_usd_micros
    return read_failure_facts(error.metadata) if error is not None else None


def _outcome(error: PodiumError) -> AttemptOutcome:
    if error.code is Code.CANCELLED:
        return AttemptOutcome.CANCELLED
    return AttemptOutcome.TIMED_OUT if error.code is Code.DEADLINE else AttemptOutcome.FAILED


def _step(
    worker: Worker,
    attempts: tuple[AttemptResult, ...],
    started_us: int,
    ended_us: int,
    embedded: Embedded | None,
    error: PodiumError | None,
) -> StepResult:
    return StepResult(
        round=0,
        step_index=0,
        worker_id=worker.worker_id,
        ok=embedded is not None,
        text="",
        reasoning="",
        tool_calls=(),
        finish_reason="stop" if embedded is not None else "",
        attempts=attempts,
        started_us=started_us,
        ended_us=ended_us,
        error=error,
        vectors=embedded.vectors if embedded is not None else (),
    )
