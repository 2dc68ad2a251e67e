"""`response_format` as the contract of an answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from podium_core.domain.errors import Code, PodiumError
from podium_core.orchestration.contract import AllOf, AnswerContract, Breach, tool_contract
from podium_core.orchestration.outputs import Output
from podium_core.orchestration.ports import Delta
from podium_gateway.codecs.fields import refuse
from podium_gateway.schemas.checker import SchemaChecker

_ANY_OBJECT: Mapping[str, object] = {"type": "object"}
_SCHEMA_PARAM = "response_format.json_schema.schema"


@dataclass(frozen=True, slots=True)
class JsonContract:
    """The answer is JSON that meets a schema."""

    schema: Mapping[str, object]
    checker: SchemaChecker

    @property
    def is_streamable(self) -> bool:
        """What may need a repair is given out in one piece."""
        return False

    def opens(self, delta: Delta) -> bool:
        """Only the whole answer can be judged."""
        del delta
        return False

    async def breach(self, output: Output) -> Breach | None:
        """Return how the text fails the schema; an answer that calls tools is none yet."""
        if output.tool_calls:
            return None
        problem = await self.checker.problem(self.schema, output.text)
        if problem is None:
            return None
        place = f" at {problem.where}" if problem.where else ""
        error = PodiumError(
            Code.PROVIDER_FAILED,
            f"the answer does not meet response_format{place}, nor did one repair;"
            " podium.unaccepted_answer holds it. Relax the schema or ask another worker",
            reason="SCHEMA_NOT_MET",
            param="response_format",
        )
        advice = (
            "Your answer was not accepted, for these reasons:\n"
            f"{problem.advice}\n"
            "Give the whole answer again, corrected: JSON that meets the schema, and nothing else."
        )
        return Breach(error, advice)


async def contract_of(parameters: Mapping[str, object], checker: SchemaChecker) -> AnswerContract | None:
    """Return what a request promises of its answer; None when nothing.

    Raises PodiumError (INVALID_REQUEST) for a schema that is none.
    """
    contracts: list[AnswerContract] = []
    tools = tool_contract(parameters)
    if tools is not None:
        contracts.append(tools)
    wanted = parameters.get("response_format")
    if isinstance(wanted, Mapping):
        contracts.append(JsonContract(await _schema(wanted, checker), checker))
    if len(contracts) > 1:
        return AllOf(contracts)
    return contracts[0] if contracts else None


async def _schema(wanted: Mapping[str, object], checker: SchemaChecker) -> Mapping[str, object]:
    if wanted.get("type") != "json_schema":
        return _ANY_OBJECT
    named = cast("Mapping[str, object]", wanted["json_schema"])
    schema = cast("Mapping[str, object]", named["schema"])
    problem = await checker.problem(schema, None)
    if problem is not None:
        place = f" at {problem.where}" if problem.where else ""
        raise refuse(_SCHEMA_PARAM, f"is no JSON schema{place}: {problem.advice}", reason="SCHEMA_INVALID")
    return schema
