"""Wall time of a parallel plan over its critical path."""

import time
from dataclasses import dataclass

import aiohttp

from benchmarks.report import Table
from tests.e2e.cluster import Cluster

_QUESTION = "What is 12*12, and how many days are there from 2026-01-01 to 2026-03-01? Then add both results."


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """Wall time as the client saw it, the longest chain of provider calls, and the commits on that chain."""

    wall_ms: float
    critical_ms: float
    commits: int

    def table(self) -> Table:
        """Return it as a table."""
        return Table(
            "A parallel plan: two steps of 1 s at once, then one that sees both",
            ("", "wall ms", "critical path ms", "ratio", "serial commits on it"),
            ((
                "Podium", f"{self.wall_ms:.0f}", f"{self.critical_ms:.0f}",
                f"{self.wall_ms / self.critical_ms:.3f}", str(self.commits),
            ),),
        )  # fmt: skip


async def measure_critical_path(podium: Cluster) -> CriticalPath:
    """Ask a question whose first two steps are independent, with workers that take a second each."""
    body = {"model": "podium", "messages": [{"role": "user", "content": _QUESTION}]}
    async with aiohttp.ClientSession() as session:
        for model in ("demo-arithmetic", "demo-dates"):
            fault = {"model": model, "kind": "delay", "seconds": 1.0, "count": 10}
            async with session.post(f"{podium.demo_url}/faults", json=fault) as answer:
                answer.raise_for_status()
        started = time.perf_counter()
        async with session.post(
            f"{podium.gateway_url}/v1/chat/completions", json=body, headers=podium.headers
        ) as answer:
            answer.raise_for_status()
            told = (await answer.json())["podium"]
        wall_ms = (time.perf_counter() - started) * 1e3
        async with session.delete(f"{podium.demo_url}/faults") as answer:
            answer.raise_for_status()
    took: list[float] = []
    depths: list[int] = []
    latency = {step["step"]: float(step["latency_ms"]) for step in told["steps"]}
    for index, step in enumerate(told["plan"]["steps"]):
        seen = step["access"]
        took.append(latency[index] + max((took[i] for i in seen), default=0.0))
        depths.append(1 + max((depths[i] for i in seen), default=0))
    return CriticalPath(wall_ms, max(took), 2 + max(depths))
