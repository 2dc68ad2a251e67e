"""Workers and their cards: what a run may choose from."""

from dataclasses import dataclass, field
from enum import StrEnum

from podium_core.domain.usage import Price


class Health(StrEnum):
    """Whether a worker can be called now."""

    UP = "up"
    DOWN = "down"
    PAUSED = "paused"
    UNCONFIGURED = "unconfigured"


@dataclass(frozen=True, slots=True)
class Skill:
    """A measured strength: the share of graded items answered correctly, in millionths."""

    name: str
    accuracy_ppm: int
    sample_count: int
    measured_on: str


_MS_PER_S = 1_000

EMBEDDINGS_FEATURE = "embeddings"
"""A worker with this feature turns texts into vectors, and does nothing else."""


@dataclass(frozen=True, slots=True)
class Card:
    """What is known of a worker: strengths, speed, window, and what it can take in and do.

    `reasoning_efforts` are the names of `reasoning_effort` that it takes; none: it takes no such field.
    """

    skills: tuple[Skill, ...] = ()
    context_tokens: int = 0
    max_output_tokens: int = 0
    output_tokens_per_second: int = 0
    modalities: frozenset[str] = frozenset({"text"})
    features: frozenset[str] = frozenset()
    reasoning_efforts: tuple[str, ...] = ()

    @property
    def makes_embeddings(self) -> bool:
        """Whether the worker makes vectors of texts instead of answers."""
        return EMBEDDINGS_FEATURE in self.features

    @property
    def mean_accuracy_ppm(self) -> int:
        """Mean strength over the measured skills; 0 when nothing was measured."""
        return sum(s.accuracy_ppm for s in self.skills) // len(self.skills) if self.skills else 0


@dataclass(frozen=True, slots=True)
class LiveEstimate:
    """What one router has seen of a worker lately: means over recent answers, never accuracy or price.

    The speed counts output tokens over the whole time of the calls, waiting for the first included. Of twenty
    recent answers, nineteen were whole within `answer_p95_ms` or, streamed, began within
    `first_output_p95_ms`; 0: not known yet.
    """

    answer_count: int
    output_tokens_per_second: int
    output_tokens_per_answer: int
    answer_p95_ms: int = 0
    first_output_p95_ms: int = 0


@dataclass(frozen=True, slots=True)
class Worker:
    """A model that can do a step."""

    worker_id: str
    provider: str
    provider_model: str
    card: Card
    price: Price | None
    region: str = ""
    health: Health = Health.UP
    is_demo: bool = False
    max_concurrency: int = 0
    live: LiveEstimate | None = None
    hedge_after_s: float | None = None
    """A second attempt may race one that has said nothing for this long. None: none does."""
    hedge_is_learned: bool = False
    """Whether that is so after as long as nineteen of twenty of its recent answers took."""

    def hedge_delay_s(self, *, streamed: bool) -> float | None:
        """Return after which silence a second attempt may race the first; None: none does, or not yet."""
        if not self.hedge_is_learned:
            return self.hedge_after_s
        live = self.live
        p95_ms = 0 if live is None else live.first_output_p95_ms if streamed else live.answer_p95_ms
        return p95_ms / _MS_PER_S if p95_ms else None


@dataclass(frozen=True, slots=True)
class Pool:
    """All workers of one moment, pinned by digests."""

    workers: tuple[Worker, ...]
    pool_digest: str
    price_digest: str
    by_id: dict[str, Worker] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_id", {w.worker_id: w for w in self.workers})
        if len(self.by_id) != len(self.workers):
            raise ValueError("worker ids must be unique")
