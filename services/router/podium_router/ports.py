"""What one attempt needs from the outside: the log that permits it, and the provider that does it."""

import asyncio
from dataclasses import dataclass
from typing import Protocol

from yarl import URL

from podium_router.answer import Answer
from podium_router.calls import ApiKey, AttemptBegin, AttemptEnd, CallTimeouts, Delta


class AuditPort(Protocol):
    """The log, as attempts see it."""

    async def begin(self, begin: AttemptBegin, timeout_s: float) -> int:
        """Commit the attempt and return its leaf index: the permit.

        Raises PodiumError; without a return value nothing may be dispatched.
        """
        ...

    async def end(self, end: AttemptEnd, sent: "asyncio.Event") -> None:
        """Commit the attempt's end; set `sent` as soon as the request is on its way. Raises PodiumError."""
        ...


class DeltaSink(Protocol):
    """Takes streamed output."""

    def put(self, delta: Delta) -> None:
        """Take output; never blocks."""
        ...

    async def room(self) -> None:
        """Wait until the reader has caught up enough to take more."""
        ...


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """One HTTP request. `deadline` is a time of the running event loop: the caller's, or the total."""

    url: URL
    key: ApiKey | None
    body: bytes
    stream: bool
    attempt_id: str
    traceparent: str
    deadline: float
    timeouts: CallTimeouts = CallTimeouts()


class ProviderPort(Protocol):
    """Makes provider calls."""

    async def complete(self, request: ProviderRequest, answer: Answer, sink: DeltaSink) -> None:
        """Make exactly one HTTP request and fill `answer`; put deltas into `sink` when it is streamed.

        Raises PodiumError (PROVIDER_FAILED, RATE_LIMITED, DEADLINE); what `answer` holds by then is what
        came. Cancelling closes the connection.
        """
        ...
