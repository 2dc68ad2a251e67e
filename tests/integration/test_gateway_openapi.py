"""`GET /openapi.json`: every route is in it, and the gateway behaves as it says, whatever comes."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import positive_data_acceptance

from podium_gateway.http import build_app
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.gateway import AUDITOR_TOKEN, EdgeServer, running_edge
from tests.fakes.grades import FakeGrades
from tests.fakes.pools import pool, worker

EXAMPLES = 10
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
ABLE = frozenset(
    ("json_schema", "logit_bias", "logprobs", "prediction", "service_tier", "tools", "verbosity")
)
PLAIN: dict[str, Any] = {"messages": [{"role": "user", "content": "6 times 7?"}], "input": "6 times 7?"}
# What asks for an answer that the worker of this test does not give, or for workers that there are not.
BEYOND_IT = ("output_config", "podium", "previous_response_id", "response_format", "text", "tool_choice")
# Rules between fields cannot all be told in a schema, so a body that fits may still be refused, with a 400.
LEFT_OUT = [positive_data_acceptance, not_a_server_error]
# Answers that a contract was not met, which the worker of this test may well bring about.
UNMET = ("schema_not_met", "tool_choice_not_met")


@pytest.fixture
async def edge() -> AsyncIterator[EdgeServer]:
    able = worker("alpha", features=ABLE, modalities=frozenset({"text", "image", "audio"}))
    grades = FakeGrades(ended={("acme", "run_1")})
    workers = pool(able, worker("bge", features=frozenset({"embeddings"})))
    async with running_edge(workers_of=workers, grades=grades, embedder=FakeEmbedder()) as edge:
        yield edge


async def _described(edge: EdgeServer, token: str | None = None) -> tuple[int, Any]:
    headers = edge.auth if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.get(f"{edge.url}/openapi.json") as response,
    ):
        return response.status, await response.json()


async def test_any_valid_key_reads_it_and_no_stranger(edge: EdgeServer) -> None:
    status, document = await _described(edge, AUDITOR_TOKEN)
    assert (status, document["openapi"]) == (200, "3.1.0")
    status, refusal = await _described(edge, "podium_x_" + "a" * 43)
    assert (status, refusal["error"]["code"]) == (401, "invalid_api_key")


async def test_it_describes_every_route_and_no_other(edge: EdgeServer) -> None:
    _, document = await _described(edge)
    described = {(method, path) for path, told in document["paths"].items() for method in told}
    routes = {
        (route.method.lower(), route.resource.canonical)
        for route in build_app(edge.edge, 1_000).router.routes()
        if route.method != "HEAD" and route.resource is not None
    }
    assert described == routes


async def test_a_wrong_method_is_told_the_right_ones(edge: EdgeServer) -> None:
    _, document = await _described(edge)
    async with aiohttp.ClientSession(headers=edge.auth) as session:
        for path, told in document["paths"].items():
            async with session.patch(edge.url + path.replace("{", "").replace("}", "")) as response:
                assert response.status == 405
                allowed = {word.strip().lower() for word in response.headers["Allow"].split(",")}
            assert allowed - {"head"} == set(told)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name.lower())
async def test_the_gateway_behaves_as_described_whatever_comes(
    edge: EdgeServer, mode: GenerationMode
) -> None:
    _, document = await _described(edge)
    await asyncio.to_thread(_fuzz, document, edge, mode)


ASKED = [
    ("/v1/chat/completions", {"model": "podium", "messages": PLAIN["messages"]}),
    ("/v1/chat/completions", {"model": "podium", "messages": PLAIN["messages"], "podium": {"dry_run": True}}),
    ("/v1/chat/completions", {"model": "worker/alpha", "messages": PLAIN["messages"], "stream": True}),
    ("/v1/responses", {"model": "podium", "input": "6 times 7?"}),
    ("/v1/responses", {"model": "podium", "input": "6 times 7?", "stream": True}),
    ("/v1/messages", {"model": "podium", "max_tokens": 9, "messages": PLAIN["messages"]}),
    ("/v1/messages", {"model": "podium", "max_tokens": 9, "messages": PLAIN["messages"], "stream": True}),
    ("/v1/messages/count_tokens", {"model": "podium", "messages": PLAIN["messages"]}),
    ("/v1/embeddings", {"model": "worker/bge", "input": "text"}),
]


@pytest.mark.parametrize(("path", "body"), ASKED)
async def test_what_is_answered_is_as_described(edge: EdgeServer, path: str, body: dict[str, Any]) -> None:
    _, document = await _described(edge)

    def ask() -> int:
        case = _schema(document, edge)[path]["POST"].Case(body=body, media_type="application/json")
        response = case.call(headers=edge.auth, timeout=60)
        case.validate_response(response)
        return int(response.status_code)

    assert await asyncio.to_thread(ask) == 200


def _schema(document: dict[str, Any], edge: EdgeServer) -> Any:
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=edge.url)
    return schema


def _fuzz(document: dict[str, Any], edge: EdgeServer, mode: GenerationMode) -> None:
    """Call every operation with what the document allows, or with what it forbids."""
    for found in _schema(document, edge).get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        takes_anything = operation.body or operation.path_parameters or operation.query
        if mode is GenerationMode.POSITIVE or takes_anything:
            may_be_plain = st.booleans() if mode is GenerationMode.POSITIVE else st.just(False)
            _call_often(operation.as_strategy(generation_mode=mode), may_be_plain, edge)


def _call_often(
    cases: st.SearchStrategy[Any],
    may_be_plain: st.SearchStrategy[bool],
    edge: EdgeServer,
) -> None:
    @given(case=cases, is_plain=may_be_plain)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def call(case: Any, is_plain: bool) -> None:
        if is_plain:
            _make_plain(case)
        response = case.call(headers=edge.auth, timeout=60)
        case.validate_response(response, excluded_checks=LEFT_OUT)
        assert response.status_code < 500 or response.json()["error"]["code"] in UNMET

    call()


def _make_plain(case: Any) -> None:
    """Let a case reach a worker: a model and a question that there is, and a run that has ended."""
    if isinstance(case.body, dict) and "model" in case.body:
        for name in BEYOND_IT:
            case.body.pop(name, None)
        case.body.update({name: value for name, value in PLAIN.items() if name in case.body})
        case.body["model"] = "worker/bge" if case.path.endswith("/embeddings") else "worker/alpha"
    if "run_id" in (case.path_parameters or {}):
        case.path_parameters["run_id"] = "run_1"
