"""The demo provider's HTTP surface: chat completions, the model list, health, and faults for tests."""

import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Self

from aiohttp import web
from aiohttp.typedefs import Handler

from podium_core.domain.clock import Clock
from podium_core.domain.ids import IdFactory
from podium_demo.answer import SPECIALISTS, answer
from podium_demo.api_errors import ApiError
from podium_demo.chat_request import decode_body, find_specialist, read_request
from podium_demo.chat_response import model_object, reply_to
from podium_demo.delivery import before_reply, send_stream, send_whole
from podium_demo.faults import Faults
from podium_demo.request_log import RequestLog
from podium_demo.worker_prompt import read_task

MAX_BODY_BYTES = 32 * 1024 * 1024
_SHUTDOWN_S = 1.0
_MAX_ATTEMPT_ID = 256


class DemoServer:
    """One running demo provider on a loopback address.

    `request_log` names a file for one JSON line per request. `allow_faults` opens `/faults`.
    """

    def __init__(
        self,
        clock: Clock,
        ids: IdFactory,
        *,
        request_log: Path | None = None,
        allow_faults: bool = False,
        cpu_ns: Callable[[], int] = time.thread_time_ns,
    ) -> None:
        self._clock = clock
        self._ids = ids
        self._log = RequestLog(request_log)
        self._faults = Faults()
        self._cpu_ns = cpu_ns
        self._open_requests = 0
        self._runner = web.AppRunner(
            self._application(allow_faults=allow_faults),
            handler_cancellation=True,
            access_log=None,
            shutdown_timeout=_SHUTDOWN_S,
        )
        self.base_url = ""
        """Where OpenAI clients connect to; known once started."""

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> Self:
        """Listen on `host`:`port` (0: any free port); raise OSError when that is not possible."""
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port).start()
        name = f"[{host}]" if ":" in host else host
        self.base_url = f"http://{name}:{self._runner.addresses[0][1]}/v1"
        return self

    async def stop(self) -> None:
        """Stop listening, drop open requests, close the log."""
        await self._runner.cleanup()
        self._log.close()

    def _application(self, *, allow_faults: bool) -> web.Application:
        app = web.Application(middlewares=[_error_bodies], client_max_size=MAX_BODY_BYTES)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/v1/models/{model}", self._model)
        app.router.add_get("/healthz", self._health)
        if allow_faults:
            app.router.add_post("/faults", self._add_fault)
            app.router.add_get("/faults", self._list_faults)
            app.router.add_delete("/faults", self._clear_faults)
        return app

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self._open_requests += 1
        try:
            return await self._complete(request, body)
        finally:
            self._open_requests -= 1

    async def _complete(self, request: web.Request, body: bytes) -> web.StreamResponse:
        arrived_ns = self._clock.now_ns()
        decoded: dict[str, object] | ApiError
        try:
            decoded = decode_body(body)
        except ApiError as error:
            decoded = error
        fields = {} if isinstance(decoded, ApiError) else decoded
        model = fields.get("model")
        model_name = model if isinstance(model, str) else ""
        self._log.write(
            time_ns=arrived_ns,
            attempt_id=request.headers.get("X-Client-Request-Id", "")[:_MAX_ATTEMPT_ID],
            model=model_name,
            stream=fields.get("stream") is True,
            body=body,
        )
        if isinstance(decoded, ApiError):
            raise decoded
        chat = read_request(decoded)
        fault = self._faults.take(model_name)
        if not await before_reply(request, fault):
            return web.Response()  # nobody reads it: the connection is closed
        text = answer(chat.specialist, read_task(chat.messages), self._cpu_ns)
        reply = reply_to(chat, text, self._ids.new("chatcmpl-demo"), arrived_ns // 1_000_000_000)
        headers = {"X-Request-Id": self._ids.new("req"), "X-Podium-Demo": "true"}
        if chat.stream:
            return await send_stream(request, reply, headers, fault, include_usage=chat.include_usage)
        return await send_whole(request, reply, headers, fault)

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [model_object(name) for name in SPECIALISTS]})

    async def _model(self, request: web.Request) -> web.Response:
        return web.json_response(model_object(find_specialist(request.match_info["model"]).model))

    async def _health(self, _: web.Request) -> web.Response:
        return web.json_response({"status": "ok", "demo": True})

    async def _add_fault(self, request: web.Request) -> web.Response:
        return web.json_response(asdict(self._faults.add(decode_body(await request.read()))), status=201)

    async def _list_faults(self, _: web.Request) -> web.Response:
        return web.json_response({"pending": len(self._faults), "open_requests": self._open_requests})

    async def _clear_faults(self, _: web.Request) -> web.Response:
        self._faults.clear()
        return web.Response(status=204)


@web.middleware
async def _error_bodies(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except ApiError as error:
        return error.response()
    except web.HTTPRequestEntityTooLarge:
        return ApiError(413, f"the body may have at most {MAX_BODY_BYTES} bytes").response()
    except web.HTTPNotFound:
        return ApiError(404, "there is nothing at this path; see GET /v1/models").response()
    except web.HTTPMethodNotAllowed:
        return ApiError(405, "this path does not take that method").response()
