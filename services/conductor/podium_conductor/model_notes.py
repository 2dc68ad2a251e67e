"""Notes in the log of what plans: which model a conductor started with, and each change of it.

A plan's record names its model's digest; these notes say since when, so that a checkpoint nobody meant to
serve shows even where it planned nothing. Written behind the serving: a log that is away delays no plan.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

import grpc

from podium.audit.v1 import audit_service_pb2 as pb
from podium.audit.v1 import audit_service_pb2_grpc
from podium_conductor.ports import EngineDescription
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.ids import IdFactory
from podium_core.runtime.grpc_errors import rpc_errors

NOTE_KIND: Final = "conductor_model"
STARTED: Final = "started"
SWITCHED: Final = "switched"

_TIMEOUT_S: Final = 5.0
_FIRST_PAUSE_S: Final = 0.5
_MAX_PAUSE_S: Final = 30.0
_MAX_WAITING: Final = 64
_LATER: Final = frozenset({Code.UNAVAILABLE, Code.AUDIT_UNAVAILABLE, Code.DEADLINE, Code.CANCELLED})
_log = logging.getLogger(__name__)

Append = Callable[[pb.AppendRequest], Awaitable[object]]
"""Sends one note; raises PodiumError. The same note may be sent again."""


def appender(channel: grpc.aio.Channel) -> Append:
    """Return what appends to the audit service behind the channel."""
    stub: audit_service_pb2_grpc.AuditServiceAsyncStub = audit_service_pb2_grpc.AuditServiceStub(channel)

    async def append(request: pb.AppendRequest) -> object:
        with rpc_errors("audit"):
            return await stub.Append(request, timeout=_TIMEOUT_S)

    return append


class ModelNotes:
    """Writes the notes in order, each until the log has it."""

    def __init__(
        self,
        append: Append,
        ids: IdFactory,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._append = append
        self._ids = ids
        self._sleep = sleep
        self._waiting: asyncio.Queue[pb.AppendRequest] = asyncio.Queue(_MAX_WAITING)

    def loaded(self, cause: str, what: EngineDescription, before: str = "") -> None:
        """Have it noted that the engine plans with `what` from now on, instead of the model `before`."""
        facts = {
            "cause": cause,
            "engine": what.engine,
            "model_digest": what.model_digest,
            "tokenizer_digest": what.tokenizer_digest,
            "template_digest": what.template_digest,
            "model_digest_before": before,
        }
        facts = {name: fact for name, fact in facts.items() if fact}
        request = pb.AppendRequest(event_id=self._ids.new("model"), note=pb.Note(kind=NOTE_KIND, facts=facts))
        try:
            self._waiting.put_nowait(request)
        except asyncio.QueueFull:  # by far more switches than anybody makes while the log is away
            _log.error("a change of the model is not noted in the log", extra={"reason": "NOTES_FULL"})

    async def write(self) -> None:
        """Write what comes, until cancelled."""
        while True:
            request = await self._waiting.get()
            await self._written(request)

    async def _written(self, request: pb.AppendRequest) -> None:
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                await self._append(request)
            except PodiumError as error:
                if error.code not in _LATER:
                    _log.error("the log refused a note of the model", extra={"reason": error.reason})
                    return
                if pause_s == _FIRST_PAUSE_S:
                    _log.warning("the model is not noted in the log yet", extra={"reason": error.reason})
            else:
                return
            await self._sleep(pause_s)
            pause_s = min(2 * pause_s, _MAX_PAUSE_S)
