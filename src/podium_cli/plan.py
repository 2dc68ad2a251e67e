"""`podium plan`: the plan for a question and everything about it; no step is performed."""

import argparse
import asyncio
import sys

from rich.console import Console

from podium_cli.failures import CliError
from podium_cli.home import Home
from podium_cli.local_ca import service_files
from podium_cli.plan_view import render
from podium_cli.planning_client import Planned, planning_client
from podium_cli.settings import CliSettings
from podium_core.config.tenants import Tenant, load_tenants
from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import PodiumError
from podium_core.domain.ids import IdFactory, RandomIds
from podium_core.domain.plan_prompt import PlanPrompt, build_prompt
from podium_core.domain.policy import WorkerFilter
from podium_core.domain.run import Caps, Message, Question
from podium_core.orchestration.eligible import Demands, eligible_workers, judge, token_bound
from podium_core.orchestration.ports import PlanQuery


def run(arguments: argparse.Namespace, console: Console, home: Home, settings: CliSettings) -> int:
    """Plan what the command line asks; exit code 1 with the reason when there is no plan."""
    del settings
    ids = RandomIds(SystemClock())
    try:
        tenant = load_tenants(home.tenants_file).tenants[0]
        planned, prompt = asyncio.run(_planned(arguments, home, tenant, ids))
    except PodiumError as error:
        raise CliError(f"there is no plan: {error.message} ({error.reason})") from None
    if arguments.raw:
        sys.stdout.write(f"{planned.reply.raw_text}\n")
    else:
        console.print(render(planned, prompt, with_prompt=not arguments.no_prompt), soft_wrap=True)
    return 0


async def _planned(
    arguments: argparse.Namespace, home: Home, tenant: Tenant, ids: IdFactory
) -> tuple[Planned, PlanPrompt]:
    addresses = home.read_endpoints()["grpc"]
    question = _question(arguments.question)
    async with planning_client(addresses, service_files(home.tls_dir, "cli"), ids) as client:
        pool = await client.pool()
        verdicts = judge(pool, _demands(arguments, question, tenant))
        workers = eligible_workers(pool, verdicts)
        query = PlanQuery(
            ids.new("run"),
            question,
            workers,
            Caps(max_steps=arguments.max_steps) if arguments.max_steps else Caps(),
            arguments.model,
            ids.seed() if arguments.seed is None else arguments.seed,
            arguments.timeout,
            tenant_id=tenant.tenant_id,
            pool_digest=pool.pool_digest,
            explain=True,
        )
        planned = await client.plan(query, pool, verdicts, tenant)
    return planned, build_prompt(question, workers, query.caps, seed=query.seed, tier=query.tier)


def _question(words: list[str]) -> Question:
    text = sys.stdin.read() if words == ["-"] else " ".join(words)
    if not text.strip():
        raise CliError(
            "there is no question", hint='podium plan "What is 17 * 23?", or - to read it from stdin'
        )
    return Question((Message("user", text, {"role": "user", "content": text}),))


def _demands(arguments: argparse.Namespace, question: Question, tenant: Tenant) -> Demands:
    only = frozenset(arguments.only) if arguments.only else None
    return Demands(
        client_filter=WorkerFilter(only, frozenset(arguments.exclude or ())),
        reach=(tenant.reach,),
        named_worker_id=None,
        has_images=False,
        has_audio=False,
        features=frozenset(),
        input_tokens_at_most=token_bound(question),
        max_cost_usd_micros=None,
        has_money_cap=tenant.budget_usd_micros is not None,
    )
