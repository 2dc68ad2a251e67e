"""A thousand streams open at once: do all of them end, and does memory stay flat meanwhile?"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import aiohttp

from benchmarks.load import rss_mib
from benchmarks.overhead import Subject
from benchmarks.report import Table

_TIMEOUT_S = 300.0
_SAMPLE_S = 1.0


@dataclass(slots=True)
class _Seen:
    done: int = 0
    refused: int = 0
    cut: int = 0
    open_now: int = 0
    most_open: int = 0
    rss: dict[str, list[float]] = field(default_factory=dict)


async def measure_open_streams(subject: Subject, count: int) -> Table:
    """Open `count` streams that live 20 s; return how they ended and what memory did meanwhile."""
    seen = _Seen()
    pids = subject.pids()
    sampling = asyncio.create_task(_sample(pids, seen, count))
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
    body = subject.body("bench-open", stream=True)
    try:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(
            connector=connector, headers=subject.headers, timeout=timeout
        ) as client:
            await asyncio.gather(*(_stream(client, subject.url, body, seen) for _ in range(count)))
    finally:
        sampling.cancel()
    rows = tuple(
        (
            name,
            f"{samples[0]:.0f}",
            f"{samples[len(samples) // 4]:.0f}",
            f"{samples[-1]:.0f}",
            f"{max(samples):.0f}",
        )
        for name, samples in seen.rss.items()
        if samples
    )
    note = (
        f"{seen.done} of {count} streams ended with `[DONE]`, {seen.refused} were refused, {seen.cut} cut;"
        f" at most {seen.most_open} were open at once."
    )
    columns = ("service", "RSS MiB, first", "after a quarter", "last", "most")
    return Table(
        f"{count} open streams, a delta every 400 ms for 20 s, through {subject.name}", columns, rows, note
    )


async def _stream(client: aiohttp.ClientSession, url: str, body: bytes, seen: _Seen) -> None:
    try:
        async with client.post(url, data=body, headers={"Content-Type": "application/json"}) as answer:
            if answer.status != 200:
                seen.refused += 1
                return
            seen.open_now += 1
            seen.most_open = max(seen.most_open, seen.open_now)
            tail = b""
            async for piece in answer.content.iter_any():
                tail = (tail + piece)[-64:]
            seen.open_now -= 1
            if b"[DONE]" in tail:
                seen.done += 1
            else:
                seen.cut += 1
    except (aiohttp.ClientError, TimeoutError):
        seen.cut += 1


async def _sample(pids: Mapping[str, int], seen: _Seen, count: int) -> None:
    while True:
        if seen.open_now >= count * 0.9:
            for name, pid in pids.items():
                seen.rss.setdefault(name, []).append(rss_mib(pid))
        await asyncio.sleep(_SAMPLE_S)
