"""How a run is closed, and the records that only refer to it."""

from podium_audit.records import contents, limits
from podium_audit.records.commands import RecordRead, Seal
from podium_audit.records.facts import Draft
from podium_audit.records.run_state import RunState
from podium_audit.rules import opening


def seal(run: RunState, command: Seal, max_bytes: int) -> list[Draft]:
    """Return the record that closes the run; open attempts are settled at their reserved maximum.

    Returns nothing while attempts are open and the command does not settle them: from then on the run
    takes no new attempt. Raises PodiumError: CONFLICT (sealed before), INVALID_REQUEST, TOO_LARGE.
    """
    if command.event.service != "audit":
        opening.check_caller(command.event.service, run.kind)
    opening.check_open(run)
    limits.check_texts((("error_reason", command.error_reason),))
    parts: list[contents.SealedPart] = []
    if command.contents:
        data_key = opening.check_new_parts(run, command.contents, max_bytes)
        parts = [contents.seal(data_key, run.row.run_id, part) for part in command.contents]
    if run.open_attempts and not command.settle_open:
        run.is_sealing = True
        return []
    fields = {
        "outcome": command.outcome.value,
        "error_reason": command.error_reason,
        "record_count": len(run.leaf_indices) + 1,
        "attempt_count": len(run.attempts),
        "cost_usd_micros": run.settled_usd_micros + run.reserved_usd_micros,
        "unknown_attempts": list(run.open_attempts),
    }
    return [Draft("sealed", fields, parts)]


def read(command: RecordRead) -> list[Draft]:
    """Return the record of a read."""
    fields = {
        "action": command.action,
        "principal_id": command.principal_id,
        "with_content": command.with_content,
        **command.facts,
    }
    return [Draft("read", fields, in_run=False)]
