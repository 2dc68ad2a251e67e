"""Answers by what was asked: rollouts that ask the same worker the same thing pay once, also after a restart.

The key is the SHA-256 of worker, messages, parameters and output limit. The one-time tag that a prompt's
blocks carry is left out of it, as it differs each time and means nothing.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from podium_core.domain.usage import Usage, UsageSource
from podium_core.orchestration.histories import PREAMBLE
from podium_core.orchestration.ports import Completion, Delta, StepCall

_BEFORE_TAG, _, _AFTER_TAG = PREAMBLE.partition("{tag}")
_TAG = re.compile(re.escape(_BEFORE_TAG) + r"([0-9A-Za-z]{1,64})" + re.escape(_AFTER_TAG))
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Answered:
    """A finished call: what it said, what it used, what it cost when it was made."""

    text: str
    reasoning: str
    finish_reason: str
    usage: Usage
    cost_usd_micros: int
    latency_us: int

    @property
    def completion(self) -> Completion:
        """The event that ends the call in the runner's terms."""
        said = Delta(self.text, self.reasoning)
        return Completion(self.finish_reason, self.usage, self.cost_usd_micros, self.latency_us, message=said)


def key_of(call: StepCall) -> str:
    """Return what names the answer to a call: the same for the same question, whoever asks it and when."""
    pieces = [piece.text for piece in call.prompt.pieces]
    tag = _TAG.match(pieces[0]) if pieces else None
    asked = [piece.replace(tag[1], "\x00") for piece in pieces] if tag else pieces
    whole = {
        "version": _VERSION,
        "worker": call.worker_id,
        "history": [message.fields for message in call.prompt.history],
        "question": call.prompt.question.fields,
        "pieces": asked,
        "parameters": call.parameters,
        "max_output_tokens": call.max_output_tokens,
    }
    if call.prompt.turns:
        whole["turns"] = [turn.fields for turn in call.prompt.turns]
    return sha256(json.dumps(whole, sort_keys=True, default=str).encode()).hexdigest()


class AnswerCache:
    """Keeps answers in memory, and in a folder if one is given: one file an answer, written whole or not.

    A file that cannot be read is as good as none; one that cannot be written (a full disk) is only counted.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._known: dict[str, Answered] = {}
        self.unwritten_count = 0
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def get(self, key: str) -> Answered | None:
        """Return the answer kept under a key."""
        if key not in self._known and self._folder is not None:
            found = _read(self._folder / f"{key}.json")
            if found is not None:
                self._known[key] = found
        return self._known.get(key)

    def put(self, key: str, answered: Answered) -> None:
        """Keep an answer."""
        self._known[key] = answered
        if self._folder is None:
            return
        whole, partial = self._folder / f"{key}.json", self._folder / f"{key}.{os.getpid()}.partial"
        try:
            partial.write_text(json.dumps(_written(answered)), encoding="utf-8")
            partial.replace(whole)
        except OSError:
            self.unwritten_count += 1
            partial.unlink(missing_ok=True)


def _written(answered: Answered) -> Mapping[str, Any]:
    usage = answered.usage
    return {
        "version": _VERSION,
        "text": answered.text,
        "reasoning": answered.reasoning,
        "finish_reason": answered.finish_reason,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "usage_source": usage.source.value,
        "cost_usd_micros": answered.cost_usd_micros,
        "latency_us": answered.latency_us,
    }


def _read(path: Path) -> Answered | None:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        if told["version"] != _VERSION:
            return None
        return Answered(
            text=str(told["text"]),
            reasoning=str(told["reasoning"]),
            finish_reason=str(told["finish_reason"]),
            usage=Usage(
                int(told["input_tokens"]),
                int(told["output_tokens"]),
                source=UsageSource(told["usage_source"]),
            ),
            cost_usd_micros=int(told["cost_usd_micros"]),
            latency_us=int(told["latency_us"]),
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
