"""A language model of the vLLM engine's port that writes what a test says; its tokens are characters."""

import asyncio
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence

from podium_conductor.engines.vllm.model import Generation, Load, Sampling

PLAN = 'model_id = [0]\nsubtasks = ["Do it."]\naccess_list = [[]]'
Script = Callable[[str, str | None], str]


class FakeTextModel:
    """Continues every prompt with `script(prompt, grammar)`, cut at the token limit."""

    def __init__(self, script: Script = lambda prompt, grammar: PLAN, context_tokens: int = 40_000) -> None:
        self._script = script
        self._context_tokens = context_tokens
        self.prompts: list[str] = []
        self.samplings: list[Sampling] = []
        self.hold: asyncio.Event | None = None
        self.running = 0
        self.closed = False
        self.stopped = False

    @property
    def context_tokens(self) -> int:
        return self._context_tokens

    def render(self, system: str, user: str, prefill: str) -> str:
        return f"S:{system}\nU:{user}\nA:{prefill}"

    def encode(self, text: str) -> list[int]:
        return [ord(character) for character in text]

    def decode(self, token_ids: Sequence[int]) -> str:
        return "".join(map(chr, token_ids))

    async def generate(
        self,
        prompt: Sequence[int],
        *,
        max_tokens: int,
        sampling: Sampling,
        grammar: str | None = None,
        stop: tuple[str, ...] = (),
    ) -> Generation:
        assert not self.closed
        self.running += 1
        try:
            if self.hold is not None:
                await self.hold.wait()
            text = self.decode(prompt)
            self.prompts.append(text)
            self.samplings.append(sampling)
            written = "It is easy." if stop else self._script(text, grammar)
        finally:
            self.running -= 1
        cut = len(written) > max_tokens
        written = written[:max_tokens]
        return Generation(written, tuple(self.encode(written)), cut)

    async def log_probabilities(self, prompt: Sequence[int], tokens: Sequence[int]) -> Mapping[int, float]:
        return {token: self.log_probability(prompt, token) for token in tokens}

    def log_probability(self, prompt: Sequence[int], token: int) -> float:
        """Depends on the whole prompt, so that a wrong context shows."""
        digest = hashlib.sha256(f"{self.decode(prompt)}\0{token}".encode()).digest()
        return math.log((1 + digest[0]) / 2_000)

    def load(self) -> Load:
        return Load(running=self.running)

    def is_stopped(self) -> bool:
        return self.stopped

    async def close(self) -> None:
        self.closed = True
