"""The life of a service process: one event loop, two signals, honest exit codes."""

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from podium_core.domain.errors import Code, PodiumError

if sys.platform != "win32":
    import uvloop

_log = logging.getLogger(__name__)
_FAILED = 1
_INTERRUPTED = 130
_COLLECT_AT = (10_000, 20, 20)
"""Python's 700 objects are one or two requests here: it would look for cycles several times in each."""


def run_service(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run `main` to its end on a fast event loop.

    Exits 1 with one log line when it raises PodiumError (nothing is wrong with the program), 130 when it
    is interrupted; any other exception is a defect and propagates.
    """
    factory = uvloop.new_event_loop if sys.platform != "win32" else None
    try:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.get_loop().set_exception_handler(_log_loop_error)
            runner.run(main())
    except PodiumError as error:
        _log.error("%s", error.message, extra={"code": error.code.value, "reason": error.reason})
        raise SystemExit(_FAILED) from None
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None


async def until_stopped(*parts: asyncio.Task[None]) -> None:
    """Return at the first SIGTERM or SIGINT; a second one then has its usual effect.

    Raises PodiumError when one of `parts`, tasks that never end by themselves, has ended: a service that
    lacks a part of itself, such as the one that reads revoked keys, must not go on.
    """
    _settle()
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, stopped.set)
    waiting = loop.create_task(stopped.wait())
    try:
        await asyncio.wait((waiting, *parts), return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        for number in signals:
            loop.remove_signal_handler(number)
    for part in parts:
        if part.done():
            _log.critical("a part ended", exc_info=None if part.cancelled() else part.exception())
            raise PodiumError(Code.INTERNAL, "a part of this service ended unexpectedly", reason="PART_ENDED")


def _settle() -> None:
    """Let the collector be: what has been built by now stays, and most of what follows dies by itself."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_AT)


def _log_loop_error(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    # asyncio's own handler writes the exception's text, which may hold content.
    error: BaseException | None = context.get("exception")
    _log.error("an asyncio task or callback failed", exc_info=error)
