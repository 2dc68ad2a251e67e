"""What an answer must be besides words: the contract between a client and its answering step.

A contract is checked when the answer is complete. A breach gets one repair, an attempt of its own on the
run's account; what is still in breach then is an error that names what was not met.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.run import Message
from podium_core.orchestration.outputs import Output
from podium_core.orchestration.ports import Delta, StepPrompt

_UNFINISHED = frozenset({"length", "content_filter"})
_NO_WORDS = "(no text)"


@dataclass(frozen=True, slots=True)
class Breach:
    """How an answer breaks its contract: what the client is told, and what the worker is."""

    error: PodiumError
    advice: str


class AnswerContract(Protocol):
    """What was promised of an answer."""

    @property
    def is_streamable(self) -> bool:
        """Whether an answer may be given out before it is whole."""
        ...

    def opens(self, delta: Delta) -> bool:
        """Whether with this output the contract can no longer be broken, so that it may be given out."""
        ...

    async def breach(self, output: Output) -> Breach | None:
        """Return how a whole answer breaks the contract; None when it keeps it.

        Raises PodiumError when that cannot be found out.
        """
        ...


@dataclass(frozen=True, slots=True)
class AllOf:
    """Several contracts at once."""

    contracts: Sequence[AnswerContract]

    @property
    def is_streamable(self) -> bool:
        """Whether each allows it."""
        return all(contract.is_streamable for contract in self.contracts)

    def opens(self, delta: Delta) -> bool:
        """Whether each is out of danger."""
        return all(contract.opens(delta) for contract in self.contracts)

    async def breach(self, output: Output) -> Breach | None:
        """Return the first breach."""
        for contract in self.contracts:
            if (breach := await contract.breach(output)) is not None:
                return breach
        return None


@dataclass(frozen=True, slots=True)
class ToolContract:
    """`tool_choice`: a tool must be called (`name` None: any), or none may be (`is_forbidden`)."""

    name: str | None = None
    is_forbidden: bool = False

    @property
    def is_streamable(self) -> bool:
        """The first call decides."""
        return True

    def opens(self, delta: Delta) -> bool:
        """Whether the demanded call has begun, or words have where no call may come."""
        if self.is_forbidden:
            return bool(delta.text) and not delta.tool_calls
        return any(self._is_wanted(call) for call in delta.tool_calls)

    async def breach(self, output: Output) -> Breach | None:
        """Return the breach of an answer without the demanded call, or with a forbidden one."""
        calls = output.tool_calls
        if self.is_forbidden:
            broken, demand = bool(calls), "calls no tool"
        elif self.name is None:
            broken, demand = not calls, "calls a tool"
        else:
            broken = not calls or not all(self._is_wanted(call) for call in calls)
            demand = f"calls the tool {self.name}"
        if not broken:
            return None
        error = PodiumError(
            Code.PROVIDER_FAILED,
            "the worker did not do what tool_choice demands, not even when it was told once more;"
            " ask another worker or leave tool_choice out",
            reason="TOOL_CHOICE_NOT_MET",
            param="tool_choice",
        )
        return Breach(error, f"Your answer was not accepted: give one that {demand}, and nothing else.")

    def _is_wanted(self, call: Mapping[str, object]) -> bool:
        function = call.get("function")
        name = function.get("name") if isinstance(function, Mapping) else None
        return bool(name) if self.name is None else name == self.name


def tool_contract(parameters: Mapping[str, object]) -> ToolContract | None:
    """Return what the `tool_choice` of a request (OpenAI's chat API) promises; None for `auto`."""
    choice = parameters.get("tool_choice")
    if choice == "required":
        return ToolContract()
    if choice == "none":
        return ToolContract(is_forbidden=True)
    function = choice.get("function") if isinstance(choice, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    return ToolContract(name) if isinstance(name, str) else None


def is_bound(output: Output, finish_reason: str) -> bool:
    """Whether a contract holds for an answer: its finish reason tells of one cut short, and a no is a no."""
    return finish_reason not in _UNFINISHED and not output.refusal


def repair_prompt(prompt: StepPrompt, answer: str, advice: str) -> StepPrompt:
    """Return the prompt that asks once more: everything as before, the answer, and what is wrong with it."""
    turns = (("assistant", answer or _NO_WORDS), ("user", advice))
    said = tuple(Message(role, text, {"role": role, "content": text}) for role, text in turns)
    return StepPrompt(prompt.history, prompt.question, prompt.pieces, (*prompt.turns, *said))
