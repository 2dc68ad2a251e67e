"""When a worker is asked again, and when it is not worth the wait."""

from typing import Final

from podium_core.domain.errors import Code, PodiumError
from podium_core.orchestration.context import RunContext

WORKER_STOPPED: Final = "WORKER_STOPPED"
"""The reason of audit's refusal while an operator keeps a worker from working: another may take over."""

_JITTER_STEPS: Final = 1_000


def pause_before_retry(context: RunContext, error: PodiumError, number: int) -> float | None:
    """Return how many seconds to wait before the same worker is asked again; None: do not ask it again.

    The back-off doubles with each attempt, with jitter. A provider that says when to come again is not asked
    sooner; one that asks for more than the run's patience or time is given up at once.
    """
    is_lasting = error.metadata.get("retryable") == "false" or error.reason == WORKER_STOPPED
    if is_lasting or error.code is Code.DEADLINE:
        return None
    limits, asked_s = context.limits, error.retry_after_s or 0.0
    jitter = context.ids.seed() % _JITTER_STEPS / _JITTER_STEPS
    pause_s = min(limits.retry_max_s, limits.retry_base_s * 2**number) * (0.5 + jitter / 2)
    if asked_s:
        # Later by a little, so that those who were refused together do not come again together.
        pause_s = max(pause_s, asked_s + limits.retry_base_s * jitter)
    return None if asked_s > limits.retry_max_s or pause_s > context.left_s else pause_s


def given_up(context: RunContext, error: PodiumError) -> PodiumError:
    """Return the error of a worker that is not asked again; it says so where the wait would be too long."""
    asked_s = error.retry_after_s
    patience_s = min(context.limits.retry_max_s, max(0.0, context.left_s))
    if asked_s is None or asked_s <= patience_s:
        return error
    return PodiumError(
        error.code,
        f"{error.message}; it asks for {asked_s:g} s, and this run waits for at most {patience_s:.3g} s",
        reason=error.reason,
        param=error.param,
        metadata=error.metadata,
        retry_after_s=asked_s,
    )
