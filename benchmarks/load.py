"""A closed-loop client: one request in flight per connection, latencies and CPU of each process."""

import asyncio
import os
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import aiohttp

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Load:
    """What one run of the load measured. Milliseconds; CPU per request by process name."""

    name: str
    concurrency: int
    count: int
    p50_ms: float
    p99_ms: float
    per_second: float
    cpu_ms: Mapping[str, float]


def cpu_seconds(pid: int) -> float:
    """Return the CPU time a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def rss_mib(pid: int) -> float:
    """Return a process's resident memory."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


async def measure(
    name: str,
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    concurrency: int,
    seconds: float,
    pids: Mapping[str, int],
) -> Load:
    """Send `body` again and again for `seconds`, after a warm-up of half a second."""
    latencies: list[float] = []
    connector = aiohttp.TCPConnector(limit=concurrency)
    sent = {"Content-Type": "application/json", **headers}
    async with aiohttp.ClientSession(connector=connector, headers=sent) as session:

        async def client(until: float, into: list[float]) -> None:
            while (started := time.perf_counter()) < until:
                async with session.post(url, data=body) as answer:
                    text = await answer.read()
                    if answer.status != 200:
                        raise RuntimeError(f"{name}: {answer.status} {text[:200]!r}")
                into.append(time.perf_counter() - started)

        await _all(client, concurrency, 0.5, [])
        before = {process: cpu_seconds(pid) for process, pid in pids.items()}
        started = time.perf_counter()
        await _all(client, concurrency, seconds, latencies)
        elapsed = time.perf_counter() - started
        after = {process: cpu_seconds(pid) for process, pid in pids.items()}
    count = len(latencies)
    if not count:
        raise RuntimeError(f"{name}: nothing was answered within {seconds} s, {concurrency} at once")
    ordered = sorted(latencies)
    return Load(
        name,
        concurrency,
        count,
        statistics.median(ordered) * 1e3,
        ordered[min(count - 1, int(count * 0.99))] * 1e3,
        count / elapsed,
        {process: (after[process] - before[process]) / count * 1e3 for process in pids},
    )


async def _all(client, concurrency: int, seconds: float, into: list[float]) -> None:  # type: ignore[no-untyped-def]
    until = time.perf_counter() + seconds
    await asyncio.gather(*(client(until, into) for _ in range(concurrency)))
