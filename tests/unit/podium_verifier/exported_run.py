"""A second, naive writer of logs and exports: what the verifier is tested against.

It follows the written formats by their definitions (recursive tree hash, no caching) and shares no code
with Podium's log or with the verifier.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import HealthCheck, settings

ORIGIN = "podium.local/audit"
RUN_KEY = bytes(range(32))
USAGE = {
    "input_tokens": 12,
    "output_tokens": 5,
    "cached_input_tokens": 0,
    "cache_write_input_tokens": 0,
    "reasoning_output_tokens": 0,
    "source": "provider",
}
Record = dict[str, Any]
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Hypothesis settings for a machine that is busy with other things."""


def canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def tree_hash(leaves: list[bytes]) -> bytes:
    """RFC 6962 §2.1, MTH."""
    if not leaves:
        return hashlib.sha256().digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    k = _split(len(leaves))
    return hashlib.sha256(b"\x01" + tree_hash(leaves[:k]) + tree_hash(leaves[k:])).digest()


def audit_path(index: int, leaves: list[bytes]) -> list[bytes]:
    """RFC 6962 §2.1.1, PATH."""
    if len(leaves) == 1:
        return []
    k = _split(len(leaves))
    if index < k:
        return [*audit_path(index, leaves[:k]), tree_hash(leaves[k:])]
    return [*audit_path(index - k, leaves[k:]), tree_hash(leaves[:k])]


def consistency_path(old_size: int, leaves: list[bytes], *, is_whole: bool = True) -> list[bytes]:
    """RFC 6962 §2.1.2, SUBPROOF."""
    if old_size == len(leaves):
        return [] if is_whole else [tree_hash(leaves)]
    k = _split(len(leaves))
    if old_size <= k:
        return [*consistency_path(old_size, leaves[:k], is_whole=is_whole), tree_hash(leaves[k:])]
    return [*consistency_path(old_size - k, leaves[k:], is_whole=False), tree_hash(leaves[:k])]


def _split(size: int) -> int:
    return 1 << (size - 1).bit_length() - 1


class Signer:
    """An Ed25519 log key of the C2SP kind."""

    def __init__(self, seed: int = 1, name: str = ORIGIN) -> None:
        self.name = name
        self._key = Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
        self._public = b"\x01" + self._key.public_key().public_bytes_raw()
        self._key_id = hashlib.sha256(name.encode() + b"\n" + self._public).digest()[:4]

    @property
    def vkey(self) -> str:
        return f"{self.name}+{self._key_id.hex()}+{b64(self._public)}"

    def checkpoint(self, size: int, root: bytes) -> str:
        return self.sign(f"{self.name}\n{size}\n{b64(root)}\n")

    def rotation_to(self, new: "Signer") -> Record:
        """Return the facts of a rotation that this key signs."""
        statement = f"podium-key-rotation/1\n{self.vkey}\n{new.vkey}\n"
        return {
            "old_vkey": self.vkey,
            "new_vkey": new.vkey,
            "signature": b64(self._key.sign(statement.encode())),
        }

    def sign(self, text: str) -> str:
        return f"{text}\n\u2014 {self.name} {b64(self._key_id + self._key.sign(text.encode()))}\n"


def salt_of(part_id: str) -> bytes:
    return hmac.digest(RUN_KEY, b"podium-salt/1\x00" + part_id.encode(), "sha256")


def commitment(part_id: str, data: bytes) -> str:
    return hmac.digest(salt_of(part_id), data, "sha256").hex()


@dataclass
class ExportedRun:
    """The records of one run, which a test may bend before they are logged and exported."""

    run_id: str = "run_01"
    tenant_id: str = "acme"
    records: list[Record] = field(default_factory=list)
    parts: dict[str, bytes] = field(default_factory=dict)
    signer: Signer = field(default_factory=Signer)

    def add(self, kind: str, facts: Record, *parts: tuple[str, str, bytes], in_run: bool = True) -> Record:
        """Append a record; `parts` are (part id, name, data)."""
        record = {
            "v": 1,
            "type": kind,
            "event_id": f"ev_{len(self.records)}",
            "run_id": self.run_id,
            "run_seq": sum(r["run_seq"] is not None for r in self.records) if in_run else None,
            "tenant_id": self.tenant_id,
            "tenant_seq": 40 + len(self.records),
            "time_us": 1_796_000_000_000_000 + len(self.records),
            "service": "router" if kind.startswith("attempt") else "gateway",
            "facts": facts,
            "contents": [
                {
                    "part_id": part_id,
                    "name": name,
                    "media_type": "text/plain",
                    "length": len(data),
                    "commitment": commitment(part_id, data),
                    "ciphertext_sha256": hashlib.sha256(b"sealed" + data).hexdigest(),
                }
                for part_id, name, data in parts
            ],
        }
        self.records.append(record)
        self.parts.update({part_id: data for part_id, _, data in parts})
        return record

    def of_type(self, kind: str) -> list[Record]:
        return [record for record in self.records if record["type"] == kind]

    def renumber(self) -> None:
        """Give the remaining records gapless numbers again, as a cheating log would."""
        number = 0
        for record in self.records:
            if record["run_seq"] is not None:
                record["run_seq"], number = number, number + 1

    def log(self, history: Sequence[tuple[str, Record]] = ()) -> tuple[list[bytes], list[int]]:
        """Return a log's leaves with the records among them, and where the records are."""
        log = [b"stranger 0", b"stranger 1"]
        log += [canonical(log_record(kind, facts)) for kind, facts in history]
        indices = []
        for record in self.records:
            indices.append(len(log))
            log += [canonical(record), b"stranger at %d" % len(log)]
        return log, indices

    def export(
        self,
        *,
        with_content: bool = True,
        edit: Callable[[list[Record]], object] | None = None,
        history: Sequence[tuple[str, Record]] = (),
        since: Sequence[int] = (),
        anchors: Sequence[tuple[int, Callable[[str], str]]] = (),
    ) -> bytes:
        """Log the records between strangers' leaves and export them; `edit` may bend the lines first.

        `history` are (type, facts) of leaves before the run, from index 2 on; `since` sizes to prove
        consistency from; `anchors` sizes with what turns their checkpoint into what is exported.
        """
        log, indices = self.log(history)
        header = {
            "line": "header",
            "format": "podium-export/1",
            "origin": self.signer.name,
            "run_id": self.run_id,
            "tenant_id": self.tenant_id,
            "vkey": self.signer.vkey,
            "with_content": with_content,
        }
        note = self.signer.checkpoint(len(log), tree_hash(log))
        lines: list[Record] = [header, {"line": "checkpoint", "note": note}]
        lines += [leaf_line("history", at, log) for at in range(2, 2 + len(history))]
        for size, cosign in anchors:
            signed = cosign(self.signer.checkpoint(size, tree_hash(log[:size])))
            proof = [b64(p) for p in consistency_path(size, log)]
            lines.append({"line": "anchor", "note": signed, "proof": proof})
        for size in since:
            proof = [b64(p) for p in consistency_path(size, log)]
            lines.append({"line": "consistency", "from": size, "proof": proof})
        lines += [leaf_line("leaf", at, log) for at in indices]
        lines += self._content_lines(indices) if with_content else []
        if edit is not None:
            edit(lines)
        return finish(lines)

    def _content_lines(self, indices: list[int]) -> list[Record]:
        contents = [
            {
                "line": "content",
                "index": at,
                "part_id": entry["part_id"],
                "data": b64(self.parts[entry["part_id"]]),
                "salt": b64(salt_of(entry["part_id"])),
            }
            for at, record in zip(indices, self.records, strict=True)
            for entry in record["contents"]
        ]
        bodies = [
            {
                "line": "body",
                "index": at,
                "part_id": f"{record['facts']['attempt_id']}/body",
                "salt": b64(salt_of(f"{record['facts']['attempt_id']}/body")),
            }
            for at, record in zip(indices, self.records, strict=True)
            if record["type"] == "attempt_begun"
        ]
        return contents + bodies


def leaf_line(kind: str, at: int, log: list[bytes]) -> Record:
    """Return a leaf with its proof."""
    proof = [b64(p) for p in audit_path(at, log)]
    return {"line": kind, "index": at, "leaf": log[at].decode(), "proof": proof}


def log_record(kind: str, facts: Record) -> Record:
    """Return a record about the log itself."""
    return {
        "v": 1,
        "type": kind,
        "event_id": "log_event",
        "run_id": "",
        "run_seq": None,
        "tenant_id": "",
        "tenant_seq": 0,
        "time_us": 1_795_000_000_000_000,
        "service": "audit",
        "facts": facts,
        "contents": [],
    }


def finish(lines: list[Record]) -> bytes:
    """Encode lines and close them with a right end line."""
    body = b"".join(canonical(line) + b"\n" for line in lines)
    end = {"line": "end", "lines": len(lines) + 1, "sha256": hashlib.sha256(body).hexdigest()}
    return body + canonical(end) + b"\n"


def three_step_run() -> ExportedRun:
    """Two independent steps and one that sees both, answered."""
    run = ExportedRun()
    run.add("opened", opened_facts(), ("request", "question", b"What is 6*7 in Roman?"))
    steps = [step("demo-math"), step("demo-text"), step("demo-numbers", [0, 1])]
    for index, each in enumerate(steps):
        each["subtask_part_id"] = f"plan/0/{index}"
    run.add("plan", plan_facts(steps), *((s["subtask_part_id"], "subtask", b"Do your part.") for s in steps))
    begin(run, "att_0", 0, "demo-math", [])
    begin(run, "att_1", 1, "demo-text", [])
    end_attempt(run, "att_0", ("att_0/output", "output", b"42"))
    end_attempt(run, "att_1", ("att_1/output", "output", b"Roman"))
    begin(run, "att_2", 2, "demo-numbers", [0, 1])
    end_attempt(run, "att_2", ("att_2/output", "output", b"XLII"))
    seal(run, ("answer", "answer", b"42 ist XLII\n"))
    return run


def opened_facts() -> Record:
    verdicts = [
        {"worker_id": worker, "allowed": worker != "demo-units", "rule_id": rule}
        for worker, rule in (
            ("demo-math", "default.allow"),
            ("demo-text", "default.allow"),
            ("demo-numbers", "default.allow"),
            ("demo-units", "client.except"),
        )
    ]
    return {
        "kind": "chat",
        "principal_id": "key_1",
        "requested_model": "podium",
        "verdicts": verdicts,
        "caps": {"max_steps": 5, "max_cost_usd_micros": None},
        "pool_digest": "p" * 8,
        "price_digest": "q" * 8,
        "policy_digest": "",
        "trace_id": "",
        "refusal_reason": "",
        "continues_run_id": "",
        "has_plan": True,
    }


def step(worker: str, access: list[int] | None = None, fallback: str = "") -> Record:
    return {
        "worker_id": worker,
        "access": access or [],
        "sees_previous_round": False,
        "fallback_worker_id": fallback,
        "subtask_part_id": "",
    }


def plan_facts(steps: list[Record], number: int = 0) -> Record:
    return {
        "round": number,
        "source": "rules",
        "steps": steps,
        "model_digest": "",
        "choices": [],
        "usage": USAGE,
        "seed": "9007199254740993",
        "generation_count": 1,
        "fallback_reason": "",
    }


def begin(run: ExportedRun, attempt_id: str, index: int, worker: str, seen: list[int]) -> Record:
    """Begin an attempt whose body joins inline bytes around the question."""
    inline = b'{"messages":""}'
    body = inline[:13] + run.parts["request"] + inline[13:]
    layout = [
        {"part_id": f"{attempt_id}/inline", "from": 0, "to": 13},
        {"part_id": "request", "from": 0, "to": len(run.parts["request"])},
        {"part_id": f"{attempt_id}/inline", "from": 13, "to": 15},
    ]
    facts = {
        "attempt_id": attempt_id,
        "kind": "step",
        "round": 0,
        "step_index": index,
        "worker_id": worker,
        "provider": "openai-compatible",
        "provider_model": worker,
        "region": "",
        "endpoint_host": "127.0.0.1",
        "seen_steps": seen,
        "sees_previous_round": False,
        "max_cost_usd_micros": 100,
        "price_digest": "q" * 8,
        "pool_digest": "p" * 8,
        "body": {
            "length": len(body),
            "commitment": commitment(f"{attempt_id}/body", body),
            "salt_part_id": f"{attempt_id}/body",
            "layout": layout,
        },
    }
    return run.add("attempt_begun", facts, (f"{attempt_id}/inline", "sent", inline))


def end_attempt(
    run: ExportedRun, attempt_id: str, *parts: tuple[str, str, bytes], late: bool = False
) -> Record:
    facts = {
        "attempt_id": attempt_id,
        "outcome": "completed",
        "usage": USAGE,
        "cost_usd_micros": 7,
        "latency_us": 1500,
        "finish_reason": "stop",
        "error_reason": "",
        "provider_response_id": "r1",
        "served_model": "demo",
        "dispatched": True,
    }
    return run.add("attempt_late" if late else "attempt_ended", facts, *parts, in_run=not late)


def seal(
    run: ExportedRun, *parts: tuple[str, str, bytes], unknown: tuple[str, ...] = (), outcome: str = "answered"
) -> Record:
    """Seal the run with counts that fit its records so far."""
    facts = {
        "outcome": outcome,
        "error_reason": "",
        "record_count": sum(r["run_seq"] is not None for r in run.records) + 1,
        "attempt_count": len(run.of_type("attempt_begun")),
        "cost_usd_micros": 7 * len(run.of_type("attempt_ended")) + 100 * len(unknown),
        "unknown_attempts": list(unknown),
    }
    return run.add("sealed", facts, *parts)
