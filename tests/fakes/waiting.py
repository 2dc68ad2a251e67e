"""How long tests wait. A bound here fails for a defect, never for a machine that is busy for seconds.

What Podium promises "within a second" is shown by order or outcome where that can be, else by a ceiling: the
peer stalls for `STALL_S`, and what is promised happens within `SOON_S`. Timings are `make bench`'s to print.
"""

import asyncio
from collections.abc import Callable

PATIENCE_S = 60.0
"""For what must happen at some time: only a defect uses it up."""

STALL_S = 120.0
"""How long a peer keeps still that nobody may wait for. A broken promise measures this."""

SOON_S = 20.0
"""The ceiling for what is promised at once, or within a second, beside a peer that stalls for `STALL_S`."""

_LOOK_S = 0.005


async def until(condition: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """Return when `condition` holds; raises TimeoutError when patience ends before."""
    async with asyncio.timeout(patience_s):
        while not condition():
            await asyncio.sleep(_LOOK_S)
