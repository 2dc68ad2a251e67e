"""`make bench`: what Podium adds to a provider call, beside its peers, and the speed of its log."""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import uvloop
from rich.console import Console

from benchmarks.critical_path import measure_critical_path
from benchmarks.load import rss_mib
from benchmarks.open_streams import measure_open_streams
from benchmarks.overhead import SHAPES, Subject, measure_shape
from benchmarks.peers import Peer, litellm_proxy, portkey
from benchmarks.postgres_log import measure_postgres_log
from benchmarks.report import Report, Table
from benchmarks.sealing import Sealing, measure_sealing
from tests.e2e.cluster import Cluster, running
from tests.fakes.ports import free_ports

_SERIAL_COMMITS = 3  # opening, the one attempt's permit, seal
_BENCH_WORKER = """
  - id: {model}
    provider: openai-compatible
    model: {model}
    base_url: http://127.0.0.1:{port}/v1
    region: local
    price: {{input_usd_per_mtok: "0.10", output_usd_per_mtok: "0.20"}}
    limits: {{max_concurrency: 2048, timeout_s: 120, context_tokens: 8192, max_output_tokens: 1024}}
"""
_MODELS = ("bench", "bench-paced", "bench-open")
_BARS_MIB = {"gateway": 150, "audit": 100, "router": 120}
_PREFACE = """# Performance

Written by `{command}`; not edited by hand. Measured on {date} on {cores} cores of a shared machine
({machine}), Python {python}. Client, upstream and everything measured share these cores:
compare rows of one table, not tables of two runs. *Added* is against the upstream called directly at the same
concurrency. *CPU* is of all processes of what is measured, kernel time included.

Podium runs with everything on: authentication, mutual TLS between its services, durable records
({commits} serial commits for one step), telemetry not exported. {peers}
"""


class Bench(Cluster):
    """A cluster with fast workers more."""

    __slots__ = ("upstream_port",)

    def prepare(self) -> None:
        super().prepare()
        (self.upstream_port,) = free_ports(1)
        pool = self.home / "pool.yaml"
        workers = "".join(_BENCH_WORKER.format(model=model, port=self.upstream_port) for model in _MODELS)
        pool.write_text(pool.read_text().rstrip() + "\n" + workers)

    def pids(self) -> dict[str, int]:
        """The processes of Podium, without the demo provider."""
        return {name: process.pid for name, process in self.processes.items() if name != "demo"}


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure."""

    seconds: float
    streams: int
    with_peers: bool
    records: int
    page: Path | None


def sealing_table(sealing: Sealing) -> Table:
    share = sealing.sealed_per_s / sealing.insert_per_s
    return Table(
        "The log: sealed runs per second",
        ("what", "runs/s", "share"),
        (
            (f"same rows by multi-row INSERT, {sealing.batch_runs:.0f} runs a commit",
             f"{sealing.insert_per_s:.0f}", "1"),
            (f"through gRPC, {sealing.at_once} at once", f"{sealing.sealed_per_s:.0f}", f"{share:.2f}"),
        ),
    )  # fmt: skip


def memory_table(podium: Bench) -> Table:
    rows = tuple(
        (name, f"{rss_mib(pid):.0f}", str(_BARS_MIB.get(name, ""))) for name, pid in podium.pids().items()
    )
    return Table("Resident memory after the load", ("service", "MiB", "bar"), rows)


@contextmanager
def peers_running(console: Console, upstream_port: int, folder: Path) -> Iterator[list[Peer]]:
    """Start the peers that are installed; say which are not."""
    ports = free_ports(2)
    started: list[Peer] = []
    try:
        for peer in (litellm_proxy(ports[0], upstream_port, folder), portkey(ports[1], upstream_port)):
            if peer.missing:
                console.print(f"{peer.name}: {peer.missing}")
                continue
            with console.status(f"starting {peer.name}"):
                peer.start()
            started.append(peer)
        yield started
    finally:
        for peer in started:
            peer.stop()


async def against_peers(podium: Bench, report: Report, options: Options, folder: Path) -> str:
    """Measure what each gateway adds; return the sentence that names the peers."""
    upstream = f"http://127.0.0.1:{podium.upstream_port}/v1/chat/completions"
    through = f"{podium.gateway_url}/v1/chat/completions"
    subjects = [
        Subject("upstream alone", upstream, "{}", {}, dict),
        Subject("Podium", through, "worker/{}", podium.headers, podium.pids),
    ]
    named = "No peer was measured."
    if not options.with_peers:
        for shape in SHAPES:
            report.add(await measure_shape(report.console, shape, subjects, options.seconds))
        return named
    with peers_running(report.console, podium.upstream_port, folder) as peers:
        subjects += [Subject(peer.name, peer.url, "{}", peer.headers, peer.pids) for peer in peers]
        for shape in SHAPES:
            report.add(await measure_shape(report.console, shape, subjects, options.seconds))
        if peers:
            named = "Peers: " + ", ".join(f"{peer.name} {peer.version}" for peer in peers)
            named += ", one worker process each, key check on, nothing stored."
    return named


async def main(options: Options) -> None:
    report = Report(Console(width=170))
    settings = {"gateway": {"PODIUM_GATEWAY_MAX_CONCURRENT_RUNS": str(max(256, options.streams * 2))}}
    with (
        tempfile.TemporaryDirectory(prefix="podium-bench-") as home,
        running(Bench(Path(home), extra=settings)) as podium,
    ):
        assert isinstance(podium, Bench)
        upstream = subprocess.Popen([sys.executable, "-m", "benchmarks.upstream", str(podium.upstream_port)])
        try:
            await podium.wait_ready()
            named = await against_peers(podium, report, options, Path(home))
            path = await measure_critical_path(podium)
            report.add(path.table())
            report.add(sealing_table(await measure_sealing(podium, options.seconds)))
            report.add(memory_table(podium))
            on_postgres = await measure_postgres_log(options.seconds, options.records)
            if on_postgres is not None:
                report.add(on_postgres.table())
            if options.streams:
                through = f"{podium.gateway_url}/v1/chat/completions"
                subject = Subject("Podium", through, "worker/{}", podium.headers, podium.pids)
                report.add(await measure_open_streams(subject, options.streams))
        finally:
            upstream.terminate()
            upstream.wait()
    if options.page is not None:
        options.page.write_text(report.page(preface(named)))


def preface(peers: str) -> str:
    """Return the head of the page."""
    lines = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return _PREFACE.format(
        command="make performance",
        date=datetime.now(UTC).date().isoformat(),
        cores=len(os.sched_getaffinity(0)),
        machine=lines[0].partition(":")[2].strip() if lines else platform.machine(),
        python=platform.python_version(),
        commits=_SERIAL_COMMITS,
        peers=peers,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="how long each load runs (default: 4)")
    parser.add_argument("--streams", type=int, default=1000, help="open streams; 0: none (default: 1000)")
    parser.add_argument("--records", type=int, default=1_000_000, help="leaves of the log that is read")
    parser.add_argument("--no-peers", action="store_true", help="measure Podium and the upstream alone")
    parser.add_argument("--page", type=Path, help="write the tables to this Markdown file too")
    given = parser.parse_args()
    uvloop.run(main(Options(given.seconds, given.streams, not given.no_peers, given.records, given.page)))
