"""An instruction model in a folder, on this machine, as a text model that plans by prompt alone."""

from pathlib import Path
from typing import Any

from podium_core.domain.errors import invalid
from podium_core.domain.plan_prompt import PlanPrompt
from podium_core.domain.usage import Usage
from podium_train.evaluation.prompted import Reply
from podium_train.learning.prompts import ChatWriter

MAX_NEW_TOKENS = 256
"""Longer replies are cut, and then usually no plan."""


class LocalModel:
    """Greedy replies of a model that transformers reads. One at a time: it fills the machine by itself."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._writer = ChatWriter(tokenizer)

    async def reply(self, prompt: PlanPrompt, seed: int) -> Reply:
        """Return the likeliest continuation; `seed` changes nothing, as nothing is drawn."""
        del seed
        read = self._tokenizer(self._writer.text(prompt), return_tensors="pt", add_special_tokens=False)
        given = read["input_ids"].shape[1]
        made = self._model.generate(**read, do_sample=False, max_new_tokens=MAX_NEW_TOKENS)[0][given:]
        text = self._tokenizer.decode(made, skip_special_tokens=True)
        return Reply(text, Usage(given, len(made)))


def local_model(folder: Path) -> LocalModel:
    """Load the model in `folder`, which is never looked up in a hub.

    Raises PodiumError TRAIN_EXTRA_MISSING without transformers, INVALID_REQUEST for a folder without a model
    or a model without a chat template.
    """
    try:
        from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415 - optional and slow
    except ImportError:
        raise invalid(
            "a prompted model needs transformers and torch: install requirements/train.txt",
            reason="TRAIN_EXTRA_MISSING",
        ) from None
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True).eval()
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError):
        raise invalid(f"--prompted {folder.name} holds no model that transformers can read") from None
    return LocalModel(model, tokenizer)
