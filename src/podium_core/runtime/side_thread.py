"""One thread beside the event loop for work on large bodies, so that nobody waits behind somebody's images.

One only: work in C holds the interpreter, so more threads would take it from the loop more often, not sooner.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_LARGE_BYTES = 256 * 1024
_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="large-bodies")


async def aside(size_bytes: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do `work`, in the side thread when it is about so many bytes that the loop would stand still."""
    if size_bytes < _LARGE_BYTES:
        return work(*args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_thread, lambda: work(*args, **kwargs))
