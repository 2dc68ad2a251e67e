"""`make bench`: what Podium adds to a provider call, and how fast its log is, in one run on one machine."""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.critical_path import measure_critical_path
from benchmarks.load import Load, measure, rss_mib
from benchmarks.sealing import Sealing, measure_sealing
from tests.e2e.cluster import Cluster, free_ports, running

_SERIAL_COMMITS = 3  # opening, the one attempt's permit, seal
_BENCH_WORKER = """
  - id: bench
    provider: openai-compatible
    model: bench
    base_url: http://127.0.0.1:{port}/v1
    region: local
    price: {{input_usd_per_mtok: "0.10", output_usd_per_mtok: "0.20"}}
    limits: {{max_concurrency: 256, timeout_s: 30, context_tokens: 8192, max_output_tokens: 1024}}
"""
_BARS_MIB = {"gateway": 150, "audit": 100, "router": 120}


class Bench(Cluster):
    """A cluster with one fast worker more."""

    __slots__ = ("upstream_port",)

    def prepare(self) -> None:
        super().prepare()
        (self.upstream_port,) = free_ports(1)
        pool = self.home / "pool.yaml"
        pool.write_text(pool.read_text().rstrip() + "\n" + _BENCH_WORKER.format(port=self.upstream_port))


async def overhead(podium: Bench, seconds: float) -> list[Load]:
    """Measure the direct upstream and the same calls through Podium."""
    direct = f"http://127.0.0.1:{podium.upstream_port}/v1/chat/completions"
    through = f"{podium.gateway_url}/v1/chat/completions"
    pids = {name: process.pid for name, process in podium.processes.items() if name != "demo"}
    loads = []
    for stream in (False, True):
        for concurrency in (1, 16):
            shape = "stream of 50 deltas" if stream else "whole answer"
            messages = [{"role": "user", "content": "Say something of about fifty words."}]
            body = {"messages": messages, "stream": stream, "max_tokens": 100}
            for name, url, model, headers in (
                (f"direct, {shape}", direct, "bench", {}),
                (f"podium, {shape}", through, "worker/bench", podium.headers),
            ):
                data = json.dumps({**body, "model": model}).encode()
                loads.append(
                    await measure(
                        name, url, data, headers, concurrency=concurrency, seconds=seconds,
                        pids=pids if name.startswith("podium") else {},
                    )
                )  # fmt: skip
    return loads


def show_overhead(console: Console, loads: list[Load]) -> None:
    table = Table(title=f"One-worker run, audit on ({_SERIAL_COMMITS} serial commits)")
    for column in ("what", "at once", "p50 ms", "added ms", "p99 ms", "per s", "CPU ms per request"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for before, load in zip([None, *loads], loads, strict=False):
        added = f"{load.p50_ms - before.p50_ms:.2f}" if before and load.cpu_ms else ""
        each = " + ".join(f"{name} {value:.2f}" for name, value in load.cpu_ms.items())
        cpu = f"{sum(load.cpu_ms.values()):.2f} ({each})" if load.cpu_ms else ""
        table.add_row(
            load.name, str(load.concurrency), f"{load.p50_ms:.2f}", added, f"{load.p99_ms:.2f}",
            f"{load.per_second:.0f}", cpu,
        )  # fmt: skip
    console.print(table)


def show_sealing(console: Console, sealing: Sealing) -> None:
    table = Table(title="The log: sealed runs per second")
    for column in ("what", "runs/s", "share"):
        table.add_column(column, justify="left" if column == "what" else "right")
    table.add_row(
        f"same rows by multi-row INSERT, {sealing.batch_runs:.0f} runs a commit",
        f"{sealing.insert_per_s:.0f}",
        "1",
    )
    share = sealing.sealed_per_s / sealing.insert_per_s
    table.add_row(f"through gRPC, {sealing.at_once} at once", f"{sealing.sealed_per_s:.0f}", f"{share:.2f}")
    console.print(table)


def show_memory(console: Console, podium: Bench) -> None:
    table = Table(title="Resident memory after the load")
    for column in ("service", "MiB", "bar"):
        table.add_column(column, justify="left" if column == "service" else "right")
    for name, process in podium.processes.items():
        table.add_row(name, f"{rss_mib(process.pid):.0f}", str(_BARS_MIB.get(name, "")))
    console.print(table)


async def main(seconds: float) -> None:
    console = Console(width=150)
    with tempfile.TemporaryDirectory(prefix="podium-bench-") as home, running(Bench(Path(home))) as podium:
        assert isinstance(podium, Bench)
        upstream = subprocess.Popen([sys.executable, "-m", "benchmarks.upstream", str(podium.upstream_port)])
        try:
            await podium.wait_ready()
            show_overhead(console, await overhead(podium, seconds))
            path = await measure_critical_path(podium)
            console.print(
                f"Parallel plan (two steps of 1 s at once, then one): wall {path.wall_ms:.0f} ms"
                f" over a critical path of {path.critical_ms:.0f} ms = {path.wall_ms / path.critical_ms:.3f};"
                f" {path.commits} serial commits on it\n"
            )
            show_sealing(console, await measure_sealing(podium, seconds))
            show_memory(console, podium)
        finally:
            upstream.terminate()
            upstream.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="how long each load runs (default: 4)")
    uvloop.run(main(parser.parse_args().seconds))
