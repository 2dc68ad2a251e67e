"""The story the leaves tell: complete and in order, from the opening to the seal.

Leaves that are part of the run carry `run_seq` 0, 1, 2…; later facts about it (late ends, reads) carry
null. Missing leaves show as gaps, a missing end as a missing seal or a wrong count.
"""

from collections.abc import Sequence
from typing import NoReturn

from podium_verifier.export_format import Header
from podium_verifier.faults import ExitCode, fail
from podium_verifier.leaf_format import Leaf
from podium_verifier.permits import check_permits

_OUTSIDE_RUN = frozenset({"attempt_late", "erased", "erasure_begun", "erasure_refused", "read"})
_MAYBE_OUTSIDE_RUN = _OUTSIDE_RUN | {"note"}


def check_run(header: Header, leaves: Sequence[Leaf]) -> None:
    """Check the whole run; raise FaultError at the first leaf that breaks a rule."""
    _check_names(header, leaves)
    run = _check_sequence(leaves)
    check_permits(run)
    _check_seal(run, leaves)
    _check_erasure(leaves)


def _check_names(header: Header, leaves: Sequence[Leaf]) -> None:
    tenant_seq = -1
    for leaf in leaves:
        if leaf.run_id != header.run_id:
            _fail(leaf, f"belongs to the run {leaf.run_id!r}, the header says {header.run_id!r}")
        if leaf.tenant_id != header.tenant_id:
            _fail(leaf, f"belongs to the tenant {leaf.tenant_id!r}, the header says {header.tenant_id!r}")
        if leaf.tenant_seq <= tenant_seq:
            _fail(leaf, "its number within the tenant does not rise")
        tenant_seq = leaf.tenant_seq


def _check_sequence(leaves: Sequence[Leaf]) -> list[Leaf]:
    """Return the leaves that are part of the run, after checking that none is missing."""
    run: list[Leaf] = []
    for leaf in leaves:
        if leaf.run_seq is None:
            if leaf.type not in _MAYBE_OUTSIDE_RUN:
                _fail(leaf, f"a record of type {leaf.type} must have a number within the run")
            continue
        if leaf.type in _OUTSIDE_RUN:
            _fail(leaf, f"a record of type {leaf.type} has no number within the run")
        if leaf.run_seq != len(run):
            _fail(leaf, f"record {len(run)} of the run is missing or out of order: this is {leaf.run_seq}")
        if (leaf.type == "opened") != (leaf.run_seq == 0):
            _fail(leaf, f"a run begins with one opened record; record {leaf.run_seq} is {leaf.type}")
        if run and run[-1].type == "sealed":
            _fail(leaf, "stands after the seal")
        run.append(leaf)
    if not run:
        _fail(leaves[0], "the run's own records are missing")
    if run[-1].type != "sealed":
        fail(
            ExitCode.TAIL,
            f"the seal is missing: record {len(run) - 1}, {run[-1].type}, is the last one here",
            line=run[-1].line,
            leaf_index=run[-1].index,
        )
    return run


def _check_seal(run: Sequence[Leaf], leaves: Sequence[Leaf]) -> None:
    seal = run[-1]
    begun = {leaf.facts["attempt_id"]: leaf for leaf in run if leaf.type == "attempt_begun"}
    unknown = seal.facts["unknown_attempts"]
    ended = {leaf.facts["attempt_id"]: leaf for leaf in run if leaf.type == "attempt_ended"}
    if seal.facts["record_count"] != len(run):
        _fail(seal, f"the seal counts {seal.facts['record_count']} records, {len(run)} are here")
    if seal.facts["attempt_count"] != len(begun):
        _fail(seal, f"the seal counts {seal.facts['attempt_count']} attempts, {len(begun)} are here")
    if len(set(unknown)) != len(unknown) or not set(unknown) <= begun.keys() - ended.keys():
        _fail(seal, "the seal names attempts as unknown that never began or have ended")
    for attempt_id, leaf in begun.items():
        if attempt_id not in ended and attempt_id not in unknown:
            _fail(leaf, f"the attempt {attempt_id!r} neither ends nor is named unknown by the seal")
    cost = sum(leaf.facts["cost_usd_micros"] for leaf in ended.values())
    cost += sum(begun[attempt_id].facts["max_cost_usd_micros"] for attempt_id in unknown)
    if cost != seal.facts["cost_usd_micros"]:
        _fail(
            seal, f"the seal says {seal.facts['cost_usd_micros']} millionths of a dollar, its attempts {cost}"
        )
    _check_late(leaves, set(unknown))


def _check_late(leaves: Sequence[Leaf], unknown: set[str]) -> None:
    for leaf in leaves:
        if leaf.type == "attempt_late":
            attempt_id = leaf.facts["attempt_id"]
            if attempt_id not in unknown:
                _fail(leaf, f"the late attempt {attempt_id!r} is not one that the seal calls unknown")
            unknown.remove(attempt_id)  # it may end once


def _check_erasure(leaves: Sequence[Leaf]) -> None:
    """Check that content went once, by a decision before it, and that nothing was added after it."""
    begun: int | None = None
    is_erased = False
    for leaf in leaves:
        if begun is not None and leaf.contents:
            _fail(leaf, f"holds content although leaf {begun} decided that the run's content goes")
        if leaf.type == "erasure_begun":
            if begun is not None:
                _fail(leaf, f"leaf {begun} decided already that the content goes")
            begun = leaf.index
        if leaf.type == "erased":
            if is_erased or leaf.facts["begun_index"] != begun:
                _fail(leaf, "no decision before it says that the content goes")
            is_erased = True


def _fail(leaf: Leaf, message: str) -> NoReturn:
    fail(ExitCode.ORDER, message, line=leaf.line, leaf_index=leaf.index)
