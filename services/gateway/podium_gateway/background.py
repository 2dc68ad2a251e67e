"""Responses whose run goes on without its client: read later, followed again after a cut, cancelled."""

import asyncio
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from aiohttp import web

from podium_core.config.tenants import Principal
from podium_core.domain.errors import Code, PodiumError
from podium_gateway.answers import AnswerContext, Asked, StreamedAnswer, next_text
from podium_gateway.codecs.openai_answer import json_text
from podium_gateway.live_run import LiveRun
from podium_gateway.ports import StopPort
from podium_gateway.sse import ClientGoneError, EventStream, Heartbeat
from podium_gateway.stored import StoredResponse, StoredResponses

_log = logging.getLogger(__name__)
_JSON = "application/json"
_RENEW_EVERY_S = 10.0
_ALIVE_S = 35.0
_FIRST_POLL_S = 0.1
_MAX_POLL_S = 1.0
_CANCEL_WAIT_S = 10.0
_NUMBER = re.compile(r'"sequence_number":(\d+)')
_HEARTBEAT = "event: response.in_progress\n"


@dataclass(slots=True)
class _Telling:
    """A response that is being told by this gateway: its events so far, for any number of readers."""

    principal: Principal
    run: LiveRun
    state: StoredResponse = field(default_factory=lambda: StoredResponse({}))
    events: list[str] = field(default_factory=list)
    is_over: bool = False
    task: "asyncio.Task[None] | None" = None
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, text: str) -> None:
        self.events.extend(f"{event}\n\n" for event in text.split("\n\n") if event)
        self._wake()

    def end(self) -> None:
        self.is_over = True
        self._wake()

    async def moved(self) -> None:
        """Wait for more events, or the end."""
        await self._news.wait()

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()


class Background:
    """The background responses of this gateway, and how any other gateway's are reached."""

    def __init__(
        self, stored: StoredResponses, stops: StopPort, *, keep_alive_s: float, write_stall_s: float
    ) -> None:
        self._stored = stored
        self._stops = stops
        self._keep_alive_s = keep_alive_s
        self._write_stall_s = write_stall_s
        self._live: dict[str, _Telling] = {}

    async def begin(
        self,
        request: web.Request,
        asked: Asked,
        run: LiveRun,
        context: AnswerContext,
        principal: Principal,
    ) -> web.StreamResponse:
        """Let the run go on by itself, and answer with its first state or its stream.

        Raises PodiumError when the state cannot be kept: then nobody could read the answer, so the run is
        stopped, as it is when the client hangs up before it knows the response's id.
        """
        answer = asked.rendering.streamed(context)
        telling = _Telling(principal, run)
        telling.add(answer.keep_alive())
        telling.state = StoredResponse(_response_of(telling.events[0]))
        try:
            await self._stored.put(principal, telling.state, run.run_id, alive_s=_ALIVE_S)
        except (PodiumError, asyncio.CancelledError):
            run.cancel()
            raise
        response_id = str(telling.state.response["id"])
        self._live[response_id] = telling
        telling.task = asyncio.create_task(self._tell(telling, asked, answer))
        telling.task.add_done_callback(lambda _: self._live.pop(response_id, None))
        if asked.request.parameters.stream:
            return await self._follow(request, telling, -1, context.headers)
        text = json_text(telling.state.response)
        return web.Response(text=text, content_type=_JSON, headers=context.headers)

    async def quiet(self, timeout_s: float) -> None:
        """Wait until the responses of ended runs are kept."""
        if tasks := [telling.task for telling in self._live.values() if telling.task is not None]:
            await asyncio.wait(tasks, timeout=timeout_s)

    async def read(self, principal: Principal, response_id: str) -> StoredResponse:
        """Return a response in its present state; raise PodiumError (NOT_FOUND)."""
        telling = self._own(principal, response_id)
        if telling is not None:
            return telling.state
        return await self._stored.get(principal, response_id, is_read=True)

    async def resume(
        self, request: web.Request, principal: Principal, response_id: str, after: int
    ) -> web.StreamResponse:
        """Stream the events numbered above `after`, also those to come; raise PodiumError (NOT_FOUND)."""
        telling = self._own(principal, response_id)
        if telling is not None:
            return await self._follow(request, telling, after, {})
        await self._stored.get(principal, response_id, is_read=True)
        stream = EventStream(request, {}, self._write_stall_s)
        try:
            stored = await self._awaited(stream, principal, response_id, after)
            await stream.send("".join(event for event in stored.events if _number_of(event) > after))
            await stream.close()
        except ClientGoneError:
            pass
        return stream.response

    async def cancel(self, principal: Principal, response_id: str) -> StoredResponse:
        """Stop a response that is not finished, wherever it is performed, and return what became of it."""
        telling = self._own(principal, response_id)
        if telling is not None and telling.task is not None:
            telling.run.cancel()
            await asyncio.wait([telling.task], timeout=_CANCEL_WAIT_S)
            return telling.state
        stored = await self._stored.get(principal, response_id)
        if stored.is_finished:
            return stored
        await self._stop_elsewhere(principal, response_id)
        return await self._settled(principal, response_id)

    async def delete(self, principal: Principal, response_id: str) -> None:
        """Delete a response for good, and stop its run: nobody can read an answer any more.

        Raises PodiumError: NOT_FOUND when there is none, AUDIT_UNAVAILABLE.
        """
        telling = self._own(principal, response_id)
        stored = await self._stored.get(principal, response_id)
        await self._stored.delete(principal, response_id)
        if telling is not None:
            self._live.pop(response_id, None)
            telling.run.cancel()
        elif not stored.is_finished:
            await self._stop_elsewhere(principal, response_id)

    async def _stop_elsewhere(self, principal: Principal, response_id: str) -> None:
        run_id = f"run_{response_id.rpartition('_')[2]}"
        try:
            await self._stops.stop_run(principal.tenant.tenant_id, run_id, principal.key_id)
        except PodiumError as error:
            if error.code is not Code.CONFLICT:  # a run that is sealed has an answer on its way
                raise

    # --- telling ---------------------------------------------------------------------------------

    async def _tell(self, telling: _Telling, asked: Asked, answer: StreamedAnswer) -> None:
        heartbeat = Heartbeat(telling.run.nudge, first_s=self._keep_alive_s, then_s=self._keep_alive_s)
        renewing = asyncio.create_task(self._renew(telling))
        try:
            while not answer.is_complete:
                text = await next_text(telling.run, answer, heartbeat, is_open=True)
                if text:
                    telling.add(text)
                    heartbeat.heard()
            events = [*telling.events[:2], *(e for e in telling.events[2:] if not e.startswith(_HEARTBEAT))]
            response = _response_of(events[-1])
            telling.state = StoredResponse(
                response, asked.conversation_after(response), events, asked=asked.asked
            )
        finally:
            heartbeat.stop()
            renewing.cancel()
            telling.end()
        await self._keep(telling)

    async def _renew(self, telling: _Telling) -> None:
        while True:
            await asyncio.sleep(_RENEW_EVERY_S)
            await self._keep(telling)

    async def _keep(self, telling: _Telling) -> None:
        run_id = telling.run.run_id
        try:
            if not await self._stored.update(telling.principal, telling.state, run_id, alive_s=_ALIVE_S):
                telling.run.cancel()  # deleted, perhaps through another gateway
        except PodiumError as error:
            facts = {"run_id": run_id, "reason": error.reason}
            _log.warning("a background response could not be kept", extra=facts)

    def _own(self, principal: Principal, response_id: str) -> _Telling | None:
        telling = self._live.get(response_id)
        is_own = telling is not None and (
            telling.principal.key_id == principal.key_id
            and telling.principal.tenant.tenant_id == principal.tenant.tenant_id
        )
        return telling if is_own else None

    # --- following -------------------------------------------------------------------------------

    async def _follow(
        self, request: web.Request, telling: _Telling, after: int, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        """Stream what is told here, from its beginning. Its heartbeats are among the events."""
        stream = EventStream(request, headers, self._write_stall_s)
        sent = 0
        try:
            while not (telling.is_over and sent == len(telling.events)):
                if sent == len(telling.events):
                    await telling.moved()
                fresh = telling.events[sent:]
                sent += len(fresh)
                if text := "".join(event for event in fresh if _number_of(event) > after):
                    await stream.send(text)
            if not stream.is_open:
                await stream.send("")
            await stream.close()
        except ClientGoneError:
            pass  # the run goes on without this reader
        return stream.response

    async def _awaited(
        self, stream: EventStream, principal: Principal, response_id: str, after: int
    ) -> StoredResponse:
        """Return a response that another gateway performs once it is finished."""
        stored = await self._stored.get(principal, response_id)
        silent_s, pause_s = self._keep_alive_s, _FIRST_POLL_S
        while not stored.is_finished:
            if silent_s >= self._keep_alive_s:
                silent_s = 0.0
                await stream.send(_heartbeat(stored.response, max(after, 0)))
            await asyncio.sleep(pause_s)
            silent_s += pause_s
            pause_s = min(2 * pause_s, _MAX_POLL_S)
            stored = await self._stored.get(principal, response_id)
        return stored

    async def _settled(self, principal: Principal, response_id: str) -> StoredResponse:
        """Return a stopped response once its gateway has ended it, or as it is when that takes long."""
        stored = await self._stored.get(principal, response_id)
        try:
            async with asyncio.timeout(_CANCEL_WAIT_S):
                while not stored.is_finished:
                    await asyncio.sleep(_FIRST_POLL_S)
                    stored = await self._stored.get(principal, response_id)
        except TimeoutError:
            pass
        return stored


def _number_of(event: str) -> int:
    found = _NUMBER.search(event)
    return -1 if found is None else int(found[1])


def _response_of(event: str) -> dict[str, object]:
    response: dict[str, object] = json.loads(event.partition("\ndata: ")[2])["response"]
    return response


def _heartbeat(response: Mapping[str, object], number: int) -> str:
    """Return an event that repeats the last number, since those to come are another gateway's."""
    body = {"type": "response.in_progress", "sequence_number": number, "response": response}
    return f"{_HEARTBEAT}data: {json_text(body)}\n\n"
