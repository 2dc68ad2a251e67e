"""What the engine needs from a served language model. `serving` gives it with vLLM, tests with a script."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to choose tokens. Temperature 0 is greedy; above, the seed decides."""

    temperature: float = 0.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Generation:
    """What came after a prompt. `cut` says that the token limit ended it; `cached` counts prompt tokens."""

    text: str
    token_ids: tuple[int, ...]
    cut: bool
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Load:
    """What the model is doing now; `kv_cache` is the used share. Prefix figures count tokens since start."""

    running: int = 0
    waiting: int = 0
    kv_cache: float = 0.0
    prefix_asked: int = 0
    prefix_found: int = 0


class TextModel(Protocol):
    """A language model that is loaded. Every await can be cancelled, which frees its place at once."""

    @property
    def context_tokens(self) -> int:
        """The most tokens of prompt and completion together."""
        ...

    def render(self, system: str, user: str, prefill: str) -> str:
        """Return the chat as the model's template writes it, with the beginning of the reply.

        Nothing within `system` and `user` acts as a special token.
        """
        ...

    def encode(self, text: str) -> list[int]:
        """Return the tokens of `text`, special ones recognised, none added."""
        ...

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of tokens, special ones left out."""
        ...

    async def generate(
        self,
        prompt: Sequence[int],
        *,
        max_tokens: int,
        sampling: Sampling,
        grammar: str | None = None,
        stop: tuple[str, ...] = (),
    ) -> Generation:
        """Continue a prompt. Raises PodiumError UNAVAILABLE (MODEL_STOPPED) when the model is gone."""
        ...

    async def log_probabilities(self, prompt: Sequence[int], tokens: Sequence[int]) -> Mapping[int, float]:
        """Return the natural log-probability of each of `tokens` coming next, without any grammar."""
        ...

    def load(self) -> Load:
        """Return what is going on."""
        ...

    def is_stopped(self) -> bool:
        """Tell whether it has died; it never comes back."""
        ...

    async def close(self) -> None:
        """Stop the model and free its memory."""
        ...
