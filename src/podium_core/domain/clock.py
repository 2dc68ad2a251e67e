"""Time as a dependency: every service builds one `Clock` in its `__main__` and passes it down."""

import time
from typing import Protocol


class Clock(Protocol):
    """Reads time. Read it once per operation and pass the value on."""

    def now_ns(self) -> int:
        """Return nanoseconds since the Unix epoch, UTC."""
        ...

    def monotonic_ns(self) -> int:
        """Return nanoseconds that never go backwards; only differences mean something."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ns(self) -> int:
        """Return nanoseconds since the Unix epoch, UTC."""
        return time.time_ns()  # noqa: TID251 - the one place that reads it

    def monotonic_ns(self) -> int:
        """Return the machine's monotonic nanoseconds."""
        return time.monotonic_ns()
