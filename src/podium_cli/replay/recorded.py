"""A run as its verified export tells it: question, plans, what was sent and answered."""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podium_cli.failures import CliError
from podium_core.domain.plan import Access, Plan, PlanSource, Step
from podium_core.domain.run import Caps, Message, Question

_MS_PER_S = 1_000
_HISTORY, _QUESTION, _ANSWER = "history", "question", "answer"
_DONE = "completed"


@dataclass(frozen=True, slots=True)
class RecordedPlan:
    """One round's plan, the text it was read from, and the digests and the seed of what made it."""

    plan: Plan
    text: str
    model_digest: str
    template_digest: str
    seed: int
    fallback_reason: str


@dataclass(frozen=True, slots=True)
class RecordedAttempt:
    """One attempt. `sent` is the body as it went out; `words` is None for one that gave no output."""

    attempt_id: str
    kind: str
    round: int
    step_index: int
    worker_id: str
    provider: str
    seen_steps: tuple[int, ...]
    sees_previous_round: bool
    sent: bytes
    words: str | None
    outcome: str

    @property
    def is_done(self) -> bool:
        """Whether it ended well."""
        return self.outcome == _DONE


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """Everything a replay needs. `answer` is None when the run ended without one."""

    run_id: str
    kind: str
    model: str
    continues_run_id: str
    allowed: frozenset[str]
    caps: Caps
    pool_digest: str
    question: Question
    plans: tuple[RecordedPlan, ...]
    attempts: tuple[RecordedAttempt, ...]
    outcome: str
    answer: bytes | None
    cost_usd_micros: int


def read_run(export: bytes) -> RecordedRun:
    """Return the run of a verified export; raise CliError when it holds too little to be replayed."""
    lines = [json.loads(line) for line in export.splitlines()]
    of_leaves = [line for line in lines if line["line"] == "leaf"]
    leaves = [json.loads(line["leaf"]) for line in of_leaves]
    contents = {
        line["part_id"]: base64.b64decode(line["data"]) for line in lines if line["line"] == "content"
    }
    records = [leaf for leaf in leaves if leaf["run_seq"] is not None]
    erased = [line for line, leaf in zip(of_leaves, leaves, strict=True) if leaf["type"] == "erased"]
    erased_index = int(erased[0]["index"]) if erased else None
    _check_content(lines[0], erased_index, records, contents)
    opened = records[0]["facts"]
    sealed = records[-1] if records[-1]["type"] == "sealed" else None
    if sealed is None:
        raise CliError("the run is still open", hint="replay it once it is sealed")
    return RecordedRun(
        run_id=records[0]["run_id"],
        kind=opened["kind"],
        model=opened["requested_model"],
        continues_run_id=opened["continues_run_id"],
        allowed=_allowed(opened["verdicts"]),
        caps=_caps(opened["caps"]),
        pool_digest=opened["pool_digest"],
        question=_question(contents),
        plans=tuple(_plan(leaf, contents) for leaf in records if leaf["type"] == "plan"),
        attempts=tuple(_attempts(records, contents)),
        outcome=sealed["facts"]["outcome"],
        answer=contents.get(_ANSWER),
        cost_usd_micros=sealed["facts"]["cost_usd_micros"],
    )


def _check_content(
    header: Mapping[str, Any],
    erased_index: int | None,
    records: Sequence[Mapping[str, Any]],
    contents: Mapping[str, bytes],
) -> None:
    """Refuse a run whose words are gone or were never kept."""
    if header["with_content"] and all(
        entry["part_id"] in contents for record in records for entry in record["contents"]
    ):
        return
    if erased_index is not None:
        raise CliError(f"the run cannot be replayed: its content was erased under leaf {erased_index}")
    raise CliError(
        "the run cannot be replayed: the export holds no content",
        hint="use a key that may read content; a tenant in commitments-only mode keeps none",
    )


def _allowed(verdicts: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    refused = {verdict["worker_id"] for verdict in verdicts if not verdict["allowed"]}
    return frozenset(verdict["worker_id"] for verdict in verdicts) - refused


def _caps(facts: Mapping[str, Any]) -> Caps:
    seconds = {
        name: None if facts[f"{name}_ms"] is None else facts[f"{name}_ms"] / _MS_PER_S
        for name in ("max_duration", "straggler_wait")
    }
    return Caps(
        max_steps=facts["max_steps"],
        max_calls=facts["max_calls"],
        max_tokens=facts["max_tokens"],
        max_cost_usd_micros=facts["max_cost_usd_micros"],
        max_duration_s=seconds["max_duration"],
        max_rounds=facts["max_rounds"],
        max_attempts_per_step=facts["max_attempts_per_step"],
        quorum=facts["quorum"],
        straggler_wait_s=seconds["straggler_wait"],
    )


def _question(contents: Mapping[str, bytes]) -> Question:
    """Return the conversation: earlier messages are kept as JSON, the last as its text or whole."""
    history = json.loads(b"[%b]" % contents.get(_HISTORY, b""))
    kept = contents.get(_QUESTION, b"")
    try:
        last = json.loads(kept)
    except ValueError:
        last = None
    if not isinstance(last, dict) or "role" not in last:
        last = {"role": "user", "content": json.loads(b'"%b"' % kept)}
    return Question(tuple(Message(fields["role"], text_of(fields), fields) for fields in [*history, last]))


def text_of(message: Mapping[str, Any]) -> str:
    """Return the words of a chat message, whose content is a string or an array of parts."""
    content = message.get("content")
    if isinstance(content, list):
        texts = [part.get("text") for part in content if part.get("type") == "text"]
        return "\n".join(text for text in texts if text)
    return content or ""


def _plan(leaf: Mapping[str, Any], contents: Mapping[str, bytes]) -> RecordedPlan:
    facts = leaf["facts"]
    steps = tuple(
        Step(
            step["worker_id"],
            contents[step["subtask_part_id"]].decode() if step["subtask_part_id"] else "",
            Access(tuple(step["access"]), step["sees_previous_round"]),
            step["fallback_worker_id"] or None,
        )
        for step in facts["steps"]
    )
    return RecordedPlan(
        Plan(steps, PlanSource(facts["source"]), facts["round"]),
        contents.get(f"plan/{facts['round']}/text", b"").decode(),
        facts["model_digest"],
        facts.get("template_digest", ""),
        int(facts["seed"]),
        facts["fallback_reason"],
    )


def _attempts(
    records: Sequence[Mapping[str, Any]], contents: Mapping[str, bytes]
) -> Sequence[RecordedAttempt]:
    ends = {leaf["facts"]["attempt_id"]: leaf["facts"] for leaf in records if leaf["type"] == "attempt_ended"}
    outputs = dict(_outputs(records, contents))
    begun = [leaf["facts"] for leaf in records if leaf["type"] == "attempt_begun"]
    return [_attempt(facts, ends.get(facts["attempt_id"], {}), outputs, contents) for facts in begun]


def _attempt(
    facts: Mapping[str, Any],
    end: Mapping[str, Any],
    outputs: Mapping[str, str],
    contents: Mapping[str, bytes],
) -> RecordedAttempt:
    layout = facts["body"]["layout"]
    return RecordedAttempt(
        facts["attempt_id"],
        facts["kind"],
        facts["round"],
        facts["step_index"],
        facts["worker_id"],
        facts["provider"],
        tuple(facts["seen_steps"]),
        facts["sees_previous_round"],
        b"".join([contents[piece["part_id"]][piece["from"] : piece["to"]] for piece in layout]),
        outputs.get(facts["attempt_id"]),
        end.get("outcome", "unknown"),
    )


def _outputs(
    records: Sequence[Mapping[str, Any]], contents: Mapping[str, bytes]
) -> Iterator[tuple[str, str]]:
    """Yield each attempt's id and words; an output with tool calls is kept as a whole message."""
    for record in records:
        for entry in record["contents"] if record["type"] == "attempt_ended" else ():
            if entry["name"] == "output":
                data = contents[entry["part_id"]].decode(errors="replace")
                is_message = entry["media_type"] == "application/json"
                yield record["facts"]["attempt_id"], text_of(json.loads(data)) if is_message else data
