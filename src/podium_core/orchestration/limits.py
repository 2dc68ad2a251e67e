"""The server's own bounds on every run."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunnerLimits:
    """Bounds in seconds and counts; a request's caps can only be tighter.

    `retry_max_s` is the longest pause before a worker is asked again: one that asks for more is given up.
    """

    plan_timeout_s: float = 20.0
    step_timeout_s: float = 300.0
    run_timeout_s: float = 1_800.0
    seal_timeout_s: float = 15.0
    retry_base_s: float = 0.25
    retry_max_s: float = 5.0
    inner_step_output_tokens: int = 4_096
