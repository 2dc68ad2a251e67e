"""Which engine makes the plans: built from the settings, and watched while it serves."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from importlib.util import find_spec

from opentelemetry.metrics import Meter

from podium_conductor.engines.embedded.engine import load_engine
from podium_conductor.engines.vllm.checkpoint import check_checkpoint, digests_of
from podium_conductor.engines.vllm.engine import Loaded, VllmEngine
from podium_conductor.engines.vllm.options import ServingOptions
from podium_conductor.engines.worker.engine import WorkerEngine
from podium_conductor.engines.worker.router_client import RouterPlanCalls
from podium_conductor.model_notes import STARTED, SWITCHED, ModelNotes, appender
from podium_conductor.ports import Engine
from podium_conductor.settings import ConductorSettings
from podium_conductor.telemetry import watch_load
from podium_core.domain.clock import Clock
from podium_core.domain.errors import PodiumError, invalid
from podium_core.domain.ids import RandomIds
from podium_core.runtime.grpc_client import open_channel

_WATCH_EVERY_S = 1.0
_log = logging.getLogger(__name__)


async def start_engine(
    settings: ConductorSettings, stack: AsyncExitStack, clock: Clock, meter: Meter
) -> Engine:
    """Return the engine that the settings name, ready to plan; what it needs is closed with the stack.

    Raises PodiumError when it cannot be had; the message says what to change.
    """
    if settings.engine == "vllm":
        engine = VllmEngine(await load_checkpoint(settings.serving_options), settings.plan_options)
        watch_load(meter, engine.load)
        return engine
    if settings.engine == "worker":
        router = await stack.enter_async_context(
            open_channel(settings.router_address, "router", settings.tls)
        )
        return WorkerEngine(RouterPlanCalls(router), clock, RandomIds(clock), settings.worker_engine)
    return await asyncio.to_thread(load_engine, settings.embedded_folder)


async def load_checkpoint(options: ServingOptions) -> Loaded:
    """Return the checked, loaded and warm model of a checkpoint folder."""
    folder, adapter = options.model_path.resolve(), options.adapter_path
    check_checkpoint(folder, adapter)
    if find_spec("vllm") is None:
        raise invalid(
            "engine=vllm needs vLLM, which is not installed here: see docs/conductor-vllm.md",
            reason="VLLM_NOT_INSTALLED",
        )
    # Imported only now: it takes seconds and hundreds of megabytes that no other engine needs.
    from podium_conductor.engines.vllm.serving import load_model  # noqa: PLC0415

    digests = await asyncio.to_thread(digests_of, folder, adapter)
    # The folder itself, not the link, so that the digests are those of what is loaded.
    return Loaded(await load_model(replace(options, model_path=folder)), digests)


@asynccontextmanager
async def watching(
    engine: Engine, settings: ConductorSettings, clock: Clock, set_serving: Callable[[bool], None]
) -> AsyncIterator[None]:
    """While inside, note in the log what plans, report a model that died, and follow the checkpoint link."""
    async with open_channel(settings.audit_address, "audit", settings.tls) as audit:
        notes = ModelNotes(appender(audit), RandomIds(clock))
        notes.loaded(STARTED, engine.describe())
        tasks = [asyncio.create_task(notes.write())]
        if isinstance(engine, VllmEngine):
            tasks.append(asyncio.create_task(_watch(engine, settings, notes, set_serving)))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with suppress(asyncio.CancelledError):
                    await task


async def _watch(
    engine: VllmEngine, settings: ConductorSettings, notes: ModelNotes, set_serving: Callable[[bool], None]
) -> None:
    options = settings.serving_options
    tried = options.model_path.resolve()
    while True:
        await asyncio.sleep(_WATCH_EVERY_S)
        set_serving(not engine.is_stopped())
        folder = await asyncio.to_thread(options.model_path.resolve)
        if folder != tried:
            tried = folder
            await _switch(engine, options, notes)


async def _switch(engine: VllmEngine, options: ServingOptions, notes: ModelNotes) -> None:
    before = engine.describe().model_digest
    try:
        await engine.switch(lambda: load_checkpoint(options))
    except PodiumError as error:
        _log.error("the checkpoint was not switched; the old one goes on", extra={"reason": error.reason})
    else:
        notes.loaded(SWITCHED, engine.describe(), before)
        _log.info("the checkpoint was switched", extra={"model_digest": engine.describe().model_digest})
