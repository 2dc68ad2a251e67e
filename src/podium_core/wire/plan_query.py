"""The conversation between the runner's planner port and the conductor service, on the wire."""

from podium.conductor.v1 import conductor_service_pb2
from podium.plan.v1 import plan_pb2
from podium_core.domain.errors import invalid
from podium_core.domain.plan_prompt import PlanPrompt
from podium_core.domain.run import Message, Question
from podium_core.orchestration.ports import PlanQuery, PlanReply, WorkerChance
from podium_core.wire.plan import plan_from_proto, plan_to_proto
from podium_core.wire.plan_attempt import plan_attempt_from_proto, plan_attempt_to_proto
from podium_core.wire.pool import card_from_proto, card_to_proto
from podium_core.wire.run import caps_from_proto, caps_to_proto
from podium_core.wire.usage import usage_from_proto, usage_to_proto


def plan_query_to_proto(query: PlanQuery, *, with_names: bool = False) -> conductor_service_pb2.PlanRequest:
    """Return `query` as a message. The time limit is not in it: it is the call's deadline.

    `with_names` tells providers and models, for a Conductor that is to know them.
    """
    previous = query.previous_plan
    return conductor_service_pb2.PlanRequest(
        run_id=query.run_id,
        messages=[
            conductor_service_pb2.Message(role=m.role, text=m.text, image_count=m.image_count)
            for m in query.question.messages
        ],
        cards=[card_to_proto(worker, with_names=with_names) for worker in query.workers],
        caps=caps_to_proto(query.caps),
        tier=query.tier,
        round=query.round,
        previous_plan=None if previous is None else plan_to_proto(previous),
        previous_answer=query.previous_answer,
        seed=query.seed,
        tenant_id=query.tenant_id,
        pool_digest=query.pool_digest,
        run_is_open=query.run_is_open,
        explain=query.explain,
    )


def plan_query_from_proto(message: conductor_service_pb2.PlanRequest, timeout_s: float) -> PlanQuery:
    """Return the query in `message`; raise PodiumError (INVALID_REQUEST) when it is not well formed.

    Images arrive as a number only: the messages hold as many empty image parts.
    """
    if not message.messages:
        raise invalid("a question needs at least one message", param="messages")
    if not message.cards:
        raise invalid("a plan needs at least one worker", param="cards")
    return PlanQuery(
        run_id=message.run_id,
        question=Question(tuple(_message(m) for m in message.messages)),
        workers=tuple(card_from_proto(card) for card in message.cards),
        caps=caps_from_proto(message.caps),
        tier=message.tier,
        seed=message.seed,
        timeout_s=timeout_s,
        round=message.round,
        previous_plan=plan_from_proto(message.previous_plan) if message.HasField("previous_plan") else None,
        previous_answer=message.previous_answer,
        tenant_id=message.tenant_id,
        pool_digest=message.pool_digest,
        run_is_open=message.run_is_open,
        explain=message.explain,
    )


def plan_reply_to_proto(reply: PlanReply) -> conductor_service_pb2.PlanResponse:
    """Return `reply` as a message, without the seed, which the caller knows."""
    return conductor_service_pb2.PlanResponse(
        plan=plan_to_proto(reply.plan),
        raw_text=reply.raw_text,
        choices=choices_to_proto(reply),
        usage=usage_to_proto(reply.usage),
        model_digest=reply.model_digest,
        latency_us=reply.latency_us,
        generation_count=reply.generation_count,
        attempts=[plan_attempt_to_proto(attempt) for attempt in reply.attempts],
        fallback_reason=reply.fallback_reason,
        prompt=None if reply.prompt is None else _prompt_to_proto(reply.prompt),
        tokenizer_digest=reply.tokenizer_digest,
        template_digest=reply.template_digest,
    )


def choices_to_proto(reply: PlanReply) -> list[plan_pb2.StepChoice]:
    """Return the evidence of `reply`: each step's probabilities."""
    return [
        plan_pb2.StepChoice(
            step_index=index,
            chances=[
                plan_pb2.WorkerChance(
                    worker_id=chance.worker_id, raw_ppm=chance.raw_ppm, eligible_ppm=chance.eligible_ppm
                )
                for chance in chances
            ],
        )
        for index, chances in enumerate(reply.chances)
    ]


def plan_reply_from_proto(message: conductor_service_pb2.PlanResponse, seed: int) -> PlanReply:
    """Return the reply in `message`, made with `seed`; raise PodiumError (INVALID_REQUEST) when malformed."""
    if [choice.step_index for choice in message.choices] != list(range(len(message.choices))):
        raise invalid("choices must come in step order, without gaps", param="choices")
    return PlanReply(
        plan=plan_from_proto(message.plan),
        raw_text=message.raw_text,
        usage=usage_from_proto(message.usage),
        model_digest=message.model_digest,
        chances=tuple(
            tuple(WorkerChance(p.worker_id, p.raw_ppm, p.eligible_ppm) for p in choice.chances)
            for choice in message.choices
        ),
        generation_count=message.generation_count,
        latency_us=message.latency_us,
        seed=seed,
        fallback_reason=message.fallback_reason,
        attempts=tuple(plan_attempt_from_proto(attempt) for attempt in message.attempts),
        prompt=_prompt_from_proto(message.prompt) if message.HasField("prompt") else None,
        tokenizer_digest=message.tokenizer_digest,
        template_digest=message.template_digest,
    )


def _prompt_to_proto(prompt: PlanPrompt) -> conductor_service_pb2.Prompt:
    return conductor_service_pb2.Prompt(
        system=prompt.system, user=prompt.user, prefill=prompt.prefill, worker_ids=prompt.worker_ids
    )


def _prompt_from_proto(message: conductor_service_pb2.Prompt) -> PlanPrompt:
    return PlanPrompt(message.system, message.user, message.prefill, tuple(message.worker_ids))


def _message(message: conductor_service_pb2.Message) -> Message:
    content: object = message.text
    if message.image_count:
        images = [{"type": "image_url"} for _ in range(message.image_count)]
        content = [{"type": "text", "text": message.text}, *images]
    return Message(message.role, message.text, {"role": message.role, "content": content})
