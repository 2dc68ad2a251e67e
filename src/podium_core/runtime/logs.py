"""Logs: one JSON object per line on stderr, without exception texts, which may hold content."""

import json
import logging
import sys
import threading
import traceback
from datetime import UTC, datetime
from types import TracebackType

from opentelemetry import trace

from podium_core.domain.errors import PodiumError

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_MAX_FRAMES = 30
_NOISY = ("asyncio", "grpc", "opentelemetry", "aiohttp")


def configure_logging(service: str, level: str) -> None:
    """Send every log line of the process to stderr as JSON, from `level` on.

    Uncaught exceptions become log lines too, those of threads and finalizers included. Their texts are
    written at level DEBUG only.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(service, with_exception_text=level == "DEBUG"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.captureWarnings(capture=True)
    for name in _NOISY:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    sys.excepthook = _log_uncaught
    threading.excepthook = _log_thread
    sys.unraisablehook = _log_unraisable


class JsonFormatter(logging.Formatter):
    """Renders a record as `{"time", "level", "service", "logger", "message", ...}` plus its `extra` facts."""

    def __init__(self, service: str, *, with_exception_text: bool = False) -> None:
        super().__init__()
        self._service = service
        self._with_exception_text = with_exception_text

    def format(self, record: logging.LogRecord) -> str:
        """Return one line of JSON."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "service": self._service,
            "logger": record.name,
            "message": record.getMessage(),
        }
        span = trace.get_current_span().get_span_context()
        if span.is_valid:
            line["trace_id"] = f"{span.trace_id:032x}"
        for key, value in vars(record).items():
            if key not in _STANDARD:
                line[key] = value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)
        if record.exc_info is not None and record.exc_info[1] is not None:
            line["error"] = self._describe(record.exc_info[1])
        return json.dumps(line, ensure_ascii=False)

    def _describe(self, error: BaseException) -> list[dict[str, object]]:
        """Return the exception and what caused it, outermost first: type and stack, texts if allowed."""
        chain: list[dict[str, object]] = []
        seen: set[int] = set()
        link: BaseException | None = error
        while link is not None and id(link) not in seen:
            seen.add(id(link))
            entry: dict[str, object] = {"type": type(link).__qualname__, "stack": _frames(link.__traceback__)}
            if self._with_exception_text or isinstance(link, PodiumError):
                entry["text"] = str(link)
            chain.append(entry)
            link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
        return chain


def _frames(trace_back: TracebackType | None) -> list[str]:
    frames = traceback.extract_tb(trace_back)[-_MAX_FRAMES:]
    return [f"{_short(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames]


def _short(filename: str) -> str:
    return "/".join(filename.replace("\\", "/").split("/")[-2:])


def _log_uncaught(kind: type[BaseException], error: BaseException, trace_back: TracebackType | None) -> None:
    logging.getLogger(__name__).critical("uncaught exception", exc_info=(kind, error, trace_back))


def _log_thread(thread: threading.ExceptHookArgs) -> None:
    name = thread.thread.name if thread.thread is not None else ""
    logging.getLogger(__name__).critical(
        "uncaught exception in a thread",
        exc_info=(thread.exc_type, thread.exc_value or thread.exc_type(), thread.exc_traceback),
        extra={"thread_name": name},
    )


def _log_unraisable(ignored: "sys.UnraisableHookArgs") -> None:
    error = ignored.exc_value or ignored.exc_type()
    logging.getLogger(__name__).error(
        "an exception could not be raised", exc_info=(ignored.exc_type, error, ignored.exc_traceback)
    )
