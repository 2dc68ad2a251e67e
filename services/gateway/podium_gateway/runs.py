"""From a decoded request to a run under way."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from podium_core.config.tenants import Principal
from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.gate import GateTable
from podium_core.domain.ids import IdFactory
from podium_core.domain.pool import Pool
from podium_core.domain.run import Caps
from podium_core.orchestration.contract import AnswerContract
from podium_core.orchestration.eligible import demanded_features
from podium_core.orchestration.request import RunRequest
from podium_gateway.admission import Slot
from podium_gateway.answers import AnswerContext, Asked, kept_events
from podium_gateway.budgets import Budgets
from podium_gateway.caps import MaxTier, effective_caps
from podium_gateway.codecs.client_request import ClientRequest
from podium_gateway.codecs.fields import refuse
from podium_gateway.codecs.model_names import model_not_found
from podium_gateway.codecs.podium_object import PodiumView
from podium_gateway.limiter import Claim
from podium_gateway.live_run import LiveRun
from podium_gateway.named_models import NamedModels
from podium_gateway.ports import GradePort, LeasePort, RunnerPort
from podium_gateway.telemetry import RunTelemetry

_NANOS = 1_000_000_000


@dataclass(slots=True)
class Runs:
    """The runs of this gateway: makes their requests, starts them, and can stop them all."""

    runner: RunnerPort
    leases: LeasePort
    budgets: Budgets
    telemetry: RunTelemetry
    clock: Clock
    ids: IdFactory
    caps: Caps
    grades: GradePort
    max_tier: MaxTier = MaxTier()
    gate: Callable[[], GateTable] = GateTable
    named: NamedModels = NamedModels()
    live: set[LiveRun] = field(default_factory=set)

    def request(
        self, asked: ClientRequest, principal: Principal, pool: Pool, contract: AnswerContract | None
    ) -> RunRequest:
        """Return what the runner is asked; raise PodiumError for what no worker can honour."""
        if asked.worker_id is not None and asked.worker_id not in pool.by_id:
            raise model_not_found(asked.model)
        pin = self.named.pin(asked.name, pool)
        static_plan = self.named.static_plan(asked.name)
        _check_features(asked, pool)
        tenant = principal.tenant
        caps = effective_caps(asked.wishes, tenant.caps, self.caps, asked.tier, self.max_tier)
        if asked.parameters.answer_count > 1 and caps.max_rounds > 1:
            raise refuse("n", "must be 1 where later rounds may revise the answer; use another model")
        return RunRequest(
            run_id=self.ids.new("run"),
            kind=asked.kind,
            tenant_id=tenant.tenant_id,
            principal_id=principal.key_id,
            requested_model=asked.model,
            tier=asked.tier,
            question=asked.question,
            caps=caps,
            client_filter=asked.wishes.workers,
            reach=principal.reach,
            named_worker_id=asked.worker_id,
            tenant_budget_usd_micros=tenant.budget_usd_micros,
            key_budget_usd_micros=principal.key_budget_usd_micros,
            subject_id=asked.parameters.subject_id,
            parameters=asked.parameters.passed,
            max_output_tokens=asked.parameters.max_output_tokens,
            stream=asked.parameters.stream,
            contract=contract,
            answer_count=asked.parameters.answer_count,
            gate=self._gate_of(tenant.tenant_id) if tenant.is_gated else None,
            static_plan=static_plan,
            pinned_model_digest=None if pin is None else pin.model_digest,
        )

    def _gate_of(self, tenant_id: str) -> GateTable:
        """Return the gate's table as the tenant's own grades have moved it."""
        return self.gate().with_grades(self.grades.tallies(tenant_id))

    def context(
        self, asked: ClientRequest, request: RunRequest, pool: Pool, started_ns: int
    ) -> AnswerContext:
        """Return what every answer to the request repeats."""
        budget = partial(self.budgets.shown, request.tenant_id, request.principal_id)
        demo_workers = frozenset(worker.worker_id for worker in pool.workers if worker.is_demo)
        return AnswerContext(
            run_id=request.run_id,
            model=asked.model,
            created=self.clock.now_ns() // _NANOS,
            view=PodiumView(request.caps, asked.parameters.metadata, demo_workers, budget),
            on_first_output=lambda: self.telemetry.first_output(request, started_ns),
        )

    def start(
        self,
        request: RunRequest,
        pool: Pool,
        headers: Mapping[str, str],
        slot: Slot,
        claim: Claim,
        asked: Asked,
        context: AnswerContext,
    ) -> LiveRun:
        """Start a run. It keeps `slot` until it is sealed, whether or not somebody still listens."""

        def ended() -> None:
            self.leases.forget(run.run_id)
            self.live.discard(run)
            slot.release()

        events = kept_events(self.runner.run(request, pool), asked, context)
        watching = claim.watching(self.telemetry.watch(request, headers))
        run = LiveRun(request.run_id, events, watching, ended, slot.add)
        self.live.add(run)
        self.leases.track(run.run_id, run.cancel)
        return run

    def cancel_all(self) -> None:
        """Stop every run; each seals itself `cancelled`."""
        for run in tuple(self.live):
            run.cancel(PodiumError(Code.UNAVAILABLE, "this gateway is shutting down", reason="SHUTTING_DOWN"))


def _check_features(asked: ClientRequest, pool: Pool) -> None:
    """Refuse a parameter that no worker in question can honour, by its name."""
    workers = pool.workers if asked.worker_id is None else (pool.by_id[asked.worker_id],)
    for name, value in asked.parameters.passed.items():
        needed = demanded_features({name: value})
        if needed and not any(needed <= worker.card.features for worker in workers):
            who = "no worker of the pool has" if asked.worker_id is None else f"{asked.worker_id} lacks"
            raise refuse(
                name,
                f"{who} the feature {', '.join(sorted(needed))}; leave the parameter out",
                reason="UNSUPPORTED_PARAMETER",
            )
