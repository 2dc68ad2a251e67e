"""How fast a worker answers lately, and at what length: learned from traffic, for whoever lists workers."""

from collections import deque

from podium_core.domain.pool import LiveEstimate

_MEMORY = 20
"""Answers that the mean is about: older ones fade."""

_WINDOW = 200
_FEWEST = 20
_US_PER_S = 1_000_000
_US_PER_MS = 1_000


class Pace:
    """Running means of one worker. The first answers count alike; later each new one weighs a twentieth."""

    def __init__(self) -> None:
        self._count = 0
        self._tokens = 0.0
        self._latency_us = 0.0
        self._answers = Waits()
        self._first_outputs = Waits()

    def learn(self, output_tokens: int, latency_us: int, first_output_us: int = 0) -> None:
        """Take in one whole answer, of which the first output came after `first_output_us` if streamed.

        One without tokens or time says nothing.
        """
        if output_tokens <= 0 or latency_us <= 0:
            return
        self._count += 1
        weight = 1 / min(self._count, _MEMORY)
        self._tokens += weight * (output_tokens - self._tokens)
        self._latency_us += weight * (latency_us - self._latency_us)
        if first_output_us:
            self._first_outputs.add(first_output_us)
        else:
            self._answers.add(latency_us)

    def learn_silence(self, waited_us: int, *, streamed: bool) -> None:
        """Take in that an answer was given up unheard, so that it would have taken longer than that."""
        (self._first_outputs if streamed else self._answers).add_unheard(waited_us)

    @property
    def estimate(self) -> LiveEstimate | None:
        """What is known; None before the first answer."""
        if not self._count:
            return None
        return LiveEstimate(
            answer_count=self._count,
            output_tokens_per_second=max(1, round(self._tokens * _US_PER_S / self._latency_us)),
            output_tokens_per_answer=max(1, round(self._tokens)),
            answer_p95_ms=self._answers.p95_ms,
            first_output_p95_ms=self._first_outputs.p95_ms,
        )


class Waits:
    """The most recent waits of one kind, and the time within which nineteen of twenty were over."""

    def __init__(self) -> None:
        self._waits_us: deque[int] = deque(maxlen=_WINDOW)

    def add(self, wait_us: int) -> None:
        """Take in a wait that is over."""
        self._waits_us.append(wait_us)

    def add_unheard(self, waited_us: int) -> None:
        """Take in a wait that was given up.

        It counts only beyond the present quantile: there it says that some waits are long, which would be
        forgotten where the long ones are those that are given up. A short one says nothing.
        """
        p95_us = self._p95_us
        if p95_us and waited_us >= p95_us:
            self._waits_us.append(waited_us)

    @property
    def p95_ms(self) -> int:
        """Milliseconds, at least 1; 0 while too few are known."""
        return -(-self._p95_us // _US_PER_MS)

    @property
    def _p95_us(self) -> int:
        count = len(self._waits_us)
        if count < _FEWEST:
            return 0
        return sorted(self._waits_us)[-(-count * 19 // 20) - 1]
