"""Permits: each attempt was allowed by what the log already held when it began.

A verdict for its worker, a plan that gives it the step, and sight of no more than the plan grants: neither
by what it says it sees, nor by the recorded parts that its sent body is made of.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from podium_verifier.faults import ExitCode, fail
from podium_verifier.leaf_format import Leaf

_STEP_KINDS = frozenset({"step", "repair", "continuation"})
_OF_ATTEMPT = frozenset({"attempt_begun", "attempt_ended"})

Facts = Mapping[str, Any]


@dataclass(slots=True)
class _Known:
    """What the records up to here say."""

    allowed: frozenset[str]
    may_lack_plan: bool
    plans: list[Sequence[Facts]] = field(default_factory=list)
    attempts: dict[str, Facts] = field(default_factory=dict)
    open_attempts: set[str] = field(default_factory=set)
    source_of_part: dict[str, str] = field(default_factory=dict)


def check_permits(run: Sequence[Leaf]) -> None:
    """Walk the run's own records in order; raise FaultError at the first that nothing before it allows."""
    opened = run[0].facts
    if opened["has_plan"] and run[1].type != "plan":
        _fail(run[1], "the plan is missing: the opening says that it follows")
    denied = {verdict["worker_id"] for verdict in opened["verdicts"] if not verdict["allowed"]}
    allowed = {verdict["worker_id"] for verdict in opened["verdicts"]} - denied
    known = _Known(frozenset(allowed), may_lack_plan=opened["kind"] == "calibrate")
    for leaf in run:
        if leaf.type == "plan":
            _take_plan(leaf, known)
        elif leaf.type == "attempt_begun":
            _take_begin(leaf, known)
        elif leaf.type == "attempt_ended":
            _take_end(leaf, known)
        if leaf.type in _OF_ATTEMPT:
            for entry in leaf.contents:
                known.source_of_part[entry.part_id] = leaf.facts["attempt_id"]


def _take_plan(leaf: Leaf, known: _Known) -> None:
    if leaf.facts["round"] != len(known.plans):
        _fail(leaf, f"a plan of round {leaf.facts['round']} where round {len(known.plans)} is next")
    texts = {entry.part_id for entry in leaf.contents}
    for index, step in enumerate(leaf.facts["steps"]):
        if any(seen >= index for seen in step["access"]):
            _fail(leaf, f"step {index} would see a step that does not come before it")
        if step["subtask_part_id"] and step["subtask_part_id"] not in texts:
            _fail(leaf, f"the plan does not hold the text {step['subtask_part_id']!r} of step {index}")
    known.plans.append(leaf.facts["steps"])


def _take_begin(leaf: Leaf, known: _Known) -> None:
    facts = leaf.facts
    if facts["worker_id"] not in known.allowed:
        _refuse(leaf, f"no verdict allows the worker {facts['worker_id']!r}")
    if facts["attempt_id"] in known.attempts:
        _fail(leaf, f"the attempt {facts['attempt_id']!r} begins twice")
    if facts["kind"] in _STEP_KINDS:
        _check_step(leaf, known)
        _check_sight(leaf, known)
    known.attempts[facts["attempt_id"]] = facts
    known.open_attempts.add(facts["attempt_id"])


def _take_end(leaf: Leaf, known: _Known) -> None:
    attempt_id = leaf.facts["attempt_id"]
    if attempt_id not in known.attempts:
        _fail(leaf, f"the attempt {attempt_id!r} ends without having begun")
    if attempt_id not in known.open_attempts:
        _fail(leaf, f"the attempt {attempt_id!r} ends twice")
    known.open_attempts.remove(attempt_id)


def _check_step(leaf: Leaf, known: _Known) -> None:
    facts = leaf.facts
    number, index = facts["round"], facts["step_index"]
    if known.may_lack_plan and not known.plans:
        if facts["seen_steps"] or facts["sees_previous_round"]:
            _refuse(leaf, "without a plan there is nothing to see")
        return
    if number >= len(known.plans):
        _refuse(leaf, f"the attempt begins before the plan of round {number}")
    if index >= len(known.plans[number]):
        _refuse(leaf, f"the plan has no step {index}")
    step = known.plans[number][index]
    if facts["worker_id"] not in (step["worker_id"], step["fallback_worker_id"]):
        _refuse(leaf, f"the plan does not give step {index} to the worker {facts['worker_id']!r}")
    sees_more = facts["sees_previous_round"] and not step["sees_previous_round"]
    if sees_more or not set(facts["seen_steps"]) <= set(step["access"]):
        _refuse(leaf, f"step {index} sees more than its plan allows")


def _check_sight(leaf: Leaf, known: _Known) -> None:
    facts = leaf.facts
    seen = {(facts["round"], step) for step in facts["seen_steps"]}
    # Of each step the newest attempt counts: an older one that never ended was lost and retried.
    newest = {
        (other["round"], other["step_index"]): attempt_id
        for attempt_id, other in known.attempts.items()
        if other["kind"] in _STEP_KINDS
    }
    for step in sorted(seen & newest.keys()):
        if newest[step] in known.open_attempts:
            _refuse(leaf, f"it sees step {step[1]}, whose attempt {newest[step]!r} has not ended")
    for piece in facts["body"]["layout"]:
        source = known.attempts.get(known.source_of_part.get(piece["part_id"], ""))
        if source is not None and source["kind"] in _STEP_KINDS and not _is_visible(source, facts):
            _refuse(leaf, f"its body holds {piece['part_id']!r}, of a step that it may not see")


def _is_visible(source: Facts, facts: Facts) -> bool:
    if source["round"] == facts["round"]:
        return source["step_index"] in (*facts["seen_steps"], facts["step_index"])
    return bool(facts["sees_previous_round"]) and source["round"] == facts["round"] - 1


def _fail(leaf: Leaf, message: str) -> NoReturn:
    fail(ExitCode.ORDER, message, line=leaf.line, leaf_index=leaf.index)


def _refuse(leaf: Leaf, message: str) -> NoReturn:
    fail(ExitCode.PERMIT, message, line=leaf.line, leaf_index=leaf.index)
