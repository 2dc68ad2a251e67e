"""`podium stop`: one run, one worker, or everything, by the log itself; `--resume` lets them work again."""

import argparse
import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from rich.console import Console

from podium.audit.v1 import stop_service_pb2 as pb
from podium.audit.v1 import stop_service_pb2_grpc
from podium_cli.failures import CliError
from podium_cli.home import Home
from podium_cli.local_ca import service_files
from podium_cli.settings import CliSettings
from podium_cli.words import moment
from podium_core.config.pool import load_pool
from podium_core.config.tenants import load_tenants
from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import PodiumError
from podium_core.domain.ids import RandomIds
from podium_core.runtime.grpc_client import open_channel
from podium_core.runtime.grpc_errors import rpc_errors

_CALL_S = 10.0
_EVERYTHING = "everything"
_OPERATOR = "operator"
"""Who asks, in the record: whoever holds this home's certificate."""


def run(arguments: argparse.Namespace, console: Console, home: Home, _settings: CliSettings) -> int:
    """Stop or resume what is named, or list what is stopped."""
    if not (arguments.run or arguments.worker or arguments.all):
        if arguments.resume:
            raise CliError("say what to resume", hint="podium stop --worker ID --resume, or --all --resume")
        console.print("\n".join(asyncio.run(_standing(home))))
        return 0
    if arguments.resume and arguments.run:
        raise CliError("a run that was stopped has ended", hint="ask its question again")
    if not arguments.resume:
        _refuse_strangers(arguments, home)
    asyncio.run(_change(arguments, home))
    what = _what(arguments)
    if arguments.resume:
        console.print(f"{what} may work again; the log has the record.")
    else:
        console.print(f"{what} is stopped, on record: no further call gets a permit from now on.")
        console.print("Runs under way end as cancelled within a lease renewal, a few seconds.")
        if not arguments.run:
            console.print("`podium stop` lists what is stopped; the same command with --resume ends it.")
    return 0


def _refuse_strangers(arguments: argparse.Namespace, home: Home) -> None:
    """Refuse a stop that would stop nobody, a misspelt one; a file that cannot be read hinders no stop."""
    with suppress(PodiumError, OSError):
        workers = [entry.worker.worker_id for entry in load_pool(home.pool_file).entries]
        if arguments.worker and arguments.worker not in workers:
            raise CliError(f"the pool has no worker {arguments.worker}", hint=f"it has {', '.join(workers)}")
    with suppress(PodiumError, OSError):
        tenants = [tenant.tenant_id for tenant in load_tenants(home.tenants_file).tenants]
        if arguments.tenant and arguments.tenant not in tenants:
            raise CliError(f"there is no tenant {arguments.tenant}", hint=f"there is {', '.join(tenants)}")


def _what(arguments: argparse.Namespace) -> str:
    if arguments.run:
        return f"the run {arguments.run}"
    return f"the worker {arguments.worker}" if arguments.worker else "everything"


async def _change(arguments: argparse.Namespace, home: Home) -> None:
    event_id = RandomIds(SystemClock()).new("evt")
    tenant_id, worker_id, everything = arguments.tenant, arguments.worker or "", bool(arguments.all)
    async with _stops(home) as stub:
        if arguments.resume:
            cleared = pb.ClearStopRequest(event_id=event_id, tenant_id=tenant_id, principal_id=_OPERATOR)
            if worker_id:
                cleared.worker_id = worker_id
            else:
                cleared.everything = everything
            await stub.ClearStop(cleared, timeout=_CALL_S)
            return
        asked = pb.RequestStopRequest(event_id=event_id, tenant_id=tenant_id, principal_id=_OPERATOR)
        if arguments.run:
            asked.run_id = arguments.run
        elif worker_id:
            asked.worker_id = worker_id
        else:
            asked.everything = everything
        await stub.RequestStop(asked, timeout=_CALL_S)


async def _standing(home: Home) -> list[str]:
    async with _stops(home) as stub:
        answer = await stub.ListStops(pb.ListStopsRequest(), timeout=_CALL_S)
    told = [
        f"{stop.worker_id or _EVERYTHING}, {stop.tenant_id or 'every tenant'}, since {moment(stop.since_us)}"
        for stop in answer.stops
    ]
    return told or ["nothing is stopped"]


@asynccontextmanager
async def _stops(home: Home) -> AsyncGenerator["stop_service_pb2_grpc.StopServiceAsyncStub", None]:
    """Connect to the home's audit service; its refusals become CliErrors."""
    address = str(home.read_endpoints()["grpc"]["audit"])
    try:
        async with open_channel(address, "audit", service_files(home.tls_dir, "cli")) as channel:
            stub: stop_service_pb2_grpc.StopServiceAsyncStub = stop_service_pb2_grpc.StopServiceStub(channel)
            with rpc_errors("audit"):
                yield stub
    except PodiumError as error:
        raise CliError(error.message, hint="`podium stop` alone lists what is stopped") from None
