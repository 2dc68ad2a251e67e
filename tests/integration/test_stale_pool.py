"""The pool is changed twice between a plan and its first call: the run plans again instead of failing."""

from pathlib import Path
from typing import Any

import pytest

from podium_verifier.verify import Verified, verify_export
from tests.fakes.leaves import leaves_in
from tests.fakes.planner import plan_of
from tests.fakes.stack import Stack, running_stack
from tests.fakes.upstream import answer

_WORKERS: dict[str, dict[str, Any]] = {"a": {}, "b": {}}
_NEVER_S = 600.0


def forget_the_old_pool(stack: Stack, **workers: dict[str, Any]) -> None:
    """Change pool.yaml twice, since the router keeps two versions; the gateway hears of it from refusals only."""
    between: dict[str, dict[str, Any]] = {"between": {}}
    for pool in (between, workers):
        stack.router.write_pool(**pool)
        stack.router.catalog.pool()


@pytest.mark.parametrize("stream", [False, True])
async def test_a_run_on_a_pool_that_is_gone_is_planned_anew_and_proven(
    stream: bool, tls_dir: Path, tmp_path: Path
) -> None:
    async with running_stack(tls_dir, tmp_path, workers=_WORKERS, pool_refresh_s=_NEVER_S) as stack:
        stack.upstream.default = answer("42")
        stack.conductor.plan = plan_of(("b", "", ()))
        forget_the_old_pool(stack, b={"model": "renamed"}, newcomer={})
        if stream:
            got = await stack.stream(model="podium")
            assert (got.text, got.is_done, got.errors) == ("42", True, [])
        else:
            status, body = await stack.ask(model="podium")
            assert (status, body["choices"][0]["message"]["content"]) == (200, "42")
        (sent,) = stack.sent
        assert sent["model"] == "renamed"
        notes = [leaf["facts"] for leaf in leaves_in(tmp_path, "note")]
        (told,) = [note["facts"] for note in notes if note["kind"] == "replan"]
        (begun,) = leaves_in(tmp_path, "attempt_begun")
        assert begun["facts"]["pool_digest"] == told["pool_digest"] != told["old_pool_digest"]
        assert [leaf["facts"]["round"] for leaf in leaves_in(tmp_path, "plan")] == [0, 1]
        _, exported = await stack.audit.get(f"/v1/runs/{begun['run_id']}/export")
        assert isinstance(verify_export(exported, None), Verified)


async def test_a_worker_that_left_the_pool_is_told_by_its_name(tls_dir: Path, tmp_path: Path) -> None:
    async with running_stack(tls_dir, tmp_path, workers=_WORKERS, pool_refresh_s=_NEVER_S) as stack:
        forget_the_old_pool(stack, b={})
        status, body = await stack.ask(model="worker/a")
        assert (status, body["error"]["param"]) == (404, "model")
        assert stack.sent == []
