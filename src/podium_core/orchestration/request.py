"""What the edge hands to the runner, and what it demands of workers and of the record."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from podium_core.domain.gate import GateTable
from podium_core.domain.plan import StaticPlan
from podium_core.domain.plan_prompt import FAST_TIER
from podium_core.domain.policy import CallerReach, Verdict, WorkerFilter, policy_digest
from podium_core.domain.pool import Pool
from podium_core.domain.run import AttemptKind, Caps, Question, RunKind
from podium_core.orchestration.contract import AnswerContract
from podium_core.orchestration.eligible import IMAGE_URLS, Demands, demanded_features, token_bound
from podium_core.orchestration.ports import OpenedRun, PlanReply


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What the edge hands to the runner: who asks what, with which limits.

    `named_worker_id` asks for one worker by name (model `worker/<id>`): no plan is made. `parameters`
    are the provider body fields of the answering step (temperature, stop, tools, ...);
    `max_output_tokens` limits the answering step. `stream` says whether deltas are wanted. `gate` None lets
    every plan through. `contract` is what was promised of the answer's shape; `answer_count` says how many
    answers the last step gives, which only a run of one round may. `continues_run_id` names the run whose
    tool calls `question` answers: this run is one attempt of kind continuation by the worker that asked.
    `static_plan` is performed as it is, without asking for a plan. `pinned_model_digest` takes a plan from
    that Conductor model only, and no fallback plan.
    """

    run_id: str
    kind: RunKind
    tenant_id: str
    principal_id: str
    requested_model: str
    tier: str
    question: Question
    caps: Caps
    client_filter: WorkerFilter = WorkerFilter()
    reach: CallerReach = ()
    named_worker_id: str | None = None
    tenant_budget_usd_micros: int | None = None
    key_budget_usd_micros: int | None = None
    subject_id: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)
    max_output_tokens: int | None = None
    stream: bool = False
    gate: GateTable | None = None
    contract: AnswerContract | None = None
    answer_count: int = 1
    static_plan: StaticPlan | None = None
    pinned_model_digest: str | None = None
    continues_run_id: str = ""

    @property
    def step_kind(self) -> AttemptKind:
        """What its steps' attempts are made for."""
        return AttemptKind.CONTINUATION if self.continues_run_id else AttemptKind.STEP

    @property
    def has_several_workers(self) -> bool:
        """Whether the Conductor may give it to more than one worker."""
        is_named = self.named_worker_id is not None or self.static_plan is not None
        return not is_named and self.tier != FAST_TIER and self.caps.max_steps > 1

    @property
    def demands(self) -> Demands:
        """What this request asks of a worker."""
        messages = self.question.messages
        features = demanded_features(self.parameters)
        if any(message.image_address_count for message in messages):
            features |= {IMAGE_URLS}
        money_cap = self.caps.max_cost_usd_micros
        return Demands(
            client_filter=self.client_filter,
            reach=self.reach,
            named_worker_id=self.named_worker_id,
            has_images=any(message.image_count for message in messages),
            has_audio=any(message.audio_count for message in messages),
            features=features,
            input_tokens_at_most=token_bound(self.question),
            max_cost_usd_micros=money_cap,
            has_money_cap=any(
                limit is not None
                for limit in (money_cap, self.tenant_budget_usd_micros, self.key_budget_usd_micros)
            ),
            makes_embeddings=self.kind is RunKind.EMBED,
            may_share_images=self.has_several_workers,
        )

    def opened(
        self,
        event_id: str,
        pool: Pool,
        verdicts: tuple[Verdict, ...],
        plan: PlanReply | None,
        refusal_reason: str = "",
    ) -> OpenedRun:
        """Return what is recorded before anything is dispatched, or instead of it."""
        return OpenedRun(
            event_id=event_id,
            run_id=self.run_id,
            kind=self.kind,
            tenant_id=self.tenant_id,
            principal_id=self.principal_id,
            requested_model=self.requested_model,
            question=self.question,
            verdicts=verdicts,
            # Every answer of the last step has its own attempts.
            caps=replace(
                self.caps, max_attempts_per_step=self.caps.max_attempts_per_step * self.answer_count
            ),
            pool_digest=pool.pool_digest,
            price_digest=pool.price_digest,
            policy_digest=policy_digest(self.reach),
            plan=plan,
            tenant_budget_usd_micros=self.tenant_budget_usd_micros,
            key_budget_usd_micros=self.key_budget_usd_micros,
            refusal_reason=refusal_reason,
            continues_run_id=self.continues_run_id,
            subject_id=self.subject_id,
        )
