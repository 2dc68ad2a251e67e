"""The same question put to today's Conductor, with the recorded seed, caps and eligible workers."""

from collections.abc import Sequence
from dataclasses import dataclass

from podium_cli.failures import CliError
from podium_cli.home import Home
from podium_cli.local_ca import service_files
from podium_cli.planning_client import planning_client
from podium_cli.replay.recorded import RecordedPlan, RecordedRun
from podium_core.config.tenants import load_tenants
from podium_core.domain.ids import IdFactory
from podium_core.domain.plan import Plan, PlanSource
from podium_core.domain.policy import Verdict
from podium_core.orchestration.ports import PlanQuery, PlanReply

_BY_CONDUCTOR = frozenset({PlanSource.MODEL, PlanSource.EMBEDDED, PlanSource.WORKER, PlanSource.FAST})
_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Replanned:
    """One round planned again. `changes` say what is not as it was when the run was planned."""

    recorded: RecordedPlan
    reply: PlanReply
    changes: tuple[str, ...]

    @property
    def differences(self) -> list[str]:
        """What the two plans do not share, in words; empty when they match."""
        return differences(self.recorded.plan, self.reply.plan)


async def replan(run: RecordedRun, home: Home, ids: IdFactory) -> list[Replanned]:
    """Plan every round of the run again.

    Raises CliError for a run that no Conductor planned or whose workers are gone, and PodiumError.
    """
    if not run.plans or any(plan.plan.source not in _BY_CONDUCTOR for plan in run.plans):
        sources = ", ".join(sorted({str(plan.plan.source) for plan in run.plans})) or "none"
        raise CliError(
            f"no Conductor made this run's plan (source: {sources})", hint="podium replay RUN needs none"
        )
    addresses = home.read_endpoints()["grpc"]
    tenant = load_tenants(home.tenants_file).tenants[0]
    made: list[Replanned] = []
    async with planning_client(addresses, service_files(home.tls_dir, "cli"), ids) as client:
        pool = await client.pool()
        workers = tuple(worker for worker in pool.workers if worker.worker_id in run.allowed)
        if gone := run.allowed - {worker.worker_id for worker in workers}:
            raise CliError(f"the pool no longer holds {', '.join(sorted(gone))}", hint="see pool.yaml")
        verdicts = tuple(
            Verdict(worker.worker_id, worker.worker_id in run.allowed) for worker in pool.workers
        )
        moved = () if pool.pool_digest == run.pool_digest else ("the pool (cards, prices or limits)",)
        for recorded in run.plans:
            before = run.plans[recorded.plan.round - 1].plan if recorded.plan.round else None
            query = PlanQuery(
                ids.new("run"),
                run.question,
                workers,
                run.caps,
                run.model.partition("@")[0],
                recorded.seed,
                _TIMEOUT_S,
                round=recorded.plan.round,
                previous_plan=before,
                previous_answer=_answer_before(run, recorded.plan.round),
                tenant_id=tenant.tenant_id,
                pool_digest=pool.pool_digest,
            )
            planned = await client.plan(query, pool, verdicts, tenant)
            made.append(Replanned(recorded, planned.reply, (*moved, *_changed(recorded, planned.reply))))
    return made


def differences(one: Plan, other: Plan) -> list[str]:
    """Return how two plans differ, recorded first, in words."""
    if len(one.steps) != len(other.steps):
        return [f"{len(one.steps)} steps before, {len(other.steps)} now"]
    found: list[str] = []
    for index, (before, now) in enumerate(zip(one.steps, other.steps, strict=True)):
        if before.worker_id != now.worker_id:
            found.append(f"step {index}: {before.worker_id} before, {now.worker_id} now")
        if before.subtask != now.subtask:
            found.append(f"step {index}: another subtask")
        if before.access != now.access:
            found.append(
                f"step {index}: sees {_sees(before.access.steps)} before, {_sees(now.access.steps)} now"
            )
    return found


def _sees(steps: Sequence[int]) -> str:
    return ", ".join(map(str, steps)) or "nothing"


def _changed(recorded: RecordedPlan, reply: PlanReply) -> list[str]:
    pairs = (
        ("the Conductor's model", recorded.model_digest, reply.model_digest),
        ("the prompt template", recorded.template_digest, reply.template_digest),
    )
    return [name for name, before, now in pairs if before != now]


def _answer_before(run: RecordedRun, round_number: int) -> str:
    """Return the answer that the Conductor was shown: the last one of the rounds before."""
    said = [
        attempt.words
        for attempt in run.attempts
        if attempt.round < round_number
        and attempt.is_done
        and attempt.words
        and attempt.step_index == len(run.plans[attempt.round].plan.steps) - 1
    ]
    return said[-1] if said else ""
