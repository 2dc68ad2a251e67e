"""The log's leaves, read straight from the database, past the service."""

import asyncio
import json
from contextlib import closing
from pathlib import Path
from sqlite3 import connect
from typing import Any

Leaf = dict[str, Any]


def leaves_in(home: Path, *kinds: str) -> list[Leaf]:
    """Return the leaves of these kinds, or all, of the audit service that keeps its files in `home`."""
    (path,) = (home / "data").glob("log*.db")
    with closing(connect(f"file:{path}?mode=ro", uri=True)) as database:
        rows = database.execute("SELECT data FROM leaves ORDER BY leaf_index").fetchall()
    leaves = [json.loads(row[0]) for row in rows]
    return [leaf for leaf in leaves if not kinds or leaf["type"] in kinds]


async def seals_in(home: Path, count: int, timeout_s: float = 10.0) -> list[Leaf]:
    """Wait until so many runs are sealed and return the facts of their seals."""
    async with asyncio.timeout(timeout_s):
        while len(found := leaves_in(home, "sealed")) < count:
            await asyncio.sleep(0.05)
    return [leaf["facts"] for leaf in found]


async def end_of(home: Path, attempt_id: str, timeout_s: float = 5.0) -> Leaf:
    """Wait for the record of an attempt's end and return its facts."""
    async with asyncio.timeout(timeout_s):
        while True:
            for leaf in leaves_in(home, "attempt_ended", "attempt_late"):
                if leaf["facts"]["attempt_id"] == attempt_id:
                    facts: Leaf = leaf["facts"]
                    return facts
            await asyncio.sleep(0.05)
