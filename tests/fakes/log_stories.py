"""Stories that logs can go through, and what must hold whatever the story."""

import copy
import json
from collections import defaultdict
from typing import Any

from hypothesis import strategies as st

from podium_audit.records.commands import Command
from podium_audit.tree.tiles import TileNodes, inclusion_proof
from podium_core.domain import merkle
from podium_core.domain.plan import Step
from podium_core.domain.run import AttemptOutcome, Caps
from tests.fakes.audit_log import (
    THREE_STEPS,
    LogScene,
    append_plan,
    begin,
    end,
    note,
    open_run,
    plan_of,
    seal,
)

RUNS = ("run_1", "run_2", "run_3")
ATTEMPTS = tuple(f"{run}.{number}" for run in RUNS for number in range(4))


def commands() -> st.SearchStrategy[Command]:
    """Return a strategy of commands that meet each other in few runs."""
    runs, attempts = st.sampled_from(RUNS), st.sampled_from(ATTEMPTS)
    cost = st.integers(0, 120)
    return st.one_of(
        st.builds(
            lambda run, cap: open_run(
                run, plan=THREE_STEPS, caps=Caps(max_cost_usd_micros=cap), tenant_budget_usd_micros=500
            ),
            runs,
            st.sampled_from((None, 150)),
        ),
        st.builds(lambda run: append_plan(plan_of(Step("w2", ""), round_=1), run), runs),
        st.builds(
            lambda attempt, step: begin(
                attempt, attempt[:5], step_index=step, worker_id=("w1", "w2", "w3")[step]
            ),
            attempts,
            st.integers(0, 2),
        ),
        st.builds(
            lambda attempt, amount, outcome: end(
                attempt, attempt[:5], cost_usd_micros=amount, outcome=outcome, contents=()
            ),
            attempts,
            cost,
            st.sampled_from(AttemptOutcome),
        ),
        st.builds(lambda run, settle: seal(run, settle_open=settle), runs, st.booleans()),
        st.builds(note, runs),
    )


def visible(scene: LogScene) -> dict[str, Any]:
    """Everything the checks look at, comparable."""
    state = scene.log.state
    figures: dict[str, Any] = {
        "size": state.size,
        "root": state._tail.root,
        "reserved": scene.reserved(),
        "settled": scene.settled(),
        "counts": state.book.leaf_count("acme"),
        "runs": {
            run_id: (
                run.attempts,
                run.open_attempts,
                run.plans,
                run.parts,
                run.leaf_indices,
                run.reserved_usd_micros,
                run.settled_usd_micros,
                run.outcome,
            )
            for run_id in RUNS
            if (run := state.find_run(run_id)) is not None
        },
        "open": sorted(state.open_runs),
    }
    return copy.deepcopy(figures)


def check_log(scene: LogScene) -> None:
    """Check what must hold of any log."""
    records = scene.records()
    by_run: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        if record["run_seq"] is not None:
            by_run[record["run_id"]].append(record)
    for tenant_id in {record["tenant_id"] for record in records}:
        seqs = [record["tenant_seq"] for record in records if record["tenant_id"] == tenant_id]
        assert seqs == list(range(len(seqs)))
    for run_id, own in by_run.items():
        assert [record["run_seq"] for record in own] == list(range(len(own)))
        assert all(record["type"] != "sealed" for record in own[:-1])
        begun = {r["facts"]["attempt_id"] for r in own if r["type"] == "attempt_begun"}
        ended = [r["facts"]["attempt_id"] for r in own if r["type"] == "attempt_ended"]
        assert len(set(ended)) == len(ended)
        if own[-1]["type"] == "sealed":
            assert begun == {*ended, *own[-1]["facts"]["unknown_attempts"]}
            assert own[-1]["facts"]["record_count"] == len(own)
            run = scene.log.state.find_run(run_id)
            assert run is not None
            assert run.reserved_usd_micros == 0
    tree = merkle.Frontier()
    for row in scene.store.leaf_rows:
        assert json.loads(row.data) is not None
        tree.append(merkle.leaf_hash(row.data))
    if tree.size:
        newest = scene.store.checkpoints[-1]
        stated = scene.signer.read(newest.note)
        assert (stated.size, stated.root) == (tree.size, tree.root)
        for index in range(tree.size):
            proof = inclusion_proof(TileNodes(scene.store), index, tree.size)
            leaf = merkle.leaf_hash(scene.store.leaf_rows[index].data)
            assert merkle.root_from_path(leaf, index, tree.size, proof) == tree.root
    for checkpoint in scene.store.checkpoints:
        assert scene.signer.read(checkpoint.note).size == checkpoint.size
