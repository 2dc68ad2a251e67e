"""Asks real workers the questions of a set, each worker alone, and grades what they answer.

The calls go through a running gateway, so that policy, budget and the audit log hold. Answers are kept under
--cache: a second run asks only what is not known yet. Money stops at --max-usd. A set comes from
`podium-train import`; code is run in the sandbox, mathematics needs Math-Verify.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

import aiohttp

from podium_core.config.pool import load_pool
from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import Code, PodiumError, invalid
from podium_core.domain.ids import RandomIds
from podium_core.domain.plan import Access
from podium_core.domain.plan_format import render_plan
from podium_core.domain.plan_prompt import build_prompt
from podium_core.domain.pool import Worker
from podium_core.domain.run import Caps
from podium_train.environments.batch import Attempted, score_batch
from podium_train.environments.live import LiveEnvironment, Trace, live_performer
from podium_train.environments.live_cache import AnswerCache
from podium_train.environments.live_gateway import GatewayWorkers
from podium_train.environments.live_limits import LiveLimits
from podium_train.environments.live_workers import GuardedWorkers
from podium_train.environments.performing import question_of
from podium_train.environments.port import Outcome, Task, Verdict
from podium_train.outcomes.questions import GraderKind, SetQuestion, read_questions
from podium_train.rewards.mathematics import open_math_verifier
from podium_train.rewards.references import ReferenceGrader
from podium_train.rewards.sandbox.layers import open_sandbox

HELP = "ask real workers the questions of a set through a gateway, and grade their answers"

_MICROS = 1_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this verb's arguments."""
    parser.add_argument("--gateway", required=True, metavar="URL", help="such as http://localhost:8080")
    parser.add_argument("--key-file", type=Path, required=True, help="holds an API key of the gateway")
    parser.add_argument("--pool", type=Path, required=True, help="the pool.yaml that the gateway serves")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="the data folder")
    parser.add_argument("--set", dest="set_name", required=True, help="a question set in it, such as math")
    parser.add_argument("--workers", nargs="+", default=[], metavar="ID", help="only these workers")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="only the first N questions")
    parser.add_argument("--max-usd", type=float, required=True, help="stop before this is spent")
    parser.add_argument("--at-once", type=int, default=8, help="calls at once to one worker (default 8)")
    parser.add_argument("--cache", type=Path, help="a folder that keeps answers")
    parser.add_argument("--trace", type=Path, help="append the facts of each rollout here, as JSON lines")
    parser.add_argument("--timeout-s", type=float, default=3_600.0, help="for one worker's questions")
    parser.add_argument("--unsafe", action="store_true", help="run model-written code without a safe sandbox")


def run(arguments: argparse.Namespace) -> int:
    """Ask, grade, and print a table; raises PodiumError when more than a fifth cannot be scored."""
    if arguments.max_usd < 0 or arguments.first < 0:
        raise invalid("--max-usd and --first must not be negative")
    questions = read_questions(arguments.data, arguments.set_name)
    questions = questions[: arguments.first] if arguments.first else questions
    pool = _chosen(tuple(entry.worker for entry in load_pool(arguments.pool).entries), arguments.workers)
    rows = asyncio.run(_played(arguments, questions, pool))
    sys.stdout.write(table(rows, set_name=arguments.set_name))
    return 0


@dataclass(frozen=True, slots=True)
class LiveRow:
    """What one worker came to alone."""

    worker_id: str
    outcomes: Sequence[Outcome]


def table(rows: Sequence[LiveRow], *, set_name: str) -> str:
    """Return the rows as Markdown; accuracy is over scored answers."""
    lines = [
        f"Live, question set {set_name}: each worker alone, one step.",
        "",
        "| worker | asked | unscorable | accuracy % | tokens | USD |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        scored = [one for one in row.outcomes if one.verdict is Verdict.SCORED]
        right = sum(one.is_right for one in scored)
        share = f"{100 * right / len(scored):.1f}" if scored else "-"
        tokens = sum(one.usage.total_tokens for one in row.outcomes)
        usd = sum(step.cost_usd_micros for one in row.outcomes for step in one.steps) / _MICROS
        lost = len(row.outcomes) - len(scored)
        lines.append(f"| {row.worker_id} | {len(row.outcomes)} | {lost} | {share} | {tokens} | {usd:.4f} |")
    return "\n".join(lines) + "\n"


def _chosen(pool: Sequence[Worker], wanted: Sequence[str]) -> tuple[Worker, ...]:
    known = {worker.worker_id: worker for worker in pool}
    strangers = sorted(set(wanted) - set(known))
    if strangers:
        raise invalid(f"the pool has no worker {strangers[0]!r}; it has: {', '.join(known)}", param="workers")
    return tuple(known[name] for name in wanted or known)


async def _played(
    arguments: argparse.Namespace, questions: Sequence[SetQuestion], pool: Sequence[Worker]
) -> list[LiveRow]:
    async with _environment(arguments, questions, pool) as environment:
        rows = []
        for worker in pool:
            batch = [_alone(question, worker) for question in questions]
            outcomes = await score_batch(environment, batch, timeout_s=arguments.timeout_s)
            rows.append(LiveRow(worker.worker_id, outcomes))
        return rows


@asynccontextmanager
async def _environment(
    arguments: argparse.Namespace, questions: Sequence[SetQuestion], pool: Sequence[Worker]
) -> AsyncGenerator[LiveEnvironment, None]:
    limits = LiveLimits(
        max_cost_usd_micros=round(arguments.max_usd * _MICROS), calls_at_once=arguments.at_once
    )
    kinds = {question.item_id: question.grader for question in questions}
    clock = SystemClock()
    async with AsyncExitStack() as opened:
        needed = set(kinds.values())
        verifier = (
            await opened.enter_async_context(open_math_verifier()) if GraderKind.MATH in needed else None
        )
        sandbox = None
        if GraderKind.CODE in needed:
            sandbox = await opened.enter_async_context(open_sandbox(unsafe=arguments.unsafe))
        trace = opened.enter_context(arguments.trace.open("ab", buffering=0)) if arguments.trace else None
        session = await opened.enter_async_context(aiohttp.ClientSession())
        key = arguments.key_file.read_text(encoding="utf-8").strip()
        real = GatewayWorkers(arguments.gateway, key, session, clock)
        guarded = GuardedWorkers(real, pool, limits, clock, cache=AnswerCache(arguments.cache))
        opened.push_async_callback(guarded.close)
        yield LiveEnvironment(
            live_performer(limits, clock, RandomIds(clock)),
            guarded,
            ReferenceGrader(lambda task: kinds[task.task_id], verifier, sandbox),
            limits,
            trace=_writer(trace),
        )


def _writer(stream: FileIO | None) -> Trace:
    def write(facts: Mapping[str, object]) -> None:
        if stream is None:
            return
        try:
            stream.write(json.dumps(dict(facts)).encode() + b"\n")
        except OSError:
            raise PodiumError(
                Code.UNAVAILABLE,
                "the trace cannot be written; make room on its disk or name another file",
                reason="TRACE_UNWRITABLE",
            ) from None

    return write


def _alone(question: SetQuestion, worker: Worker) -> Attempted:
    task = Task(
        question.item_id,
        question.question,
        question.reference,
        question.family,
        question.category,
        question.difficulty,
        (worker,),
        seed=0,
    )
    prompt = build_prompt(question_of(task), task.workers, Caps(), seed=0)
    return Attempted(prompt, render_plan([0], [""], [Access()]), task)
