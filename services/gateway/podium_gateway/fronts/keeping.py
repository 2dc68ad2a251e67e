"""An answer is paid for and sealed: its client gets it, even if nobody can read it again."""

import logging
from collections.abc import Awaitable

from podium_core.domain.errors import PodiumError

_log = logging.getLogger(__name__)


async def kept_or_logged(keeping: Awaitable[None], run_id: str) -> None:
    """Wait until an answer is kept; say in the log, and to nobody else, when it cannot be."""
    try:
        await keeping
    except PodiumError as error:
        _log.warning("an answer could not be stored", extra={"run_id": run_id, "reason": error.reason})
