"""Records that are part of no run: stops of workers and of everything, notes, reads, what befell the log."""

from podium_audit.ports import StopRow
from podium_audit.records.commands import AppendNote, Applied, RecordHistory, RecordRead, SetStop
from podium_audit.records.facts import Draft
from podium_audit.rules import endings, opening, stops
from podium_audit.rules.state import LogState


def apply(
    state: LogState, command: AppendNote | RecordRead | RecordHistory | SetStop, now_us: int, max_bytes: int
) -> Applied:
    """Put the record into the running batch. Raises PodiumError when it is refused."""
    tenant_id = ""
    match command:
        case SetStop():
            drafts = stops.set_stop(state.stops, command)
        case AppendNote():
            drafts = opening.append_note(None, command, max_bytes)
        case RecordHistory():
            drafts = [Draft(command.type, dict(command.facts), in_run=False)]
        case RecordRead():
            drafts, tenant_id = endings.read(command), command.tenant_id
    indices = state.stage(command.event, None, drafts, now_us, tenant_id=tenant_id)
    if isinstance(command, SetStop):
        state.set_stop(StopRow(command.tenant_id, command.worker_id, now_us if command.stands else 0))
    return Applied(indices)
