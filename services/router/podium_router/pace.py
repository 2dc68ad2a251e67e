"""How fast a worker answers lately, and at what length: learned from traffic, for whoever lists workers."""

from podium_core.domain.pool import LiveEstimate

_MEMORY = 20
"""Answers that the mean is about: older ones fade."""

_US_PER_S = 1_000_000


class Pace:
    """Running means of one worker. The first answers count alike; later each new one weighs a twentieth."""

    def __init__(self) -> None:
        self._count = 0
        self._tokens = 0.0
        self._latency_us = 0.0

    def learn(self, output_tokens: int, latency_us: int) -> None:
        """Take in one whole answer. One without tokens or time says nothing."""
        if output_tokens <= 0 or latency_us <= 0:
            return
        self._count += 1
        weight = 1 / min(self._count, _MEMORY)
        self._tokens += weight * (output_tokens - self._tokens)
        self._latency_us += weight * (latency_us - self._latency_us)

    @property
    def estimate(self) -> LiveEstimate | None:
        """What is known; None before the first answer."""
        if not self._count:
            return None
        return LiveEstimate(
            answer_count=self._count,
            output_tokens_per_second=max(1, round(self._tokens * _US_PER_S / self._latency_us)),
            output_tokens_per_answer=max(1, round(self._tokens)),
        )
