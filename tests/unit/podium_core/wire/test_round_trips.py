"""Every domain type survives its message, through bytes, and malformed messages are refused by name."""

from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.conductor.v1 import conductor_service_pb2
from podium.plan.v1 import plan_pb2
from podium.router.v1 import router_service_pb2
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan import Access, Plan, PlanSource, Step
from podium_core.domain.policy import Verdict
from podium_core.domain.pool import Card, Health, LiveEstimate, Pool, Skill, Worker
from podium_core.domain.run import AttemptKind, AttemptOutcome, Caps, Message, Question, RunKind, RunOutcome
from podium_core.domain.usage import Price, Usage, UsageSource
from podium_core.orchestration.ports import PlanQuery, PlanReply, WorkerChance
from podium_core.wire.enums import EnumTable
from podium_core.wire.plan import PLAN_SOURCE, plan_from_proto, plan_to_proto
from podium_core.wire.plan_query import (
    plan_query_from_proto,
    plan_query_to_proto,
    plan_reply_from_proto,
    plan_reply_to_proto,
)
from podium_core.wire.pool import (
    WORKER_HEALTH,
    card_from_proto,
    card_to_proto,
    pool_from_proto,
    pool_to_proto,
)
from podium_core.wire.run import (
    ATTEMPT_KIND,
    ATTEMPT_OUTCOME,
    RUN_KIND,
    RUN_OUTCOME,
    caps_from_proto,
    caps_to_proto,
    verdicts_from_proto,
    verdicts_to_proto,
)
from podium_core.wire.usage import USAGE_SOURCE, usage_from_proto, usage_to_proto
from tests.fakes.pools import question, worker

TABLES = [
    (PLAN_SOURCE, PlanSource, plan_pb2.PlanSource),
    (RUN_KIND, RunKind, plan_pb2.RunKind),
    (RUN_OUTCOME, RunOutcome, plan_pb2.RunOutcome),
    (ATTEMPT_KIND, AttemptKind, plan_pb2.AttemptKind),
    (ATTEMPT_OUTCOME, AttemptOutcome, plan_pb2.AttemptOutcome),
    (USAGE_SOURCE, UsageSource, plan_pb2.UsageSource),
    (WORKER_HEALTH, Health, router_service_pb2.WorkerHealth),
]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
u32 = st.integers(0, 2**32 - 1)
u64 = st.integers(0, 2**64 - 1)
usages = st.builds(Usage, u64, u64, u64, u64, u64, st.sampled_from(UsageSource))
positive = st.none() | st.integers(1, 2**32 - 1)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Any valid plan of up to five steps."""
    number = draw(st.integers(0, 3))
    steps = []
    for index in range(draw(st.integers(0 if number else 1, 5))):
        seen = draw(st.sets(st.integers(0, index - 1))) if index else set()
        access = Access(tuple(sorted(seen)), previous_round=draw(st.booleans()) if number else False)
        steps.append(Step(draw(names), draw(texts), access, draw(st.none() | names)))
    return Plan(tuple(steps), draw(st.sampled_from(PlanSource)), number)


skills = st.builds(Skill, names, st.integers(0, 10**6), u32, st.dates().map(str))
cards = st.builds(
    Card,
    st.lists(skills, max_size=3).map(tuple),
    context_tokens=u64,
    max_output_tokens=u64,
    output_tokens_per_second=u32,
    modalities=st.frozensets(names, max_size=3),
    features=st.frozensets(names, max_size=3),
)
workers = st.builds(
    Worker,
    names,
    texts,
    texts,
    cards,
    st.none() | st.builds(Price, u64, u64, st.none() | u64, st.none() | u64),
    texts,
    st.sampled_from(Health),
    st.booleans(),
    u32,
    st.none() | st.builds(LiveEstimate, u64, u32, u32, u32, u32),
    st.none() | st.integers(1, 2**32 - 1).map(lambda ms: ms / 1000),
)
caps = st.builds(
    Caps,
    st.integers(1, 5),
    positive,
    st.none() | st.integers(1, 2**63),
    st.none() | u64,
    st.none() | st.integers(1, 10**9).map(lambda ms: ms / 1_000),
    st.integers(1, 9),
    st.integers(1, 9),
    st.none() | st.integers(1, 9),
    st.none() | st.integers(1, 10**9).map(lambda ms: ms / 1_000),
)


def _resent(message: Any) -> Any:
    """Return the message as the other side reads it."""
    return type(message).FromString(message.SerializeToString())


@pytest.mark.parametrize(
    ("table", "domain", "proto"), TABLES, ids=lambda value: getattr(value, "__name__", "")
)
def test_every_member_has_its_own_value_and_no_value_is_left(
    table: EnumTable[Any, Any], domain: type[StrEnum], proto: Any
) -> None:
    values = [table.to_proto(member) for member in domain]
    assert sorted(values) == sorted(set(proto.values()) - {0})
    assert [table.from_proto(value) for value in values] == list(domain)


@pytest.mark.parametrize(
    ("table", "domain", "proto"), TABLES, ids=lambda value: getattr(value, "__name__", "")
)
@pytest.mark.parametrize("value", [0, 99])
def test_an_unspecified_or_unknown_value_is_refused(
    table: EnumTable[Any, Any], domain: type[StrEnum], proto: Any, value: int
) -> None:
    with pytest.raises(PodiumError) as failed:
        table.from_proto(value)
    assert failed.value.code is Code.INVALID_REQUEST
    assert failed.value.param is not None
    assert failed.value.param in failed.value.message


@given(usages)
def test_usage(usage: Usage) -> None:
    assert usage_from_proto(_resent(usage_to_proto(usage))) == usage


@given(plans())
def test_plans(plan: Plan) -> None:
    assert plan_from_proto(_resent(plan_to_proto(plan))) == plan


@given(caps)
def test_caps(limits: Caps) -> None:
    assert caps_from_proto(_resent(caps_to_proto(limits))) == limits


@given(st.lists(st.builds(Verdict, names, st.booleans(), names), max_size=5).map(tuple))
def test_verdicts(verdicts: tuple[Verdict, ...]) -> None:
    assert verdicts_from_proto(_resent(m) for m in verdicts_to_proto(verdicts)) == verdicts


@given(st.lists(workers, max_size=3, unique_by=lambda w: w.worker_id).map(tuple), names, names)
def test_pools(listed: tuple[Worker, ...], pool_digest: str, price_digest: str) -> None:
    pool = Pool(listed, pool_digest, price_digest)
    assert pool_from_proto(_resent(pool_to_proto(pool))) == pool


@given(workers)
def test_a_card_shows_strengths_and_price_but_not_who_is_behind_it(worker: Worker) -> None:
    message = card_to_proto(worker)
    seen = card_from_proto(_resent(message))
    assert (seen.worker_id, seen.is_demo) == (worker.worker_id, worker.is_demo)
    assert (seen.provider, seen.provider_model, seen.region) == ("", "", "")
    assert (seen.card.skills, seen.card.context_tokens) == (worker.card.skills, worker.card.context_tokens)
    in_full = worker.price and Price(
        worker.price.input_usd_micros_per_mtok, worker.price.output_usd_micros_per_mtok
    )
    assert seen.price == in_full, "a plan counts all input in full"
    named = card_from_proto(_resent(card_to_proto(worker, with_names=True)))
    assert (named.provider, named.provider_model) == (worker.provider, worker.provider_model)


@given(
    st.lists(st.builds(lambda role, text: (role, text), names, texts), min_size=1, max_size=3),
    st.integers(0, 3),
    st.lists(workers, min_size=1, max_size=3),
    caps,
    st.integers(0, 2**63 - 1),
    st.none() | plans(),
)
def test_plan_queries(
    said: list[tuple[str, str]],
    image_count: int,
    pool: list[Worker],
    limits: Caps,
    seed: int,
    previous: Plan | None,
) -> None:
    parts: list[dict[str, object]] = [{"type": "image_url", "image_url": {"url": "data:"}}] * image_count
    messages = [Message(role, text, {"role": role, "content": parts}) for role, text in said]
    query = PlanQuery(
        "run_1", Question(tuple(messages)), tuple(pool), limits, "podium", seed, 2.5, 1, previous, "so"
    )
    heard = plan_query_from_proto(_resent(plan_query_to_proto(query)), 2.5)
    assert [(m.role, m.text, m.image_count) for m in heard.question.messages] == [
        (role, text, image_count) for role, text in said
    ]
    assert [w.worker_id for w in heard.workers] == [w.worker_id for w in pool]
    assert (heard.caps, heard.seed, heard.timeout_s, heard.tier) == (limits, seed, 2.5, "podium")
    assert (heard.round, heard.previous_plan, heard.previous_answer) == (1, previous, "so")


chances = st.lists(st.lists(st.builds(WorkerChance, names, u32, u32), max_size=3).map(tuple), max_size=5).map(
    tuple
)


@given(plans(), texts, usages, names, chances, u32, u64, u64)
def test_plan_replies(
    plan: Plan,
    raw_text: str,
    usage: Usage,
    digest: str,
    evidence: tuple[tuple[WorkerChance, ...], ...],
    generations: int,
    latency_us: int,
    seed: int,
) -> None:
    reply = PlanReply(plan, raw_text, usage, digest, evidence, generations, latency_us, seed)
    assert plan_reply_from_proto(_resent(plan_reply_to_proto(reply)), seed) == reply


def _plan(*steps: plan_pb2.Step, round_number: int = 0) -> plan_pb2.Plan:
    return plan_pb2.Plan(steps=steps, source=plan_pb2.PLAN_SOURCE_MODEL, round=round_number)


@pytest.mark.parametrize(
    "message",
    [
        _plan(),
        _plan(plan_pb2.Step(worker_id="")),
        _plan(plan_pb2.Step(worker_id="a", access=[0])),
        _plan(plan_pb2.Step(worker_id="a"), plan_pb2.Step(worker_id="a", access=[0, 0])),
        _plan(plan_pb2.Step(worker_id="a", sees_previous_round=True)),
        plan_pb2.Plan(steps=[plan_pb2.Step(worker_id="a")]),
    ],
)
def test_a_plan_that_breaks_a_rule_is_refused(message: plan_pb2.Plan) -> None:
    with pytest.raises(PodiumError) as failed:
        plan_from_proto(message)
    assert failed.value.code is Code.INVALID_REQUEST


def test_a_cap_of_zero_cannot_become_no_cap() -> None:
    for limits in (
        Caps(max_steps=0),
        Caps(max_calls=0),
        Caps(max_tokens=0),
        Caps(max_duration_s=0.0),
        Caps(max_rounds=0),
        Caps(max_attempts_per_step=0),
        Caps(quorum=0),
        Caps(straggler_wait_s=0.0),
    ):
        with pytest.raises(PodiumError, match="must be"):
            caps_to_proto(limits)
    assert caps_from_proto(caps_to_proto(Caps(max_cost_usd_micros=0))).max_cost_usd_micros == 0
    assert caps_from_proto(caps_to_proto(Caps(max_duration_s=1e-9))).max_duration_s == 0.001


def test_caps_that_are_not_set_are_the_defaults() -> None:
    assert caps_from_proto(plan_pb2.Caps()) == Caps()


def test_a_pool_without_digests_or_with_twins_is_refused() -> None:
    for broken in (
        Pool((worker("a"),), "", "p"),
        Pool((worker("a"),), "d", ""),
    ):
        with pytest.raises(PodiumError):
            pool_from_proto(pool_to_proto(broken))
    message = pool_to_proto(Pool((worker("a"),), "d", "p"))
    message.workers.append(message.workers[0])
    with pytest.raises(PodiumError, match="unique"):
        pool_from_proto(message)


def test_verdicts_need_worker_and_rule() -> None:
    for broken in (plan_pb2.Verdict(worker_id="a"), plan_pb2.Verdict(rule_id="r")):
        with pytest.raises(PodiumError):
            verdicts_from_proto([broken])


def test_a_query_needs_a_question_and_workers_and_a_reply_its_choices_in_order() -> None:
    query = PlanQuery("r", question(), (worker("a"),), Caps(), "podium", 1, 1.0)
    for field in ("messages", "cards"):
        message = plan_query_to_proto(query)
        message.ClearField(field)
        with pytest.raises(PodiumError) as failed:
            plan_query_from_proto(message, 1.0)
        assert failed.value.param == field
    response = conductor_service_pb2.PlanResponse(choices=[plan_pb2.StepChoice(step_index=1)])
    with pytest.raises(PodiumError, match="step order"):
        plan_reply_from_proto(response, 1)
