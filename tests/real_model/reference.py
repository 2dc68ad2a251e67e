"""The model's log-probabilities computed again, by transformers in float32, token by token as they stand."""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from podium_conductor.engines.vllm.model import TextModel

Lookup = tuple[tuple[int, ...], dict[int, float]]


class Recorded:
    """A TextModel that remembers every log-probability it was asked for."""

    def __init__(self, model: TextModel) -> None:
        self._model = model
        self.lookups: list[Lookup] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def log_probabilities(self, prompt: Sequence[int], tokens: Sequence[int]) -> dict[int, float]:
        found = dict(await self._model.log_probabilities(prompt, tokens))
        self.lookups.append((tuple(prompt), found))
        return found


class Reference:
    """A checkpoint in transformers, with or without a LoRA adapter."""

    def __init__(self, folder: Path, adapter: Path | None = None) -> None:
        import torch
        from peft import PeftModel
        from transformers import AutoModelForCausalLM

        self._torch = torch
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        if adapter is not None:
            self._model = PeftModel.from_pretrained(self._model, adapter).eval()

    def log_probabilities(
        self, prompts: Sequence[Sequence[int]], wanted: Sequence[Sequence[int]]
    ) -> list[dict[int, float]]:
        """Return for each prompt the log-probability of each wanted token coming next."""
        torch = self._torch
        shared = _shared(prompts)
        found = []
        with torch.inference_mode():
            cache = None
            if shared:
                cache = self._model(
                    torch.tensor([list(prompts[0][:shared])]), use_cache=True, logits_to_keep=1
                ).past_key_values
            for prompt, tokens in zip(prompts, wanted, strict=True):
                rest = torch.tensor([list(prompt[shared:])])
                out = self._model(
                    rest, past_key_values=copy.deepcopy(cache), use_cache=True, logits_to_keep=1
                )
                logs = torch.log_softmax(out.logits[0, -1].double(), dim=-1)
                found.append({token: float(logs[token]) for token in tokens})
        return found


def differences(lookups: Sequence[Lookup], reference: Sequence[dict[int, float]]) -> list[float]:
    """Return how far each recorded log-probability is from the reference, in nats."""
    return [
        abs(found[token] - expected[token])
        for (_, found), expected in zip(lookups, reference, strict=True)
        for token in found
    ]


def _shared(prompts: Sequence[Sequence[int]]) -> int:
    """Return the length of the longest common beginning that leaves each prompt a token."""
    shortest = min(map(len, prompts)) - 1
    count = 0
    while count < shortest and len({prompt[count] for prompt in prompts}) == 1:
        count += 1
    return count
