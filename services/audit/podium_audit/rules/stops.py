"""What is stopped, and what that refuses: a run for good, a worker or everything until it is cleared."""

from collections.abc import Iterable, Mapping

from podium_audit.ports import StopRow
from podium_audit.records import limits
from podium_audit.records.commands import SetStop, StopRun
from podium_audit.records.facts import Draft
from podium_audit.records.run_state import CLEARED_NOTE, STOP_NOTE, RunState
from podium_audit.rules.opening import check_open
from podium_core.domain.errors import Code, PodiumError

Standing = Mapping[tuple[str, str], int]
"""Since when, in microseconds since 1970, by (tenant id or empty, worker id or empty)."""


def standing(rows: Iterable[StopRow]) -> Standing:
    """Return the stops that stand."""
    return {(row.tenant_id, row.worker_id): row.since_us for row in rows if row.since_us}


def changed(stops: Standing, row: StopRow) -> Standing:
    """Return the stops with one set or cleared; the old ones stay as they are, for whoever reads them."""
    return standing([*(StopRow(*key, since_us) for key, since_us in stops.items() if key != row[:2]), row])


def stop_run(run: RunState, command: StopRun) -> list[Draft]:
    """Return the record of a run's stop.

    Raises PodiumError: NOT_FOUND (another tenant's run), CONFLICT (it has ended).
    """
    if command.tenant_id and command.tenant_id != run.row.tenant_id:
        raise PodiumError(Code.NOT_FOUND, "there is no such run", reason="RUN_UNKNOWN", param="run_id")
    check_open(run)
    limits.check_texts((("principal_id", command.principal_id),))
    return [Draft("note", {"kind": STOP_NOTE, "facts": {"principal_id": command.principal_id}})]


def set_stop(stops: Standing, command: SetStop) -> list[Draft]:
    """Return the record of a stop of a worker or of everything, or of its end.

    Raises PodiumError (NOT_FOUND) for the end of a stop that does not stand.
    """
    for name, value in (("tenant_id", command.tenant_id), ("worker_id", command.worker_id)):
        if value:
            limits.check_id(name, value)
    limits.check_texts((("principal_id", command.principal_id),))
    if not command.stands and (command.tenant_id, command.worker_id) not in stops:
        raise PodiumError(Code.NOT_FOUND, "that is not stopped", reason="STOP_UNKNOWN")
    facts = {
        "tenant_id": command.tenant_id,
        "worker_id": command.worker_id,
        "principal_id": command.principal_id,
    }
    kind = STOP_NOTE if command.stands else CLEARED_NOTE
    return [Draft("note", {"kind": kind, "facts": facts}, in_run=False)]


def check(run: RunState, worker_id: str, stops: Standing) -> None:
    """Raise PodiumError if no attempt of the run by this worker may begin: CONFLICT or POLICY_DENIED."""
    if run.is_stopped:
        raise PodiumError(
            Code.CONFLICT, "the run was stopped: it makes no further attempt", reason="RUN_STOPPED"
        )
    if not stops:
        return
    tenant_id = run.row.tenant_id
    if ("", "") in stops or (tenant_id, "") in stops:
        raise PodiumError(
            Code.POLICY_DENIED,
            "an operator has stopped all work; ask when it goes on",
            reason="EVERYTHING_STOPPED",
        )
    if ("", worker_id) in stops or (tenant_id, worker_id) in stops:
        raise PodiumError(
            Code.POLICY_DENIED,
            f"an operator has stopped the worker {worker_id}; leave it out or ask when it goes on",
            reason="WORKER_STOPPED",
        )


def struck(runs: Iterable[RunState], stops: Standing) -> list[str]:
    """Return the runs that must be cancelled now: stopped themselves, or with a stopped worker at work."""
    return [run.row.run_id for run in runs if run.is_stopped or _is_struck(run, stops)]


def _is_struck(run: RunState, stops: Standing) -> bool:
    if not stops:
        return False
    workers = {"", *(attempt.worker_id for attempt in run.open_attempts.values())}
    return any((tenant_id, worker) in stops for tenant_id in ("", run.row.tenant_id) for worker in workers)
