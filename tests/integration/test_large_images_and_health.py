"""A complaint about other gateways: images in parallel, and the health check hangs until all are done."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from tests.fakes.gateway_process import gateway_process
from tests.fakes.stack import running_stack
from tests.fakes.waiting import PATIENCE_S

_ANSWERS = 40
"""At least so many health checks are answered meanwhile; here 300 are. Kept waiting for an image each, or for
all of them, it would be ten or one. How long each takes is `make bench`'s to print.
"""

_SEES: dict[str, dict[str, Any]] = {"w": {"modalities": ["text", "image"]}}


async def crowd(port: int, key: str) -> tuple[list[int], int]:
    """Let the crowd in; return its statuses, and how many health checks were answered meanwhile."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.fakes.image_crowd", str(port), key, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await asyncio.wait_for(process.communicate(), 2 * PATIENCE_S)
    told = json.loads(out)
    return told["statuses"], told["answers"]


async def test_health_is_answered_at_once_while_ten_large_images_are_in_flight(
    tls_dir: Path, tmp_path: Path
) -> None:
    async with (
        running_stack(tls_dir, tmp_path, workers=_SEES) as stack,
        gateway_process(stack, tls_dir, tmp_path) as (port, _),
    ):
        statuses, answers = await crowd(port, stack.audit.tokens["key1"])
    assert statuses == [200] * 10
    assert answers >= _ANSWERS
