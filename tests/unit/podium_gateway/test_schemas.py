"""What is said of schemas and answers, and that no schema holds anybody up."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_core.domain.errors import Code, PodiumError
from podium_core.orchestration.contract import AllOf, ToolContract
from podium_core.orchestration.outputs import Output
from podium_core.orchestration.ports import Delta
from podium_gateway.schemas.checker import SchemaChecker
from podium_gateway.schemas.child import problem_of
from podium_gateway.schemas.contract import JsonContract, contract_of

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"$ref": "#/$defs/age"}},
    "required": ["name", "age"],
    "additionalProperties": False,
    "$defs": {"age": {"type": "integer", "minimum": 0}},
}


@asynccontextmanager
async def checking(**limits: Any) -> AsyncGenerator[SchemaChecker, None]:
    checker = SchemaChecker(**limits)
    try:
        yield checker
    finally:
        await checker.close()


@pytest.mark.parametrize(
    ("text", "where", "told"),
    [
        ('{"name":"Ann","age":3}', None, ""),
        ('{"name":"Ann","age":-3}', "properties/age/minimum", "$.age: -3"),
        ('{"name":"Ann"}', "required", "'age' is a required property"),
        ('{"name":"Ann","age":3,"x":1}', "additionalProperties", "'x' was unexpected"),
        ('```json\n{"name":"Ann","age":3}\n```', "", "not JSON"),
        ('{"name":"Ann","age":NaN}', "", "NaN"),
        ("", "", "not JSON"),
        ("[" * 100_000, "", "nested too deeply"),
    ],
)
def test_what_an_answer_lacks_is_told_to_its_author(text: str, where: str | None, told: str) -> None:
    found = problem_of(PERSON, text)
    assert found.get("where") == where
    assert told in found.get("advice", "")


@pytest.mark.parametrize(
    "schema",
    [{"type": "no such type"}, {"properties": 3}, {"pattern": "("}, {"$ref": "#/$defs/nowhere"}],
)
def test_a_schema_that_is_none_is_found_out_before_anything_is_asked(schema: dict[str, Any]) -> None:
    assert problem_of(schema, None)["advice"]


def test_nothing_outside_the_schema_is_ever_read() -> None:
    assert "cannot be followed" in problem_of({"$ref": "http://127.0.0.1:1/x"}, "{}")["advice"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(json_values, st.text(max_size=20) | json_values.map(json.dumps))
def test_any_schema_and_any_text_give_a_verdict(schema: Any, text: str) -> None:
    if isinstance(schema, dict) and problem_of(schema, None) == {}:
        assert set(problem_of(schema, text)) in ({"where", "advice"}, set())


async def test_a_pattern_that_takes_for_ever_is_stopped_while_others_go_on() -> None:
    slow = {"type": "string", "pattern": "^(a+)+$"}
    async with checking(budget_s=1.5, processes=2) as checker:
        assert await checker.problem(PERSON, '{"name":"Ann","age":3}') is None
        stuck = asyncio.create_task(checker.problem(slow, json.dumps("a" * 40 + "b")))
        turns = 0
        while not stuck.done():
            await asyncio.sleep(0.01)
            turns += 1
        assert turns > 10, "of 150, were the machine free: the loop goes on meanwhile"
        with pytest.raises(PodiumError) as caught:
            await stuck
        assert (caught.value.code, caught.value.reason) == (Code.INVALID_REQUEST, "SCHEMA_TOO_COSTLY")
        assert await checker.problem(PERSON, '{"name":"Ann","age":3}') is None


async def test_a_contract_is_made_of_what_the_request_demands() -> None:
    tool = {"type": "function", "function": {"name": "f"}}
    wanted = {"type": "json_schema", "json_schema": {"name": "p", "schema": PERSON}}
    async with checking() as checker:
        assert await contract_of({"temperature": 1, "tool_choice": "auto"}, checker) is None
        assert await contract_of({"tool_choice": "required"}, checker) == ToolContract()
        assert await contract_of({"tool_choice": tool}, checker) == ToolContract("f")
        assert await contract_of({"tool_choice": "none"}, checker) == ToolContract(is_forbidden=True)
        both = await contract_of({"tool_choice": "none", "response_format": wanted}, checker)
        assert isinstance(both, AllOf)
        assert not both.is_streamable
        any_object = await contract_of({"response_format": {"type": "json_object"}}, checker)
        assert isinstance(any_object, JsonContract)
        said = Output()
        said.add(Delta("[1]"))
        breach = await any_object.breach(said)
        assert breach is not None
        assert "is not of type 'object'" in breach.advice
        broken = {"type": "json_schema", "json_schema": {"name": "p", "schema": {"type": 3}}}
        with pytest.raises(PodiumError) as caught:
            await contract_of({"response_format": broken}, checker)
    assert (caught.value.reason, caught.value.param) == (
        "SCHEMA_INVALID",
        "response_format.json_schema.schema",
    )
