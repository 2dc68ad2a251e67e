"""Collects what a worker says, streamed or not, into one output."""

from collections.abc import Mapping

from podium_core.orchestration.ports import Delta


class Output:
    """The output of one attempt as it grows."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._logprobs: list[Mapping[str, object]] = []
        self._tool_calls: dict[int, dict[str, object]] = {}

    def add(self, delta: Delta) -> None:
        """Take in a delta, or the whole message of a call that was not streamed."""
        if delta.text:
            self._text.append(delta.text)
        if delta.reasoning:
            self._reasoning.append(delta.reasoning)
        if delta.refusal:
            self._refusal.append(delta.refusal)
        self._logprobs.extend(delta.logprobs)
        for position, call in enumerate(delta.tool_calls):
            index = call.get("index", position)
            merged = self._tool_calls.setdefault(index if isinstance(index, int) else position, {})
            _merge(merged, call)

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        """The reasoning so far, as far as the provider shows it."""
        return "".join(self._reasoning)

    @property
    def refusal(self) -> str:
        """The refusal so far."""
        return "".join(self._refusal)

    @property
    def logprobs(self) -> tuple[Mapping[str, object], ...]:
        """The log-probabilities so far, one entry for each token."""
        return tuple(self._logprobs)

    @property
    def tool_calls(self) -> tuple[dict[str, object], ...]:
        """The tool calls so far, in index order, without their indices."""
        return tuple(self._tool_calls[index] for index in sorted(self._tool_calls))


def _merge(into: dict[str, object], piece: Mapping[str, object]) -> None:
    """Merge a tool call delta: ids and names are set, argument texts are appended (OpenAI streaming)."""
    for key, value in piece.items():
        if key == "index" or value is None:
            continue
        held = into.get(key)
        if isinstance(value, Mapping):
            nested = dict(held) if isinstance(held, Mapping) else {}
            _merge(nested, value)
            into[key] = nested
        elif key in ("arguments", "input") and isinstance(held, str) and isinstance(value, str):
            into[key] = held + value
        else:
            into[key] = value
