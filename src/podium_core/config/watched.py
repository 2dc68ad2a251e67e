"""A file that may change while the service runs: the last good version stays in force."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from enum import StrEnum
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from podium_core.domain.errors import PodiumError
from podium_core.file_stamp import stamp_of

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_log = logging.getLogger(__name__)
_INTERVAL_S = 1.0


class Look(StrEnum):
    """What a look at a source came to."""

    TAKEN = "taken"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"


OnLook = Callable[[str, Look], None]
"""Hears of each new version of a file or a kind of objects, by name, and of each look that failed."""


class Source(Protocol[T_co]):
    """A value that may change while the service runs; the last good version stays in force."""

    @property
    def current(self) -> T_co:
        """The newest good value."""
        ...

    def fresh(self) -> T_co:
        """Return the newest good value as of this call."""
        ...

    async def watch(self) -> None:
        """Keep up with changes until cancelled."""
        ...


class Watched(Generic[T]):
    """The value that `load` makes of `path`, read again when the file changes.

    The first load happens at once and raises PodiumError; a later bad file is logged with what is wrong
    and changes nothing. `on_change` hears of each new value, `on_look` of each new version.
    """

    def __init__(
        self,
        path: Path,
        load: Callable[[Path], T],
        *,
        interval_s: float = _INTERVAL_S,
        on_change: Callable[[T], None] | None = None,
        on_look: OnLook | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._path = path
        self._load = load
        self._interval_s = interval_s
        self._on_change = on_change
        self._on_look = on_look
        self._sleep = sleep
        # The stamp is taken before the content: a change in between is seen as a change later.
        self._stamp = stamp_of(path)
        self._current = load(path)

    @property
    def current(self) -> T:
        """The newest good value."""
        return self._current

    def fresh(self) -> T:
        """Look at the file now, then return the newest good value: a change counts from this call on."""
        self.refresh()
        return self._current

    async def watch(self) -> None:
        """Look at the file every `interval_s` seconds until cancelled."""
        while True:
            await self._sleep(self._interval_s)
            self.refresh()

    def refresh(self) -> bool:
        """Look at the file now; say whether a new good value was taken."""
        stamp = stamp_of(self._path)
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        try:
            value = self._load(self._path)
        except PodiumError as error:
            _log.error("kept the last good version: %s", error.message, extra={"file": self._path.name})
            self._looked(Look.REFUSED)
            return False
        self._current = value
        _log.info("read a new version", extra={"file": self._path.name})
        self._looked(Look.TAKEN)
        if self._on_change is not None:
            self._on_change(value)
        return True

    def _looked(self, look: Look) -> None:
        if self._on_look is not None:
            self._on_look(self._path.name, look)
