"""Opening runs, later plans, notes and content."""

import hmac
from hashlib import sha256
from typing import Any

import pytest

from podium_audit.ports import StoreError
from podium_audit.records import contents
from podium_audit.records.commands import PlanEvidence, WorkerChance
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import Access, Plan, PlanSource, Step
from podium_core.domain.run import Caps, RunKind
from podium_core.domain.usage import Usage, UsageSource
from tests.fakes.audit_log import (
    LogScene,
    append_plan,
    begin,
    event,
    note,
    open_run,
    plan_of,
    put,
    seal,
    text_part,
)


@pytest.fixture
def scene() -> LogScene:
    return LogScene()


def refusal(scene: LogScene, command: Any) -> PodiumError:
    before = len(scene.store.leaf_rows)
    with pytest.raises(PodiumError) as caught:
        scene.do(command)
    scene.log.commit()
    assert len(scene.store.leaf_rows) == before
    return caught.value


def test_an_opening_records_verdicts_caps_and_content(scene: LogScene) -> None:
    caps = Caps(max_calls=9, max_cost_usd_micros=500, max_duration_s=1.5)
    applied = scene.do(open_run(caps=caps, trace_id="ab" * 16))
    assert applied.leaf_indices == (0, 1)
    opened, plan = scene.records()
    key = scene.keys.keys[1]
    salt = hmac.new(key, b"podium-salt/1\x00question", sha256).digest()
    assert {name: value for name, value in opened.items() if name != "facts"} == {
        "v": 1,
        "type": "opened",
        "event_id": "open.run_1",
        "run_id": "run_1",
        "run_seq": 0,
        "tenant_id": "acme",
        "tenant_seq": 0,
        "time_us": scene.clock.now_ns() // 1_000,
        "service": "gateway",
        "contents": [
            {
                "part_id": "question",
                "name": "question",
                "media_type": "text/plain",
                "length": 10,
                "commitment": hmac.new(salt, b"some words", sha256).hexdigest(),
                "ciphertext_sha256": sha256(scene.store.contents[0]).hexdigest(),
            }
        ],
    }
    assert opened["facts"] == {
        "kind": "chat",
        "principal_id": "key1",
        "requested_model": "podium",
        "verdicts": [
            {"worker_id": "w1", "allowed": True, "rule_id": "default.allow"},
            {"worker_id": "w2", "allowed": True, "rule_id": "default.allow"},
            {"worker_id": "w3", "allowed": True, "rule_id": "default.allow"},
            {"worker_id": "w9", "allowed": False, "rule_id": "client.except"},
        ],
        "caps": {
            "max_steps": 5,
            "max_calls": 9,
            "max_tokens": None,
            "max_cost_usd_micros": 500,
            "max_duration_ms": 1500,
            "max_rounds": 1,
            "max_attempts_per_step": 3,
            "quorum": None,
            "straggler_wait_ms": None,
        },
        "pool_digest": "pool",
        "price_digest": "price",
        "policy_digest": "",
        "trace_id": "ab" * 16,
        "refusal_reason": "",
        "continues_run_id": "",
        "has_plan": True,
    }
    assert (plan["type"], plan["run_seq"], plan["tenant_seq"]) == ("plan", 1, 1)


def test_a_plan_is_evidence_and_its_texts_are_content(scene: LogScene) -> None:
    steps = (Step("w1", "first"), Step("w2", "", Access((0,)), "w3"))
    evidence = PlanEvidence(
        Plan(steps, PlanSource.MODEL),
        model_digest="digest",
        choices=((0, (WorkerChance("w1", 700_000, 800_000),)),),
        usage=Usage(5, 6, source=UsageSource.ESTIMATED),
        seed=2**63 + 1,
        generation_count=2,
    )
    texts = (
        text_part("p/0", "first", "subtask"),
        text_part("p/text", "raw", "plan_text"),
        text_part("question"),
    )
    scene.do(open_run(plan=evidence, contents=texts))
    opened, plan = scene.records()
    assert [part["part_id"] for part in opened["contents"]] == ["question"]
    assert [part["part_id"] for part in plan["contents"]] == ["p/0", "p/text"]
    assert plan["facts"]["steps"] == [
        {
            "worker_id": "w1",
            "access": [],
            "sees_previous_round": False,
            "fallback_worker_id": "",
            "subtask_part_id": "p/0",
        },
        {
            "worker_id": "w2",
            "access": [0],
            "sees_previous_round": False,
            "fallback_worker_id": "w3",
            "subtask_part_id": "",
        },
    ]
    assert plan["facts"]["seed"] == "9223372036854775809"
    assert plan["facts"]["choices"] == [
        {"step_index": 0, "chances": [{"worker_id": "w1", "raw_ppm": 700_000, "eligible_ppm": 800_000}]}
    ]
    assert plan["facts"]["usage"]["source"] == "estimated"


def test_subtask_texts_stand_in_step_order(scene: LogScene) -> None:
    texts = (text_part("s/0", "", "subtask"), text_part("s/1", "second", "subtask"))
    scene.do(open_run(plan=plan_of(Step("w1", ""), Step("w2", "")), contents=texts))
    assert [step["subtask_part_id"] for step in scene.last()["facts"]["steps"]] == ["s/0", "s/1"]


def test_a_subtask_without_its_text_is_refused(scene: LogScene) -> None:
    error = refusal(scene, open_run(plan=plan_of(Step("w1", "do this"))))
    assert (error.code, error.param) == (Code.INVALID_REQUEST, "contents")


def test_a_refused_run_is_sealed_in_the_same_commit(scene: LogScene) -> None:
    applied = scene.do(open_run(plan=None, refusal_reason="NO_ELIGIBLE_WORKER"))
    assert scene.store.commits == 1
    assert applied.run_leaf_indices == (0, 1)
    assert scene.signer.read(applied.checkpoint).size == 2
    assert scene.last()["facts"] == {
        "outcome": "refused",
        "error_reason": "NO_ELIGIBLE_WORKER",
        "record_count": 2,
        "attempt_count": 0,
        "cost_usd_micros": 0,
        "unknown_attempts": [],
    }
    assert not scene.leases.is_alive("run_1")
    assert refusal(scene, begin()).reason == "RUN_SEALED"


@pytest.mark.parametrize(
    ("service", "kind", "allowed"),
    [
        ("gateway", RunKind.CHAT, True),
        ("gateway", RunKind.EMBED, True),
        ("gateway", RunKind.CALIBRATE, False),
        ("cli", RunKind.CHAT, False),
        ("cli", RunKind.CALIBRATE, True),
        ("cli", RunKind.TRAIN, True),
        ("cli", RunKind.PROBE, True),
    ],
)
def test_callers_open_their_own_kinds_only(
    scene: LogScene, service: str, kind: RunKind, allowed: bool
) -> None:
    command = open_run(kind=kind, event=event("open", service))
    if allowed:
        scene.do(command)
    else:
        assert refusal(scene, command).code is Code.POLICY_DENIED


def test_callers_write_to_runs_of_their_own_kinds_only(scene: LogScene) -> None:
    scene.do(open_run())
    for command in (
        append_plan(plan_of(round_=1), event=event("a", "cli")),
        seal(event=event("b", "cli")),
        note(service="cli"),
        put(text_part("c"), service="cli"),
    ):
        assert refusal(scene, command).reason == "RUN_KIND_NOT_ALLOWED"


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"run_id": "bad id", "event": event("open")}, "run_id"),
        ({"run_id": "", "event": event("open")}, "run_id"),
        ({"tenant_id": "a/b"}, "tenant_id"),
        ({"requested_model": "m" * 513}, "requested_model"),
        ({"contents": (text_part("a"), text_part("a"))}, "part_id"),
        ({"contents": (text_part("../x y"),)}, "part_id"),
        ({"contents": (text_part("a", name="Not A Word"),)}, "name"),
        ({"contents": tuple(text_part(f"p{n}") for n in range(129))}, "contents"),
        ({"plan": plan_of(round_=1)}, "plan.round"),
        ({"refusal_reason": "NO"}, "plan"),
        ({"event": event("")}, "event_id"),
        ({"tenant_budget_usd_micros": 2**64 - 1}, "tenant_budget_usd_micros"),
        ({"key_budget_usd_micros": 2**64 - 1}, "key_budget_usd_micros"),
        ({"key_budget_usd_micros": 1, "principal_id": ""}, "principal_id"),
    ],
)
def test_what_cannot_be_recorded_is_named(scene: LogScene, change: dict[str, Any], param: str) -> None:
    error = refusal(scene, open_run(**change))
    assert (error.code, error.param) == (Code.INVALID_REQUEST, param)


def test_content_over_the_limit_is_refused(scene: LogScene) -> None:
    error = refusal(scene, open_run(contents=(text_part("a", "x" * ((1 << 20) + 1)),)))
    assert (error.code, error.reason) == (Code.TOO_LARGE, "CONTENT_TOO_LARGE")


def test_a_record_too_large_for_a_leaf_is_refused(scene: LogScene) -> None:
    huge = tuple(WorkerChance(f"worker-{n:060d}", n, n) for n in range(900))
    evidence = PlanEvidence(Plan((Step("w1", ""),), PlanSource.MODEL), choices=((0, huge),))
    assert refusal(scene, open_run(plan=evidence)).code is Code.TOO_LARGE
    scene.do(open_run())
    assert scene.records()[0]["tenant_seq"] == 0


def test_a_refused_opening_costs_no_key(scene: LogScene) -> None:
    refusal(scene, open_run(run_id="bad id"))
    scene.do(open_run())
    assert scene.store.runs["run_1"].key_no == 1


def test_a_run_id_is_opened_once(scene: LogScene) -> None:
    scene.do(open_run())
    other = open_run(event=event("another"))
    assert refusal(scene, other).reason == "RUN_EXISTS"
    scene.do(seal())
    scene.restart()
    assert refusal(scene, other).reason == "RUN_EXISTS"


def test_plans_come_round_by_round(scene: LogScene) -> None:
    scene.do(open_run())
    assert "round 1, not 2" in refusal(scene, append_plan(plan_of(round_=2))).message
    scene.do(append_plan(plan_of(Step("w2", ""), round_=1)))
    accepted = PlanEvidence(Plan((), PlanSource.MODEL, 2))
    scene.do(append_plan(accepted))
    assert scene.last()["facts"]["steps"] == []
    scene.do(seal())
    assert refusal(scene, append_plan(plan_of(round_=3))).reason == "RUN_SEALED"


def test_content_is_sealed_under_the_runs_key_and_opens_again(scene: LogScene) -> None:
    scene.do(open_run(contents=()), put(text_part("long", "a long text", "request")))
    record = scene.last()
    assert (record["type"], record["facts"], record["run_seq"]) == ("content", {}, 2)
    sealed = scene.store.contents[2 * 256]
    assert b"a long text" not in sealed
    key = scene.keys.keys[1]
    assert contents.unseal(key, "run_1", "long", sealed) == b"a long text"
    for run_id, part_id, other in (
        ("run_2", "long", key),
        ("run_1", "longer", key),
        ("run_1", "long", bytes(32)),
    ):
        with pytest.raises(StoreError):
            contents.unseal(other, run_id, part_id, sealed)


def test_a_part_id_is_used_once(scene: LogScene) -> None:
    scene.do(open_run())
    error = refusal(scene, put(text_part("question", "other words")))
    assert (error.code, error.reason) == (Code.CONFLICT, "PART_EXISTS")


def test_a_sealed_run_takes_no_content_but_notes_that_refer_to_it(scene: LogScene) -> None:
    scene.do(open_run(), note(a="1"), seal())
    assert refusal(scene, put(text_part("late"))).reason == "RUN_SEALED"
    applied = scene.do(note(a="1", b="2"))
    record = scene.last()
    assert (record["type"], record["run_seq"], record["run_id"]) == ("note", None, "run_1")
    assert record["facts"] == {"kind": "remark", "facts": {"a": "1", "b": "2"}}
    assert applied.leaf_indices == (4,)


def test_a_note_may_belong_to_no_run(scene: LogScene) -> None:
    scene.do(note("", service="conductor", digest="abc"))
    record = scene.last()
    assert (record["run_id"], record["run_seq"], record["tenant_id"]) == ("", None, "")


@pytest.mark.parametrize(
    "facts",
    [{"Not": "x"}, {"a": "x" * 1_025}, {f"k{n}": "" for n in range(33)}],
    ids=["key", "value", "count"],
)
def test_notes_are_few_short_facts(scene: LogScene, facts: dict[str, str]) -> None:
    assert refusal(scene, note("", **facts)).code is Code.INVALID_REQUEST


def test_an_erased_run_takes_no_content(scene: LogScene) -> None:
    scene.do(open_run())
    scene.keys.erase([1])
    scene.restart()
    assert refusal(scene, put(text_part("more"))).reason == "RUN_ERASED"
    assert refusal(scene, begin()).reason == "RUN_ERASED"
    scene.do(seal())
