"""Faults that tests ask for: delays, error statuses, cut and split bodies, hangs."""

from collections.abc import Mapping
from dataclasses import dataclass

from podium_demo.answer import SPECIALISTS
from podium_demo.api_errors import ApiError, invalid

ANY_MODEL = "*"
_MAX_PENDING = 1_000
_MAX_COUNT = 1_000_000
_MAX_SECONDS = 600.0
_MAX_BYTES = 1 << 24
_KINDS: Mapping[str, frozenset[str]] = {
    "delay": frozenset({"seconds", "between_seconds"}),
    "status": frozenset({"status", "retry_after_seconds", "code"}),
    "cut": frozenset({"after_deltas", "after_bytes"}),
    "split": frozenset({"chunk_bytes", "between_seconds"}),
    "hang": frozenset({"after_deltas"}),
}


@dataclass(slots=True)
class Fault:
    """What to do to the next `count` requests for `model`.

    delay: wait `seconds` before answering and `between_seconds` before each delta. status: answer with
    `status`, an error `code` and `retry_after_seconds`. cut: close the connection after `after_deltas`
    text deltas or exactly `after_bytes` bytes of the body; with neither, before any byte. split: send the
    body in pieces of `chunk_bytes`, `between_seconds` apart. hang: stop after `after_deltas` deltas, or
    before any byte, until the client leaves.
    """

    model: str
    kind: str
    count: int = 1
    seconds: float = 0.0
    between_seconds: float = 0.0
    status: int = 500
    retry_after_seconds: float | None = None
    code: str | None = None
    after_deltas: int | None = None
    after_bytes: int | None = None
    chunk_bytes: int = 1

    def error(self) -> ApiError:
        """Return the error that a `status` fault answers with."""
        return ApiError(
            self.status, "a demo fault was asked for", code=self.code, retry_after_s=self.retry_after_seconds
        )


class Faults:
    """Faults waiting for their requests, oldest first."""

    def __init__(self) -> None:
        self._pending: list[Fault] = []

    def add(self, body: Mapping[str, object]) -> Fault:
        """Queue the fault that `body` describes; raise ApiError when it is not well formed."""
        fault = _read(body)
        if len(self._pending) >= _MAX_PENDING:
            raise invalid(f"at most {_MAX_PENDING} faults can wait; delete some first")
        self._pending.append(fault)
        return fault

    def take(self, model: str) -> Fault | None:
        """Return the oldest fault for `model` and use up one of its counts."""
        for fault in self._pending:
            if fault.model in (ANY_MODEL, model):
                fault.count -= 1
                if fault.count == 0:
                    self._pending.remove(fault)
                return fault
        return None

    def clear(self) -> None:
        """Forget all waiting faults."""
        self._pending.clear()

    def __len__(self) -> int:
        return len(self._pending)


def _read(body: Mapping[str, object]) -> Fault:
    kind, model = body.get("kind"), body.get("model")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise invalid(f"kind must be one of {', '.join(_KINDS)}", param="kind")
    if not isinstance(model, str) or model not in (ANY_MODEL, *SPECIALISTS):
        raise invalid(f"model must be {ANY_MODEL} or one of {', '.join(SPECIALISTS)}", param="model")
    unknown = sorted(set(body) - _KINDS[kind] - {"kind", "model", "count"})
    if unknown:
        raise invalid(f"a {kind} fault has no field {unknown[0]}", param=unknown[0])
    code = body.get("code")
    if code is not None and not isinstance(code, str):
        raise invalid("code must be a text", param="code")
    return Fault(
        model=model,
        kind=kind,
        code=code,
        count=_whole(body, "count", 1, 1, _MAX_COUNT),
        seconds=_seconds(body, "seconds") or 0.0,
        between_seconds=_seconds(body, "between_seconds") or 0.0,
        status=_whole(body, "status", 500, 400, 599),
        retry_after_seconds=_seconds(body, "retry_after_seconds"),
        after_deltas=_whole(body, "after_deltas", 0, 0, _MAX_BYTES) if "after_deltas" in body else None,
        after_bytes=_whole(body, "after_bytes", 0, 0, _MAX_BYTES) if "after_bytes" in body else None,
        chunk_bytes=_whole(body, "chunk_bytes", 1, 1, _MAX_BYTES),
    )


def _whole(body: Mapping[str, object], name: str, default: int, low: int, high: int) -> int:
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise invalid(f"{name} must be a whole number from {low} to {high}", param=name)
    return value


def _seconds(body: Mapping[str, object], name: str) -> float | None:
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _MAX_SECONDS:
        raise invalid(f"{name} must be a number from 0 to {_MAX_SECONDS:g}", param=name)
    return float(value)
