"""The leaves of a run: which facts each type of record carries, decoded and checked for form."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podium_verifier import canonical_json, shape
from podium_verifier.export_format import LeafLine
from podium_verifier.faults import ExitCode, fail
from podium_verifier.shape import count, digest, exactly, flag, list_of, one_of, optional, record, text

USAGE = record(
    {
        "input_tokens": count,
        "output_tokens": count,
        "cached_input_tokens": count,
        "cache_write_input_tokens": count,
        "reasoning_output_tokens": count,
        "source": one_of("provider", "estimated", "unknown"),
    }
)
_ATTEMPT_END = record(
    {
        "attempt_id": text,
        "outcome": one_of("completed", "failed", "cancelled", "timed_out", "unknown"),
        "usage": USAGE,
        "cost_usd_micros": count,
        "latency_us": count,
        "finish_reason": text,
        "error_reason": text,
        "provider_response_id": text,
        "served_model": text,
        "dispatched": flag,
    }
)
_ERASURE = {"principal_id": text, "basis": text, "case_id": text}
_HOLD = {"hold_id": text, "case_id": text, "principal_id": text}
_APPROVAL = {"approval_id": text, "action": text, "target": text, "case_id": text, "principal_id": text}
FACTS: Mapping[str, shape.Check] = {
    "opened": record(
        {
            "kind": one_of("chat", "embed", "calibrate", "train", "probe"),
            "principal_id": text,
            "requested_model": text,
            "verdicts": list_of(record({"worker_id": text, "allowed": flag, "rule_id": text})),
            "caps": shape.open_record(shape.anything),
            "pool_digest": text,
            "price_digest": text,
            "policy_digest": text,
            "trace_id": text,
            "refusal_reason": text,
            "continues_run_id": text,
            "has_plan": flag,
        },
        {"subject": text},
    ),
    "plan": record(
        {
            "round": count,
            "source": text,
            "steps": list_of(
                record(
                    {
                        "worker_id": text,
                        "access": list_of(count),
                        "sees_previous_round": flag,
                        "fallback_worker_id": text,
                        "subtask_part_id": text,
                    }
                )
            ),
            "model_digest": text,
            "choices": list_of(shape.anything),
            "usage": USAGE,
            "seed": text,
            "generation_count": count,
            "fallback_reason": text,
        },
        later={"tokenizer_digest": text, "template_digest": text},
    ),
    "content": shape.open_record(shape.anything),
    "attempt_begun": record(
        {
            "attempt_id": text,
            "kind": one_of("plan", "step", "repair", "continuation", "embed", "probe"),
            "round": count,
            "step_index": count,
            "worker_id": text,
            "provider": text,
            "provider_model": text,
            "region": text,
            "endpoint_host": text,
            "seen_steps": list_of(count),
            "sees_previous_round": flag,
            "max_cost_usd_micros": count,
            "price_digest": text,
            "pool_digest": text,
            "body": record(
                {
                    "length": count,
                    "commitment": digest,
                    "salt_part_id": text,
                    "layout": list_of(record({"part_id": text, "from": count, "to": count})),
                }
            ),
        }
    ),
    "attempt_ended": _ATTEMPT_END,
    "attempt_late": _ATTEMPT_END,
    "sealed": record(
        {
            "outcome": one_of("answered", "refused", "failed", "cancelled", "abandoned"),
            "error_reason": text,
            "record_count": count,
            "attempt_count": count,
            "cost_usd_micros": count,
            "unknown_attempts": list_of(text),
        }
    ),
    "erasure_begun": record(_ERASURE),
    "erasure_refused": record({**_ERASURE, "hold_ids": list_of(text)}),
    "erased": record(
        {**_ERASURE, "begun_index": count, "part_count": count, "key_is_gone": flag, "key_backup_days": count}
    ),
    "hold_placed": record({**_HOLD, "run_ids": list_of(text)}),
    "hold_released": record({**_HOLD, "approval_id": text}),
    "evidence_dropping": record({"month": text, "evidence_days": count}),
    "evidence_dropped": record({"month": text, "evidence_days": count}),
    "retention_set": record(
        {
            "evidence_days": optional(count),
            "content_days": optional(count),
            "conversation_days": optional(count),
            "approval_id": text,
        }
    ),
    "approval_requested": record({**_APPROVAL, "expires_us": count}),
    "approval_given": record(_APPROVAL),
    "key_rotated": record({"old_vkey": text, "new_vkey": text, "signature": text}),
    "log_gap": record({"kept_size": count, "kept_root": text, "lost_size": count, "lost_note": text}),
    "note": shape.open_record(shape.anything),
    "read": shape.open_record(shape.anything),
}
_LEAF = record(
    {
        "v": exactly(1),
        "type": one_of(*FACTS),
        "event_id": text,
        "run_id": text,
        "run_seq": optional(count),
        "tenant_id": text,
        "tenant_seq": count,
        "time_us": count,
        "service": text,
        "facts": shape.anything,
        "contents": list_of(
            record(
                {
                    "part_id": text,
                    "name": text,
                    "media_type": text,
                    "length": count,
                    "commitment": digest,
                    "ciphertext_sha256": digest,
                }
            )
        ),
    }
)


@dataclass(frozen=True, slots=True)
class ContentEntry:
    """What a leaf says about one content part."""

    part_id: str
    name: str
    length: int
    commitment: bytes


@dataclass(frozen=True, slots=True)
class Leaf:
    """One record of the run. `facts` has passed the check for its type."""

    line: int
    index: int
    type: str
    run_id: str
    run_seq: int | None
    tenant_id: str
    tenant_seq: int
    time_us: int
    service: str
    facts: Mapping[str, Any]
    contents: tuple[ContentEntry, ...]


def read_leaf(source: LeafLine) -> Leaf:
    """Decode a leaf that is known to be in the log; raise FaultError if it is not a record of the format."""
    try:
        fields: dict[str, Any] = canonical_json.parse_object(source.data)
        _LEAF(fields, "the leaf")
        FACTS[fields["type"]](fields["facts"], f"{fields['type']}.facts")
    except ValueError as error:
        fail(ExitCode.MALFORMED, str(error), line=source.line, leaf_index=source.index)
    return Leaf(
        line=source.line,
        index=source.index,
        type=fields["type"],
        run_id=fields["run_id"],
        run_seq=fields["run_seq"],
        tenant_id=fields["tenant_id"],
        tenant_seq=fields["tenant_seq"],
        time_us=fields["time_us"],
        service=fields["service"],
        facts=fields["facts"],
        contents=tuple(
            ContentEntry(c["part_id"], c["name"], c["length"], bytes.fromhex(c["commitment"]))
            for c in fields["contents"]
        ),
    )
