"""Server-sent events, decoded as bytes arrive (WHATWG HTML, §9.2.6), as far as Podium sends them."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event: its name (`message` when none was given) and its data lines, joined."""

    name: str
    data: str


@dataclass(slots=True)
class SseDecoder:
    """Turns chunks of bytes, cut anywhere, into events. Comments and unknown fields are skipped."""

    _rest: bytes = b""
    _name: str = ""
    _data: list[str] = field(default_factory=list)

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events that `chunk` completes."""
        events: list[ServerEvent] = []
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._take(line.removesuffix(b"\r").decode("utf-8", "replace"), events)
        return events

    def _take(self, line: str, events: list[ServerEvent]) -> None:
        if not line:
            if self._data:
                events.append(ServerEvent(self._name or "message", "\n".join(self._data)))
            self._name, self._data = "", []
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._name = value
        elif name == "data":
            self._data.append(value)
