"""Requests that may come more than once: whoever repeats one gets the same run's answer, never a second run.

A key names one request of one principal. The first gateway that meets it claims it in audit, performs the run
and stores the answer under the claim; every other request with the key, here or elsewhere, reads that answer.
A claim is short-lived and renewed while its run lives, so a gateway that dies holds nobody up for long, and a
run that fails gives its key back.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from aiohttp import web

from podium_core.config.tenants import Principal
from podium_core.domain.conversation import Item, ItemKey, ItemKind
from podium_core.domain.errors import Code, PodiumError, invalid
from podium_core.orchestration.request import RunRequest
from podium_gateway.answers import AnswerContext, Asked, next_text, whole_answer
from podium_gateway.live_run import LiveRun
from podium_gateway.ports import ConversationPort
from podium_gateway.shared_answer import SharedAnswer
from podium_gateway.sse import Heartbeat

HEADER = "Idempotency-Key"

_MAX_KEY = 255
_CLAIM_S = 15.0
_RENEW_EVERY_S = 5.0
_FIRST_POLL_S = 0.1
_MAX_POLL_S = 1.0
_WAITING = ": waiting for the run that this request repeats\n\n"
_UNKNOWN = PodiumError(Code.INTERNAL, "the shared run ended unexpectedly")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RepeatKey:
    """Which answer a request shares. `linger_s` is how long its run goes on without a listener."""

    item: ItemKey
    fingerprint: str
    linger_s: float


@dataclass(frozen=True, slots=True)
class Performance:
    """How the run is performed, should nobody have done so. `give_up` is called instead when somebody has."""

    asked: Asked
    context: AnswerContext
    start: Callable[[], LiveRun]
    give_up: Callable[[], None]


@dataclass(slots=True)
class Repeats:
    """The shared answers of this gateway. Times are in seconds."""

    kept: ConversationPort
    ttl_s: float
    linger_s: float
    first_byte_s: float
    keep_alive_s: float
    write_stall_s: float
    _shared: dict[ItemKey, SharedAnswer] = field(default_factory=dict)
    _telling: set["asyncio.Task[None]"] = field(default_factory=set)

    def key_of(
        self, request: web.Request, body: bytes, principal: Principal, run: RunRequest
    ) -> RepeatKey | None:
        """Return the key of a request that shares its answer; None for one that is performed for itself.

        Tool results share it by themselves: they are posted again after every hiccup, and no tool turn may be
        performed twice. Raises PodiumError (INVALID_REQUEST) for a header that cannot be a key.
        """
        sent = request.headers.get(HEADER)
        if sent is None and not run.continues_run_id:
            return None
        fingerprint = sha256(request.path.encode() + b"\x00" + body).hexdigest()
        if sent is None:
            name, linger_s = f"continuation\x00{fingerprint}", 0.0
        elif 0 < len(sent) <= _MAX_KEY and sent.isascii() and sent.isprintable():
            name, linger_s = f"header\x00{sent}", self.linger_s
        else:
            raise invalid(
                f"the header {HEADER} takes 1 to {_MAX_KEY} printable ASCII characters", param=HEADER
            )
        digest = sha256(f"{principal.key_id}\x00{name}".encode()).hexdigest()
        item = ItemKey(principal.tenant.tenant_id, ItemKind.IDEMPOTENCY, digest)
        return RepeatKey(item, fingerprint, linger_s)

    async def answer(
        self, request: web.Request, key: RepeatKey, performance: Performance
    ) -> web.StreamResponse:
        """Answer one request with the shared answer; raise PodiumError while nothing has been sent.

        Raises PodiumError (CONFLICT, IDEMPOTENCY_KEY_REUSED) when the key came with another request before.
        """
        shared = self._shared.get(key.item)
        if shared is None:
            shared = self._shared[key.item] = SharedAnswer(
                key.fingerprint, is_stream=performance.asked.request.parameters.stream
            )
            self._tell(shared, key, performance)
        else:
            performance.give_up()
            if shared.fingerprint != key.fingerprint:
                raise _reused()
        return await shared.read(request, self.write_stall_s)

    def _tell(self, shared: SharedAnswer, key: RepeatKey, performance: Performance) -> None:
        task = asyncio.create_task(_Telling(self, shared, key, performance).tell())

        def told(task: "asyncio.Task[None]") -> None:
            self._telling.discard(task)
            del self._shared[key.item]
            if not shared.is_whole:
                shared.end(_UNKNOWN)
            if not task.cancelled() and (defect := task.exception()) is not None:
                _log.error("a shared run failed unexpectedly", exc_info=defect)

        self._telling.add(task)
        task.add_done_callback(told)


class _Telling:
    """Brings one shared answer about: from audit, or by performing the run."""

    def __init__(
        self, repeats: Repeats, shared: SharedAnswer, key: RepeatKey, performance: Performance
    ) -> None:
        self._repeats, self._kept = repeats, repeats.kept
        self._shared, self._key, self._performance = shared, key, performance
        self._context = performance.context
        self._run: LiveRun | None = None
        self._heartbeat = Heartbeat(self._nudge, first_s=repeats.first_byte_s, then_s=repeats.keep_alive_s)

    async def tell(self) -> None:
        """Tell the answer, whatever comes."""
        try:
            await self._tell()
        except PodiumError as error:
            self._shared.end(error)
        finally:
            self._heartbeat.stop()
            if self._run is None:
                self._performance.give_up()

    async def _tell(self) -> None:
        claim = json.dumps({"run_id": self._context.run_id, "fingerprint": self._key.fingerprint}).encode()
        pause_s = _FIRST_POLL_S
        while True:
            joined = await self._kept.join(self._key.item, claim, ttl_s=_CLAIM_S, run_id=self._context.run_id)
            if joined.holder is None:
                await self._perform(claim, joined.version)
                return
            if self._take(joined.holder):
                return
            if self._shared.is_stream and self._heartbeat.is_due:
                self._add(_WAITING)
            if not self._shared.has_readers:
                return
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _MAX_POLL_S)

    def _take(self, item: Item) -> bool:
        """Tell what audit holds, if that is an answer; raise PodiumError when it is another request's."""
        held = json.loads(item.data)
        if held["fingerprint"] != self._key.fingerprint:
            raise _reused()
        if "text" not in held:
            return False
        if not self._shared.is_open:
            self._shared.headers = held["headers"]
        self._add(held["text"])
        self._shared.end()
        return True

    async def _perform(self, claim: bytes, version: int) -> None:
        self._run = run = self._performance.start()
        self._shared.headers = self._context.headers
        holding = _Holding(self._kept, self._key, claim, version, self._context.run_id)
        watching = asyncio.create_task(self._stop_unheard(run))
        renewing = asyncio.create_task(holding.keep())
        is_good = False
        try:
            is_good = await self._told(run)
        finally:
            run.cancel()
            watching.cancel()
            holding.ended.set()
            await renewing
            if is_good:
                await holding.store(self._shared.text, self._context.headers, self._repeats.ttl_s)
            else:
                await holding.release()
        self._shared.end()

    async def _told(self, run: LiveRun) -> bool:
        """Tell the run's answer; return whether it is one that a repetition may be given."""
        asked, shared = self._performance.asked, self._shared
        if not shared.is_stream:
            shared.add(asked.rendering.whole(await whole_answer(run, self._context), self._context))
            return True
        answer = asked.rendering.streamed(self._context)
        while not answer.is_complete:
            self._add(await next_text(run, answer, self._heartbeat, is_open=shared.is_open))
        return answer.is_answered

    async def _stop_unheard(self, run: LiveRun) -> None:
        """Stop the run once nobody has listened for as long as the key allows."""
        while True:
            await self._shared.until_read(wanted=False)
            try:
                async with asyncio.timeout(self._key.linger_s):
                    await self._shared.until_read(wanted=True)
            except TimeoutError:
                run.cancel()
                return

    def _nudge(self) -> None:
        if self._run is not None:
            self._run.nudge()

    def _add(self, text: str) -> None:
        if text:
            self._shared.add(text)
            self._heartbeat.heard()


class _Holding:
    """A claim while its run lives, and what becomes of it."""

    def __init__(
        self, kept: ConversationPort, key: RepeatKey, claim: bytes, version: int, run_id: str
    ) -> None:
        self._kept, self._key, self._claim, self._run_id = kept, key, claim, run_id
        self._version = version
        self.ended = asyncio.Event()

    async def keep(self) -> None:
        """Renew the claim until the run has ended, or until it is somebody else's."""
        while not await self._ends_within(_RENEW_EVERY_S):
            try:
                self._version = await self._kept.put(
                    self._key.item, self._claim, ttl_s=_CLAIM_S, run_id=self._run_id, if_version=self._version
                )
            except PodiumError as error:
                _log.warning("an idempotency claim could not be renewed", extra={"reason": error.reason})
                if error.code is Code.CONFLICT:
                    return

    async def _ends_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self.ended.wait()
        except TimeoutError:
            return False
        return True

    async def store(self, text: str, headers: Mapping[str, str], ttl_s: float) -> None:
        """Keep the answer for whoever repeats the request."""
        held = {
            "run_id": self._run_id,
            "fingerprint": self._key.fingerprint,
            "headers": dict(headers),
            "text": text,
        }
        data = json.dumps(held).encode()
        try:
            await self._kept.put(
                self._key.item, data, ttl_s=ttl_s, run_id=self._run_id, if_version=self._version
            )
        except PodiumError as error:
            # The client has its answer all the same; a repetition is performed anew.
            _log.warning("an answer could not be kept for repetitions", extra={"reason": error.reason})

    async def release(self) -> None:
        """Give the key back: whoever repeats the request may try again."""
        try:
            await self._kept.delete(self._key.item, if_version=self._version)
        except PodiumError as error:
            _log.warning("an idempotency claim lapses by itself", extra={"reason": error.reason})


def _reused() -> PodiumError:
    return PodiumError(
        Code.CONFLICT,
        f"this {HEADER} came with another request before; send a new key, or the same request",
        reason="IDEMPOTENCY_KEY_REUSED",
        param=HEADER,
    )
