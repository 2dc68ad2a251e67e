"""`POST /v1/podium/runs/{id}/grade`: what a grade may be, and whose runs it may be of."""

import json
from typing import Any

import aiohttp
import pytest

from tests.fakes.gateway import AUDITOR_TOKEN, GRADER_TOKEN, TOKEN, EdgeServer, running_edge
from tests.fakes.grades import FakeGrades


async def _post(edge: EdgeServer, body: object, run_id: str = "run_1", token: str = TOKEN) -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as session,
        session.post(f"{edge.url}/v1/podium/runs/{run_id}/grade", data=data) as response,
    ):
        return response.status, await response.json()


@pytest.mark.parametrize(
    ("body", "score_ppm", "comment"),
    [
        ({"score": 0.8, "comment": "fine"}, 800_000, "fine"),
        ({"score": 1}, 1_000_000, ""),
        ({"pass": True}, 1_000_000, ""),
        ({"pass": False, "comment": None}, 0, ""),
    ],
)
async def test_a_grade_is_taken_for_the_callers_own_tenant(
    body: object, score_ppm: int, comment: str
) -> None:
    grades = FakeGrades({("acme", "run_1")})
    async with running_edge(grades=grades) as edge:
        status, answer = await _post(edge, body)
        assert (status, answer) == (
            200,
            {"run_id": "run_1", "score": score_ppm / 1_000_000, "leaf_index": 0},
        )
        assert (await _post(edge, body, "run_of_others"))[0] == 404
    assert grades.taken == [("acme", "run_1", "key-1", score_ppm, comment)]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "score"),
        ({"score": 0.5, "pass": True}, "score"),
        ({"score": 1.01}, "score"),
        ({"score": -0.1}, "score"),
        ({"score": "1"}, "score"),
        ({"pass": "yes"}, "pass"),
        ({"pass": True, "comment": "x" * 5_000}, "comment"),
        ({"pass": True, "grade": 1}, "grade"),
        (b"[", None),
    ],
)
async def test_a_bad_grade_is_named_by_its_field(body: object, param: str | None) -> None:
    grades = FakeGrades({("acme", "run_1")})
    async with running_edge(grades=grades) as edge:
        status, answer = await _post(edge, body)
    assert (status, answer["error"]["param"]) == (400, param)
    assert grades.taken == []


async def test_a_grader_grades_runs_of_any_key_and_makes_none() -> None:
    grades = FakeGrades({("acme", "run_1")})
    async with running_edge(grades=grades) as edge:
        assert (await _post(edge, {"pass": True}))[0] == 200
        assert (await _post(edge, {"pass": True}, token=GRADER_TOKEN))[0] == 200
        status, answer = await _post(edge, {"pass": True}, token=AUDITOR_TOKEN)
        assert (status, answer["error"]["code"]) == (403, "role_missing")
        assert '"client" or "grader"' in answer["error"]["message"]
        key = {"Authorization": f"Bearer {GRADER_TOKEN}"}
        url = f"{edge.url}/v1/chat/completions"
        async with aiohttp.ClientSession(headers=key) as session, session.post(url, json={}) as response:
            assert response.status == 403
    assert grades.of_any_key == [False, True]
