"""Permits: every check that stands between a request and its dispatch."""

import hmac
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from podium_audit.records.commands import BodyPiece, OpenRun, Part
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import Access, Step
from podium_core.domain.run import AttemptKind, AttemptOutcome, Caps, RunKind
from podium_core.domain.usage import Usage
from tests.fakes.audit_log import (
    THREE_STEPS,
    LogScene,
    append_plan,
    begin,
    end,
    event,
    open_run,
    plan_of,
    put,
    seal,
    text_part,
)


@pytest.fixture
def scene() -> LogScene:
    return LogScene()


def refused(scene: LogScene, *commands: Any) -> PodiumError:
    """Apply all but the last, which must be refused and leave no record."""
    if commands[:-1]:
        scene.do(*commands[:-1])
    before = len(scene.store.leaf_rows)
    with pytest.raises(PodiumError) as caught:
        scene.do(commands[-1])
    scene.log.commit()
    assert len(scene.store.leaf_rows) == before
    return caught.value


def three_steps(**changes: Any) -> OpenRun:
    return open_run(plan=THREE_STEPS, **changes)


def test_a_permit_is_a_record_with_everything_the_format_asks(scene: LogScene) -> None:
    scene.do(open_run())
    applied = scene.do(begin())
    assert applied.leaf_indices == (2,)
    record = scene.last()
    key = scene.keys.keys[1]
    salt = hmac.new(key, b"podium-salt/1\x00att_1/body", sha256).digest()
    assert record["type"] == "attempt_begun"
    assert record["service"] == "router"
    assert record["event_id"] == "att_1"
    assert record["facts"] == {
        "attempt_id": "att_1",
        "kind": "step",
        "round": 0,
        "step_index": 0,
        "worker_id": "w1",
        "provider": "openai-compatible",
        "provider_model": "model",
        "region": "eu",
        "endpoint_host": "provider.example",
        "seen_steps": [],
        "sees_previous_round": False,
        "max_cost_usd_micros": 100,
        "price_digest": "price",
        "pool_digest": "pool",
        "body": {
            "length": 18,
            "commitment": hmac.new(salt, b'{"q":"some words"}', sha256).hexdigest(),
            "salt_part_id": "att_1/body",
            "layout": [
                {"part_id": "att_1/inline", "from": 0, "to": 6},
                {"part_id": "question", "from": 0, "to": 10},
                {"part_id": "att_1/inline", "from": 6, "to": 8},
            ],
        },
    }
    assert [(part["part_id"], part["name"], part["length"]) for part in record["contents"]] == [
        ("att_1/inline", "sent", 8)
    ]


@pytest.mark.parametrize("kind", [AttemptKind.STEP, AttemptKind.REPAIR, AttemptKind.CONTINUATION])
def test_a_step_needs_its_plan_first(scene: LogScene, kind: AttemptKind) -> None:
    error = refused(scene, open_run(plan=None), begin(kind=kind))
    assert (error.code, error.reason) == (Code.POLICY_DENIED, "PLAN_NOT_RECORDED")
    scene.do(append_plan(plan_of()), begin(kind=kind))


@pytest.mark.parametrize("kind", [AttemptKind.PLAN, AttemptKind.EMBED, AttemptKind.PROBE])
def test_other_kinds_need_verdicts_only(scene: LogScene, kind: AttemptKind) -> None:
    scene.do(open_run(plan=None), begin(kind=kind))
    assert scene.last()["facts"]["kind"] == kind


def test_runs_that_calibrate_need_no_plan(scene: LogScene) -> None:
    opened = open_run(kind=RunKind.CALIBRATE, plan=None, event=event("open", "cli"))
    scene.do(opened, begin(worker_id="w2", step_index=7))
    assert refused(scene, begin("att_2", seen_steps=(0,))).reason == "SEES_TOO_MUCH"


def test_a_plan_of_another_round_is_no_plan(scene: LogScene) -> None:
    assert refused(scene, open_run(), begin(round=1)).reason == "PLAN_NOT_RECORDED"
    scene.do(append_plan(plan_of(Step("w2", ""), round_=1)), begin(round=1, worker_id="w2"))


def test_a_step_that_the_plan_lacks_is_refused(scene: LogScene) -> None:
    assert refused(scene, open_run(), begin(step_index=1)).code is Code.INVALID_REQUEST


@pytest.mark.parametrize("worker", ["w9", "unheard-of"])
def test_a_worker_without_an_allowing_verdict_is_denied(scene: LogScene, worker: str) -> None:
    error = refused(scene, open_run(plan=plan_of(Step(worker, ""))), begin(worker_id=worker))
    assert (error.code, error.reason) == (Code.POLICY_DENIED, "WORKER_NOT_ALLOWED")


def test_only_the_planned_worker_or_its_fallback_may_do_a_step(scene: LogScene) -> None:
    error = refused(scene, three_steps(), begin(worker_id="w3"))
    assert (error.code, error.reason) == (Code.POLICY_DENIED, "WORKER_NOT_PLANNED")
    assert "w1 or w2" in error.message
    scene.do(begin(worker_id="w2"))


def test_a_step_may_see_only_what_its_plan_allows(scene: LogScene) -> None:
    error = refused(scene, three_steps(), begin(step_index=1, worker_id="w2", seen_steps=(0,)))
    assert error.reason == "SEES_TOO_MUCH"
    assert refused(scene, begin(sees_previous_round=True)).reason == "SEES_TOO_MUCH"


def test_a_step_waits_for_the_attempts_of_what_it_sees(scene: LogScene) -> None:
    last = begin("att_3", step_index=2, worker_id="w3", seen_steps=(0, 1))
    scene.do(three_steps(), begin(), begin("att_2", step_index=1, worker_id="w2"), end("att_2"))
    assert refused(scene, last).reason == "SEEN_STEP_RUNNING"
    scene.do(end())
    scene.do(last)
    assert scene.last()["facts"]["seen_steps"] == [0, 1]


def test_an_attempt_lost_with_its_router_does_not_block_the_steps_after_its_retry(scene: LogScene) -> None:
    scene.do(three_steps(), begin("att_lost"), begin(), end())
    scene.do(begin("att_2", step_index=1, worker_id="w2"), end("att_2"))
    scene.do(begin("att_3", step_index=2, worker_id="w3", seen_steps=(0, 1)))
    assert scene.last()["facts"]["seen_steps"] == [0, 1]


def test_of_a_step_that_is_seen_the_newest_attempt_counts(scene: LogScene) -> None:
    lost, again = begin(), begin("att_2")
    last = begin("att_4", step_index=2, worker_id="w3", seen_steps=(0,))
    scene.do(three_steps(), lost, again)
    assert refused(scene, last).reason == "SEEN_STEP_RUNNING"
    scene.do(end("att_2"), last)


def test_without_a_plan_a_body_holds_no_other_steps_words(scene: LogScene) -> None:
    scene.do(open_run(kind=RunKind.CALIBRATE, plan=None, event=event("open", "cli")), begin(), end())
    smuggled = begin("att_2", step_index=1, body=(BodyPiece("att_1/output", b""),))
    assert refused(scene, smuggled).reason == "BODY_SEES_TOO_MUCH"


def test_a_body_may_not_carry_what_the_step_does_not_see(scene: LogScene) -> None:
    scene.do(three_steps(), begin(), end())
    smuggled = begin("att_2", step_index=1, worker_id="w2", body=(BodyPiece("att_1/output", b""),))
    assert refused(scene, smuggled).reason == "BODY_SEES_TOO_MUCH"
    own_retry = begin("att_3", body=(BodyPiece("att_1/output", b""),))
    scene.do(own_retry)


def test_the_previous_round_is_visible_only_if_planned(scene: LogScene) -> None:
    second = plan_of(Step("w2", "", Access((), previous_round=True)), Step("w3", ""), round_=1)
    body = (BodyPiece("att_1/output", b""),)
    scene.do(open_run(), begin(), end(), append_plan(second))
    sees = begin("att_2", round=1, worker_id="w2", sees_previous_round=True, body=body)
    blind = begin("att_3", round=1, step_index=1, worker_id="w3", body=body)
    scene.do(sees)
    assert refused(scene, blind).reason == "BODY_SEES_TOO_MUCH"


def test_the_conductor_may_see_everything_when_it_plans_again(scene: LogScene) -> None:
    scene.do(open_run(), begin(), end())
    scene.do(begin("att_2", kind=AttemptKind.PLAN, round=1, body=(BodyPiece("att_1/output", b""),)))


def test_each_step_has_so_many_attempts(scene: LogScene) -> None:
    scene.do(open_run(caps=Caps(max_attempts_per_step=2)), begin(), end(), begin("att_2"))
    error = refused(scene, begin("att_3"))
    assert (error.code, error.reason) == (Code.BUDGET_EXHAUSTED, "ATTEMPTS_EXHAUSTED")
    scene.do(begin("att_4", kind=AttemptKind.PLAN))


def test_each_run_has_so_many_calls(scene: LogScene) -> None:
    scene.do(three_steps(caps=Caps(max_calls=2)), begin(), begin("att_2", kind=AttemptKind.PLAN))
    error = refused(scene, begin("att_3", step_index=1, worker_id="w2"))
    assert (error.code, error.reason) == (Code.BUDGET_EXHAUSTED, "CALLS_EXHAUSTED")


def test_a_run_cap_counts_what_is_reserved_and_what_is_spent(scene: LogScene) -> None:
    scene.do(three_steps(caps=Caps(max_cost_usd_micros=150)), begin())
    second = begin("att_2", step_index=1, worker_id="w2")
    error = refused(scene, second)
    assert (error.code, error.reason) == (Code.BUDGET_EXHAUSTED, "RUN_BUDGET_EXHAUSTED")
    assert "$0.000150" in error.message
    assert "$0.000100 are reserved" in error.message
    assert error.metadata == {"limit_usd_micros": "150", "left_usd_micros": "50"}
    scene.do(end(cost_usd_micros=50))
    scene.do(second)
    assert (scene.reserved(), scene.settled()) == (100, 50)


def test_a_cap_of_zero_dollars_is_a_cap(scene: LogScene) -> None:
    scene.do(open_run(caps=Caps(max_cost_usd_micros=0)), begin(max_cost_usd_micros=0))
    assert refused(scene, begin("att_2", max_cost_usd_micros=1)).reason == "RUN_BUDGET_EXHAUSTED"


def test_a_tenants_month_counts_all_its_runs(scene: LogScene) -> None:
    scene.do(open_run("run_1", tenant_budget_usd_micros=250), open_run("run_2", tenant_budget_usd_micros=250))
    scene.do(open_run("run_3", tenant_budget_usd_micros=250, tenant_id="other"))
    scene.do(begin("att_1", "run_1"), begin("att_2", "run_2"))
    error = refused(scene, begin("att_3", "run_1"))
    assert (error.code, error.reason) == (Code.BUDGET_EXHAUSTED, "TENANT_BUDGET_EXHAUSTED")
    assert scene.month in error.message
    scene.do(begin("att_4", "run_3"))


def test_a_keys_month_counts_all_its_runs_and_the_refusal_names_it(scene: LogScene) -> None:
    budgets = {"key_budget_usd_micros": 250, "tenant_budget_usd_micros": 1_000}
    scene.do(
        open_run("run_1", **budgets), open_run("run_2", **budgets), open_run("run_3", principal_id="key2")
    )
    scene.do(begin("att_1", "run_1"), begin("att_2", "run_2"))
    error = refused(scene, begin("att_3", "run_1"))
    assert (error.code, error.reason) == (Code.BUDGET_EXHAUSTED, "KEY_BUDGET_EXHAUSTED")
    assert f"the budget of the key key1 for {scene.month} is $0.000250" in error.message
    assert error.metadata == {"limit_usd_micros": "250", "left_usd_micros": "50"}
    scene.do(begin("att_4", "run_3"))
    scene.do(end("att_1", "run_1", cost_usd_micros=50), begin("att_5", "run_1"))


def test_the_tenants_budget_holds_for_a_key_that_has_money_left(scene: LogScene) -> None:
    scene.do(open_run(key_budget_usd_micros=1_000, tenant_budget_usd_micros=150), begin())
    error = refused(scene, begin("att_2"))
    assert error.reason == "TENANT_BUDGET_EXHAUSTED"
    assert f"the budget of the tenant for {scene.month} is" in error.message


def test_a_keys_money_outlives_a_restart(scene: LogScene) -> None:
    scene.do(open_run(key_budget_usd_micros=250), begin(), end(cost_usd_micros=60), begin("att_2"))
    scene.restart()
    book = scene.log.state.book
    assert book.settled("acme", scene.month, "key1") == scene.settled() == 60
    assert book.reserved("acme", scene.month, "key1") == scene.reserved() == 100
    assert refused(scene, begin("att_3")).reason == "KEY_BUDGET_EXHAUSTED"
    scene.do(seal())


def test_a_new_month_is_a_new_budget_and_settles_where_it_was_reserved(scene: LogScene) -> None:
    scene.do(open_run(tenant_budget_usd_micros=100), begin())
    first = scene.month
    scene.clock.wall_ns += 31 * 86_400 * 10**9
    scene.do(begin("att_2"))
    scene.do(end("att_1", cost_usd_micros=70), end("att_2", cost_usd_micros=60))
    book = scene.log.state.book
    assert (book.settled("acme", first), book.settled("acme", scene.month)) == (70, 60)
    assert first != scene.month


def test_a_refused_permit_disturbs_nobody_in_its_batch(scene: LogScene) -> None:
    scene.do(open_run("run_1"), open_run("run_2"))
    scene.log.apply(begin("att_1", "run_1"))
    with pytest.raises(PodiumError):
        scene.log.apply(begin("att_2", "run_2", worker_id="w9"))
    scene.log.apply(begin("att_3", "run_2"))
    scene.log.commit()
    assert [record["event_id"] for record in scene.records()[-2:]] == ["att_1", "att_3"]


def test_a_lapsed_lease_gives_no_permit(scene: LogScene) -> None:
    scene.do(open_run())
    scene.clock.advance(15)
    error = refused(scene, begin())
    assert (error.code, error.reason) == (Code.CONFLICT, "LEASE_LAPSED")


def test_a_sealed_run_gives_no_permit(scene: LogScene) -> None:
    scene.do(open_run(), seal())
    error = refused(scene, begin())
    assert (error.code, error.reason) == (Code.CONFLICT, "RUN_SEALED")


def test_an_unknown_run_gives_no_permit(scene: LogScene) -> None:
    assert refused(scene, begin()).code is Code.NOT_FOUND


def test_a_body_must_be_named_and_known(scene: LogScene) -> None:
    assert refused(scene, open_run(), begin(body=())).param == "body"
    assert "nowhere" in refused(scene, begin(body=(BodyPiece("nowhere", b""),))).message
    assert "not both" in refused(scene, begin(body=(BodyPiece("question", b"x"),))).message


def test_a_body_that_is_not_what_will_be_sent_is_refused(scene: LogScene) -> None:
    good = sha256(b'{"q":"some words"}').digest()
    error = refused(scene, open_run(), begin(body_sha256=sha256(b"else").digest()))
    assert (error.code, error.reason) == (Code.CONFLICT, "BODY_MISMATCH")
    scene.do(begin(body_sha256=good))


@pytest.mark.parametrize("restarted", [False, True])
def test_a_body_is_joined_from_stored_parts(scene: LogScene, restarted: bool) -> None:
    scene.do(open_run(contents=(text_part("a", "one "), text_part("empty", ""), text_part("b", "two"))))
    if restarted:
        scene.restart()
    pieces = tuple(BodyPiece(part_id, b"") for part_id in ("a", "empty", "b"))
    scene.do(begin(body=pieces, body_sha256=sha256(b"one two").digest()))
    body = scene.last()["facts"]["body"]
    assert body["length"] == 7
    assert [place["part_id"] for place in body["layout"]] == ["a", "b"]
    assert scene.last()["contents"] == []


def test_a_part_of_the_same_batch_can_be_sent(scene: LogScene) -> None:
    large = Part("large", "request", "text/plain", b"z" * 700_000)
    scene.do(open_run(), put(large), begin(body=(BodyPiece("large", b""),)))
    assert scene.last()["facts"]["body"]["length"] == 700_000


def test_an_end_costs_no_more_than_its_permit_reserved(scene: LogScene) -> None:
    error = refused(scene, open_run(), begin(), end(cost_usd_micros=101))
    assert (error.code, error.param) == (Code.INVALID_REQUEST, "cost_usd_micros")
    assert (scene.reserved(), scene.settled()) == (100, 0)
    scene.do(end(cost_usd_micros=100))
    assert (scene.reserved(), scene.settled()) == (0, 100)


def test_an_end_settles_the_reservation(scene: LogScene) -> None:
    scene.do(open_run(), begin())
    assert (scene.reserved(), scene.settled()) == (100, 0)
    applied = scene.do(end())
    assert (scene.reserved(), scene.settled()) == (0, 40)
    assert (applied.late, applied.open_attempts) == (False, 0)
    assert scene.last()["facts"] == {
        "attempt_id": "att_1",
        "outcome": "completed",
        "usage": {
            "input_tokens": 10,
            "output_tokens": 20,
            "cached_input_tokens": 0,
            "cache_write_input_tokens": 0,
            "reasoning_output_tokens": 0,
            "source": "provider",
        },
        "cost_usd_micros": 40,
        "latency_us": 0,
        "finish_reason": "",
        "error_reason": "",
        "provider_response_id": "",
        "served_model": "",
        "dispatched": True,
    }


def test_an_attempt_ends_once(scene: LogScene) -> None:
    error = refused(scene, open_run(), begin(), end(), end(event=event("again", "router"), contents=()))
    assert (error.code, error.reason) == (Code.CONFLICT, "ATTEMPT_ENDED")


def test_an_end_without_a_beginning_is_refused(scene: LogScene) -> None:
    assert refused(scene, open_run(), end()).reason == "ATTEMPT_UNKNOWN"


def test_a_failed_end_frees_the_money(scene: LogScene) -> None:
    failed = end(
        outcome=AttemptOutcome.FAILED, usage=Usage(), cost_usd_micros=0, dispatched=False, contents=()
    )
    scene.do(open_run(caps=Caps(max_cost_usd_micros=100)), begin(), failed, begin("att_2"))
    assert scene.reserved() == 100


def test_too_long_names_are_refused(scene: LogScene) -> None:
    assert refused(scene, open_run(), begin(region="r" * 513)).param == "region"
    scene.do(begin())
    assert refused(scene, replace(end(), finish_reason="x" * 513)).param == "finish_reason"
