"""What one attempt needs from the outside: the log that permits it, and the provider that does it."""

import asyncio
from dataclasses import dataclass
from typing import Protocol

from yarl import URL

from podium_router.answer import Answer
from podium_router.body import Body
from podium_router.calls import AttemptBegin, AttemptEnd, CallTimeouts, Credentials, Delta


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

    @property
    def has_room(self) -> bool:
        """Whether more may be put now."""
        ...

    async def room(self) -> None:
        """Wait until the reader has caught up enough to take more."""
        ...


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """One provider call as Podium puts it: `body` is OpenAI's, `url` the address of the worker's provider.

    `kind` is the worker's provider in pool.yaml.
    """

    kind: str
    model: str
    region: str
    url: URL
    credentials: Credentials
    body: Body
    stream: bool
    attempt_id: str
    timeouts: CallTimeouts = CallTimeouts()
    is_embedding: bool = False


@dataclass(frozen=True, slots=True)
class Sending:
    """What is known only once the permit is there.

    `deadline` is a time of the running event loop: the caller's, or the worker's total.
    """

    traceparent: str
    deadline: float


class ProviderCall(Protocol):
    """One provider call whose bytes are settled and of which nothing has been sent."""

    @property
    def body(self) -> Body:
        """The exact bytes that `send` sends."""
        ...

    @property
    def host(self) -> str:
        """Where they go."""
        ...

    async def send(self, sending: Sending, answer: Answer, sink: DeltaSink) -> None:
        """Make exactly one HTTP request and fill `answer`; put deltas into `sink` when it is streamed.

        Raises PodiumError (PROVIDER_FAILED, RATE_LIMITED, DEADLINE); what `answer` holds by then is what
        came. Cancelling closes the connection.
        """
        ...

    def discard(self) -> None:
        """Give up a call: before it is sent nothing leaves, afterwards nothing happens."""
        ...


class ProviderPort(Protocol):
    """Makes provider calls, in two steps: the log is told the bytes between them."""

    async def prepare(self, request: ProviderRequest) -> ProviderCall:
        """Put a call into the provider's words, sending nothing.

        Raises PodiumError (INVALID_REQUEST) naming a field that this provider cannot be asked for.
        """
        ...
