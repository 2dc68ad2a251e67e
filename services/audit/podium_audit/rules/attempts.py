"""Permits: the checks an attempt must pass before it may be dispatched, and how it is settled."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

from podium_audit.records import contents, facts, limits
from podium_audit.records.commands import BeginAttempt, BodyPiece, EndAttempt, Part
from podium_audit.records.facts import Draft
from podium_audit.records.run_state import STEP_KINDS, Attempt, RunState, StepRule
from podium_audit.rules import opening
from podium_audit.rules.money import TenantBook, check_money
from podium_core.domain.errors import Code, PodiumError, invalid
from podium_core.domain.run import AttemptKind, RunKind

ReadPart = Callable[[RunState, str], bytes]

_INLINE_NAME = "sent"
_INLINE_MEDIA_TYPE = "application/octet-stream"


def begin(
    run: RunState, command: BeginAttempt, book: TenantBook, month: str, read_part: ReadPart, max_bytes: int
) -> list[Draft]:
    """Return the record that is the permit.

    Raises PodiumError: CONFLICT (run closed, body differs from its digest), POLICY_DENIED (plan, worker
    or what it would see), BUDGET_EXHAUSTED (calls, attempts, money), INVALID_REQUEST, TOO_LARGE.
    """
    attempt_id = command.event.event_id
    opening.check_open(run)
    if run.is_sealing:
        raise PodiumError(Code.CONFLICT, "the run is being sealed", reason="RUN_SEALED")
    limits.check_texts(
        (
            ("provider", command.provider),
            ("provider_model", command.provider_model),
            ("region", command.region),
            ("endpoint_host", command.endpoint_host),
        )
    )
    if not run.allowed.get(command.worker_id, False):
        raise _denied(f"no verdict of this run allows worker {command.worker_id}", "WORKER_NOT_ALLOWED")
    if command.kind in STEP_KINDS:
        _check_step(run, command)
        _check_sight(run, command)
    _check_counts(run, command)
    check_money(run, book, month, command.max_cost_usd_micros)
    inline = b"".join(piece.inline for piece in command.body)
    sent: tuple[Part, ...] = ()
    if inline:
        sent = (Part(f"{attempt_id}/inline", _INLINE_NAME, _INLINE_MEDIA_TYPE, inline),)
    data_key = opening.check_new_parts(run, sent, max_bytes)
    body = _body(run, command, data_key, read_part)
    parts = [contents.seal(data_key, run.row.run_id, part) for part in sent]
    return [Draft("attempt_begun", facts.attempt_begun(command, body), parts)]


def end(run: RunState, command: EndAttempt, max_bytes: int) -> list[Draft]:
    """Return the record of an attempt's end; a late one when the run was sealed before it came.

    Raises PodiumError: NOT_FOUND (no such attempt), CONFLICT (ended before), INVALID_REQUEST, TOO_LARGE.
    """
    attempt = run.attempts.get(command.attempt_id)
    if attempt is None:
        raise PodiumError(
            Code.NOT_FOUND, "the run has no such attempt", reason="ATTEMPT_UNKNOWN", param="attempt_id"
        )
    is_late = attempt.is_unknown
    if not is_late and command.attempt_id not in run.open_attempts:
        raise PodiumError(Code.CONFLICT, "the attempt has ended already", reason="ATTEMPT_ENDED")
    if command.cost_usd_micros > attempt.max_cost_usd_micros:
        raise invalid(
            f"the attempt may cost the {attempt.max_cost_usd_micros} millionths of a dollar that its permit"
            f" reserved, not {command.cost_usd_micros}",
            param="cost_usd_micros",
        )
    limits.check_texts(
        (
            ("finish_reason", command.finish_reason),
            ("error_reason", command.error_reason),
            ("provider_response_id", command.provider_response_id),
            ("served_model", command.served_model),
        )
    )
    parts: list[contents.SealedPart] = []
    if command.contents and run.erasure_index is None:  # what it cost counts, what it said goes with the rest
        data_key = opening.check_new_parts(run, command.contents, max_bytes)
        parts = [contents.seal(data_key, run.row.run_id, part) for part in command.contents]
    kind = "attempt_late" if is_late else "attempt_ended"
    return [Draft(kind, facts.attempt_ended(command), parts, in_run=not is_late)]


def _check_step(run: RunState, command: BeginAttempt) -> None:
    """Hold an attempt that performs a step to the recorded plan: its worker and what it may see."""
    if run.kind == RunKind.CALIBRATE and not run.plans:
        if command.seen_steps or command.sees_previous_round:
            raise _denied("without a plan there is nothing to see", "SEES_TOO_MUCH")
        return
    if command.round >= len(run.plans):
        raise _denied(
            f"no plan of round {command.round} is recorded: record it before its attempts",
            "PLAN_NOT_RECORDED",
        )
    steps = run.plans[command.round]
    if command.step_index >= len(steps):
        raise invalid(f"the plan has {len(steps)} steps, none at {command.step_index}", param="step_index")
    rule = steps[command.step_index]
    if command.worker_id not in rule.workers:
        raise _denied(
            f"the plan gives step {command.step_index} to {rule.workers[0]}"
            + (f" or {rule.workers[1]}" if rule.workers[1] else "")
            + f", not to {command.worker_id}",
            "WORKER_NOT_PLANNED",
        )
    _check_access(command, rule)


def _check_access(command: BeginAttempt, rule: StepRule) -> None:
    sees_more = command.sees_previous_round and not rule.sees_previous_round
    if sees_more or not rule.access.issuperset(command.seen_steps):
        raise _denied(
            f"step {command.step_index} would see more than its plan allows: steps {sorted(rule.access)}"
            f"{' and the previous round' if rule.sees_previous_round else ''}",
            "SEES_TOO_MUCH",
        )


def _check_sight(run: RunState, command: BeginAttempt) -> None:
    """Hold a step to what it says it sees: that is finished, and its body holds no other step's words."""
    for step in command.seen_steps:
        made = run.step_attempts.get((command.round, step))
        # The newest counts: an older one that never ended was lost on its way and made again.
        if made and made[-1] in run.open_attempts:
            raise _denied(
                f"the attempt of step {step}, which this one sees, has not ended", "SEEN_STEP_RUNNING"
            )
    for piece in command.body:
        part = run.parts.get(piece.part_id)
        source = run.attempts[part.attempt_id] if part is not None and part.attempt_id else None
        if source is not None and source.kind in STEP_KINDS and not _is_visible(source, command):
            raise _denied(
                f"the body holds {piece.part_id}, of a step this one does not see", "BODY_SEES_TOO_MUCH"
            )


def _is_visible(source: Attempt, command: BeginAttempt) -> bool:
    if source.round == command.round:
        return source.step_index in (*command.seen_steps, command.step_index)
    return command.sees_previous_round and source.round == command.round - 1


def _check_counts(run: RunState, command: BeginAttempt) -> None:
    calls = run.caps["max_calls"]
    if calls is not None and len(run.attempts) >= calls:
        raise PodiumError(
            Code.BUDGET_EXHAUSTED,
            f"this run may make {calls} calls, and they are made",
            reason="CALLS_EXHAUSTED",
        )
    tries = run.caps["max_attempts_per_step"]
    if command.kind in STEP_KINDS and tries:
        made = len(run.step_attempts.get((command.round, command.step_index), ()))
        if made >= tries:
            raise PodiumError(
                Code.BUDGET_EXHAUSTED,
                f"step {command.step_index} may have {tries} attempts, and they are made",
                reason="ATTEMPTS_EXHAUSTED",
            )


def _body(run: RunState, command: BeginAttempt, data_key: bytes, read_part: ReadPart) -> dict[str, Any]:
    """Return what the record says of the exact bytes that will be sent."""
    attempt_id = command.event.event_id
    if not command.body and command.kind != AttemptKind.PROBE:
        raise invalid("name the exact bytes that will be sent", param="body")
    pieces: list[bytes] = []
    layout: list[dict[str, Any]] = []
    at = 0
    for piece in command.body:
        if piece.part_id:
            data = _stored(run, piece, read_part)
            layout.append({"part_id": piece.part_id, "from": 0, "to": len(data)})
        else:
            data = piece.inline
            layout.append({"part_id": f"{attempt_id}/inline", "from": at, "to": at + len(data)})
            at += len(data)
        pieces.append(data)
    _check_digest(command.body_sha256, pieces)
    salt_part_id = f"{attempt_id}/body"
    return {
        "length": sum(len(piece) for piece in pieces),
        "commitment": contents.commitment(data_key, salt_part_id, pieces),
        "salt_part_id": salt_part_id,
        "layout": [place for place in layout if place["from"] != place["to"]],
    }


def _stored(run: RunState, piece: BodyPiece, read_part: ReadPart) -> bytes:
    if piece.inline:
        raise invalid("a body part is either a part_id or inline bytes, not both", param="body")
    if piece.part_id not in run.parts:
        raise invalid(f"the run has no content {piece.part_id}: send it before", param="body")
    return read_part(run, piece.part_id)


def _check_digest(expected: bytes, pieces: Sequence[bytes]) -> None:
    if not expected:
        return
    digest = sha256()
    for piece in pieces:
        digest.update(piece)
    if digest.digest() != expected:
        raise PodiumError(
            Code.CONFLICT,
            "the body parts do not join to the body that body_sha256 names",
            reason="BODY_MISMATCH",
            param="body_sha256",
        )


def _denied(message: str, reason: str) -> PodiumError:
    return PodiumError(Code.POLICY_DENIED, message, reason=reason)
