"""Server-sent events from bytes that may be cut anywhere (WHATWG HTML, "event stream interpretation").

Works on bytes: line ends are ASCII, so a character cut in two by the network is whole again by the time
an event is complete. Linear in the bytes fed, whatever their pieces.
"""

from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"


class SseEvent(NamedTuple):
    """One dispatched event. `name` is empty for the default type; data lines are joined by newlines."""

    name: bytes
    data: bytes


class EventTooLargeError(Exception):
    """One event holds more bytes than allowed."""


class SseParser:
    """Turns pieces of an event stream into events. Feed bytes, then call `finish` once at their end."""

    __slots__ = ("_after_cr", "_data", "_first_line", "_held", "_held_bytes", "_max_event_bytes", "_name")

    def __init__(self, max_event_bytes: int) -> None:
        self._max_event_bytes = max_event_bytes
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._data: list[bytes] = []
        self._name = b""
        self._after_cr = False
        self._first_line = True

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Return the events that `chunk` completes. Raises EventTooLargeError."""
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk[:1] == b"\n":
                chunk = chunk[1:]
        if not chunk:
            return []
        lines = chunk.splitlines()
        last = chunk[-1:]
        if last == b"\n" or last == b"\r":  # noqa: PLR1714 - a tuple test costs more, once a chunk
            rest = b""
            self._after_cr = last == b"\r"
        else:
            rest = lines.pop()
        events: list[SseEvent] = []
        if lines and self._held:
            lines[0] = self._unhold() + lines[0]
        for line in lines:
            self._take(line, events)
        if rest:
            self._held.append(rest)
            self._count(len(rest))
        return events

    def finish(self) -> list[SseEvent]:
        """Return the event that the end of the stream leaves unterminated, if any.

        The standard drops it; providers that forget the last blank line make it worth a look.
        """
        events: list[SseEvent] = []
        if self._held:
            self._take(self._unhold(), events)
        self._dispatch(events)
        return events

    def _unhold(self) -> bytes:
        line = b"".join(self._held)
        self._held.clear()
        self._held_bytes -= len(line)
        return line

    def _take(self, line: bytes, events: list[SseEvent]) -> None:
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(_BOM)
        if not line:
            self._dispatch(events)
        elif line[:6] == b"data: ":
            self._data.append(line[6:])
            self._count(len(line))
        elif line[:1] == b":":
            return
        else:
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"data":
                self._data.append(value)
                self._count(len(line) + 1)
            elif field == b"event":
                self._name = value

    def _dispatch(self, events: list[SseEvent]) -> None:
        if self._data:
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            events.append(SseEvent(self._name, data))
            self._data.clear()
        self._name = b""
        self._held_bytes = 0

    def _count(self, size: int) -> None:
        self._held_bytes += size
        if self._held_bytes > self._max_event_bytes:
            raise EventTooLargeError
