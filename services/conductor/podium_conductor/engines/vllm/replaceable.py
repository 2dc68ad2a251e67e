"""Something in use by many that can be replaced at once: old users keep the old one until they are done."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar


class _Closable(Protocol):
    async def close(self) -> None: ...


T = TypeVar("T", bound=_Closable)


class _Held(Generic[T]):
    def __init__(self, value: T) -> None:
        self.value = value
        self.users = 0
        self.idle = asyncio.Event()
        self.idle.set()


class Replaceable(Generic[T]):
    """Holds the current value; a replaced one is closed when its last user has left."""

    def __init__(self, value: T) -> None:
        self._held = _Held(value)

    @property
    def current(self) -> T:
        """The value that new users get."""
        return self._held.value

    @contextmanager
    def use(self) -> Iterator[T]:
        """Give the current value and keep it open meanwhile."""
        held = self._held
        held.users += 1
        held.idle.clear()
        try:
            yield held.value
        finally:
            held.users -= 1
            if not held.users:
                held.idle.set()

    async def replace(self, value: T) -> None:
        """Give `value` to every new user from now on; return when the old one is closed."""
        old, self._held = self._held, _Held(value)
        await old.idle.wait()
        await old.value.close()

    async def close(self) -> None:
        """Close the current value."""
        await self._held.value.close()
