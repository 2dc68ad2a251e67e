"""`podium-witness` serves C2SP tlog-witness; `podium-witness forget ORIGIN` lets a log begin anew."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from typing import Final

from aiohttp import web

from podium_audit import keys
from podium_audit.ports import StoreError
from podium_audit.tree.cosignatures import ED25519, ML_DSA_44, Cosigner
from podium_audit.witness.book import WitnessBook
from podium_audit.witness.judgement import Judge
from podium_audit.witness.settings import WitnessSettings
from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.http_server import SERVER, listen
from podium_core.runtime.http_status import HTTP_STATUS_OF_CODE
from podium_core.runtime.logs import configure_logging
from podium_core.runtime.service import run_service, until_stopped
from podium_core.runtime.settings_base import load_settings, parse_listen

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

BOOK_FILE: Final = "witness.db"
_KEY_FILES: Final = {ED25519: "witness.key", ML_DSA_44: "witness-ml-dsa-44.key"}
_MAX_BODY_BYTES: Final = 64 * 1024
_HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Server": SERVER}
_FORGET_WORDS: Final = 2


def open_judge(settings: WitnessSettings) -> Judge:
    """Return the witness over its files, made at the first start. Raises PodiumError, StoreError."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    algorithms = (ED25519, ML_DSA_44) if settings.ml_dsa else (ED25519,)
    cosigners = [
        Cosigner(settings.name, algorithm, keys.make_seed(settings.data_dir / _KEY_FILES[algorithm]))
        for algorithm in algorithms
    ]
    return Judge(WitnessBook(settings.data_dir / BOOK_FILE), cosigners, settings.logs, SystemClock())


def application(judge: Judge) -> web.Application:
    """Return the HTTP application: one question, one answer, one after the other."""
    turn = asyncio.Lock()

    async def add_checkpoint(request: web.Request) -> web.Response:
        body = await request.read()
        async with turn:
            said = await asyncio.to_thread(judge.add_checkpoint, body)
        return web.Response(
            status=said.status, text=said.text, content_type=said.content_type, headers=_HEADERS
        )

    async def vkeys(_request: web.Request) -> web.Response:
        text = "".join(f"{cosigner.witness.vkey}\n" for cosigner in judge.cosigners)
        return web.Response(text=text, headers=_HEADERS)

    async def healthz(_request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"}, headers=_HEADERS)

    app = web.Application(client_max_size=_MAX_BODY_BYTES, middlewares=[_errors])
    app.router.add_post("/add-checkpoint", add_checkpoint)
    app.router.add_get("/vkeys", vkeys)
    app.router.add_get("/healthz", healthz)
    return app


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except (PodiumError, StoreError):
        return web.Response(status=503, text="this witness cannot cosign now\n", headers=_HEADERS)
    except web.HTTPException as error:
        return web.Response(status=error.status, text=f"{error.reason}\n", headers=_HEADERS)


def refusal(error: PodiumError) -> web.Response:
    """Return the answer to what is no request."""
    return web.Response(status=HTTP_STATUS_OF_CODE[error.code], text=f"{error.message}\n", headers=_HEADERS)


async def serve(settings: WitnessSettings) -> None:
    """Serve until SIGTERM or SIGINT. Raises PodiumError when it cannot."""
    settings.logs()
    try:
        judge = open_judge(settings)
    except StoreError as error:
        raise PodiumError(Code.INVALID_REQUEST, f"the witness's book cannot be used: {error}") from None
    with ExitStack() as stack:
        stack.callback(judge.book.close)
        host, port = parse_listen(settings.listen)
        runner, _ = await listen(application(judge), host, port, refuse=refusal)
        try:
            await until_stopped()
        finally:
            await runner.cleanup()


def forget(settings: WitnessSettings, origin: str) -> str:
    """Forget a log whose operator could show why it begins anew; return what to say. Raises PodiumError."""
    book = WitnessBook(settings.data_dir / BOOK_FILE)
    try:
        was_known = book.forget(origin)
    finally:
        book.close()
    return f"{origin} is forgotten: its next checkpoint begins anew\n" if was_known else "no such log\n"


def main(argv: Sequence[str] | None = None) -> None:
    """Run the witness."""
    words = sys.argv[1:] if argv is None else list(argv)
    is_forgetting = len(words) == _FORGET_WORDS and words[0] == "forget"
    settings = load_settings(WitnessSettings, [] if is_forgetting else words)
    configure_logging("witness", settings.log_level)
    if is_forgetting:
        sys.stdout.write(forget(settings, words[1]))
    else:
        run_service(lambda: serve(settings))


if __name__ == "__main__":
    main()
