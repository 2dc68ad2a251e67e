"""One run from admission to seal."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field

from podium_core.domain.clock import Clock
from podium_core.domain.ids import IdFactory
from podium_core.domain.plan import PlanSource
from podium_core.domain.pool import Pool
from podium_core.domain.run import Caps, Question, RunKind
from podium_core.orchestration.events import RunEvent
from podium_core.orchestration.ports import PlannerPort, RecorderPort, WorkerPort


@dataclass(frozen=True, slots=True)
class WorkerFilter:
    """Which workers somebody wants: `only` these (None: any) and none of `excluded`."""

    only: frozenset[str] | None = None
    excluded: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What the edge hands to the runner: who asks what, with which limits.

    `named_worker_id` asks for one worker by name (model `worker/<id>`): no plan is made. `parameters`
    are the provider body fields of the answering step (temperature, stop, tools, ...);
    `max_output_tokens` limits the answering step. `stream` says whether deltas are wanted.
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
    tenant_filter: WorkerFilter = WorkerFilter()
    named_worker_id: str | None = None
    tenant_budget_usd_micros: int | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)
    max_output_tokens: int | None = None
    stream: bool = False


@dataclass(frozen=True, slots=True)
class RunnerLimits:
    """The server's own bounds, in seconds and counts; a request's caps can only be tighter."""

    plan_timeout_s: float = 20.0
    step_timeout_s: float = 300.0
    run_timeout_s: float = 1_800.0
    seal_timeout_s: float = 15.0
    retry_base_s: float = 0.25
    retry_max_s: float = 8.0
    inner_step_output_tokens: int = 4_096


class Runner:
    """Runs requests over its ports. Stateless between runs, so one instance serves all."""

    def __init__(
        self,
        planner: PlannerPort,
        workers: WorkerPort,
        recorder: RecorderPort,
        clock: Clock,
        ids: IdFactory,
        limits: RunnerLimits = RunnerLimits(),
    ) -> None:
        self._planner = planner
        self._workers = workers
        self._recorder = recorder
        self._clock = clock
        self._ids = ids
        self._limits = limits

    def run(self, request: RunRequest, pool: Pool) -> AsyncGenerator[RunEvent, None]:
        """Yield what happens, ending with exactly one RunFinished once the run was opened.

        Raises PodiumError before the run is opened or when it is refused (the refusal is recorded; the
        error's metadata carries `run_id`). Closing the generator cancels the run: open attempts are
        cancelled and the run is sealed `cancelled`, shielded from the cancellation.
        """
        raise NotImplementedError(request, pool, PlanSource)
