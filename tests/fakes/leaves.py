"""The log's leaves, read straight from the database, past the service."""

import json
from contextlib import closing
from pathlib import Path
from sqlite3 import connect
from typing import Any

from tests.fakes.waiting import until

Leaf = dict[str, Any]


def leaves_in(home: Path, *kinds: str) -> list[Leaf]:
    """Return the leaves of these kinds, or all, of the audit service that keeps its files in `home`."""
    (path,) = (home / "data").glob("log*.db")
    with closing(connect(f"file:{path}?mode=ro", uri=True)) as database:
        rows = database.execute("SELECT data FROM leaves ORDER BY leaf_index").fetchall()
    leaves = [json.loads(row[0]) for row in rows]
    return [leaf for leaf in leaves if not kinds or leaf["type"] in kinds]


async def seals_in(home: Path, count: int) -> list[Leaf]:
    """Wait until so many runs are sealed and return the facts of their seals."""
    await until(lambda: len(leaves_in(home, "sealed")) >= count)
    return [leaf["facts"] for leaf in leaves_in(home, "sealed")]


async def end_of(home: Path, attempt_id: str) -> Leaf:
    """Wait for the record of an attempt's end and return its facts."""

    def ends() -> list[Leaf]:
        facts = [leaf["facts"] for leaf in leaves_in(home, "attempt_ended", "attempt_late")]
        return [end for end in facts if end["attempt_id"] == attempt_id]

    await until(ends)
    return ends()[0]
