"""Log lines: JSON, one per record, and no exception text."""

import json
import logging
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace

from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.logs import JsonFormatter, configure_logging


def _line(formatter: JsonFormatter, error: BaseException | None = None, **facts: object) -> dict[str, Any]:
    info = None if error is None else (type(error), error, error.__traceback__)
    record = logging.LogRecord("podium.test", logging.INFO, __file__, 1, "said %s", ("this",), info)
    vars(record).update(facts)
    text = formatter.format(record)
    assert "\n" not in text
    line: dict[str, Any] = json.loads(text)
    return line


def _raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    try:
        raise error from cause
    except type(error) as caught:
        return caught


def _raise(error: BaseException) -> None:
    raise error


class _Ignored:
    """What the interpreter tells of an exception in a finalizer."""

    def __init__(self, error: BaseException) -> None:
        self.exc_type, self.exc_value, self.exc_traceback = type(error), error, error.__traceback__


def test_a_line_holds_message_service_and_facts() -> None:
    line = _line(JsonFormatter("router"), run_id="run_1", attempts=2)
    assert line["message"] == "said this"
    assert (line["level"], line["service"], line["logger"]) == ("INFO", "router", "podium.test")
    assert (line["run_id"], line["attempts"]) == ("run_1", 2)
    assert line["time"].endswith("+00:00")


def test_an_exception_shows_where_but_not_what() -> None:
    error = _raised(RuntimeError("secret-dsn"), _raised(ValueError("secret-too")))
    line = _line(JsonFormatter("router"), error)
    assert [entry["type"] for entry in line["error"]] == ["RuntimeError", "ValueError"]
    assert "runtime/test_logs.py" in line["error"][0]["stack"][-1]
    assert "secret" not in json.dumps(line)


def test_an_error_of_ours_may_show_its_text() -> None:
    line = _line(JsonFormatter("router"), _raised(PodiumError(Code.CONFLICT, "the pool is stale")))
    assert line["error"][0]["text"] == "the pool is stale"


def test_texts_of_exceptions_can_be_asked_for() -> None:
    line = _line(JsonFormatter("router", with_exception_text=True), _raised(RuntimeError("detail")))
    assert line["error"][0]["text"] == "detail"


def test_a_cycle_of_causes_ends() -> None:
    first, second = RuntimeError("1"), RuntimeError("2")
    first.__cause__, second.__cause__ = second, first
    assert len(_line(JsonFormatter("router"), first)["error"]) == 2


def test_a_line_within_a_span_names_its_trace() -> None:
    context = trace.SpanContext(0xABC, 0xDEF, is_remote=False)
    with trace.use_span(trace.NonRecordingSpan(context)):
        assert _line(JsonFormatter("router"))["trace_id"] == f"{0xABC:032x}"


@pytest.fixture
def restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    hooks = sys.excepthook, threading.excepthook, sys.unraisablehook
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    sys.excepthook, threading.excepthook, sys.unraisablehook = hooks
    root.setLevel(level)
    logging.captureWarnings(capture=False)


@pytest.mark.usefixtures("restored_logging")
def test_the_whole_process_logs_json_from_its_level_on(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("audit", "INFO")
    logging.getLogger("podium.x").info("kept")
    logging.getLogger("podium.x").debug("dropped")
    logging.getLogger("asyncio").info("dropped")
    error = _raised(RuntimeError("secret-dsn"))
    sys.excepthook(RuntimeError, error, error.__traceback__)
    thread = threading.Thread(target=lambda: _raise(RuntimeError("secret-thread")))
    thread.start()
    thread.join()
    sys.unraisablehook(_Ignored(error))  # type: ignore[arg-type]
    lines = [json.loads(text) for text in capsys.readouterr().err.splitlines()]
    assert [line["message"] for line in lines] == [
        "kept",
        "uncaught exception",
        "uncaught exception in a thread",
        "an exception could not be raised",
    ]
    assert "secret" not in json.dumps(lines)
