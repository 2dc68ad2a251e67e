"""What a gateway adds to one provider call: the upstream alone, Podium and its peers, in the same run."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rich.console import Console

from benchmarks.load import Load, measure
from benchmarks.report import Table

_QUESTION = [{"role": "user", "content": "Say something of about fifty words."}]
CONCURRENCIES = (1, 16, 64)


@dataclass(frozen=True, slots=True)
class Subject:
    """Something that answers: its URL, how it calls the bench model, and its processes."""

    name: str
    url: str
    model: str
    headers: Mapping[str, str]
    pids: Callable[[], Mapping[str, int]]

    def body(self, model: str, *, stream: bool) -> bytes:
        """Return the request for the bench model `model`."""
        asked = {
            "model": self.model.format(model),
            "messages": _QUESTION,
            "stream": stream,
            "max_tokens": 100,
        }
        return json.dumps(asked).encode()


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of answer."""

    title: str
    model: str
    stream: bool


SHAPES = (
    Shape("Whole answers", "bench", stream=False),
    Shape("Streams of 50 deltas in a burst", "bench", stream=True),
    Shape("Streams of 50 deltas, one every 10 ms", "bench-paced", stream=True),
)


async def measure_shape(console: Console, shape: Shape, subjects: list[Subject], seconds: float) -> Table:
    """Measure every subject at each concurrency and return the table."""
    rows: list[tuple[str, ...]] = []
    for concurrency in CONCURRENCIES:
        direct: Load | None = None
        for subject in subjects:
            with console.status(f"{shape.title}: {subject.name}, {concurrency} at once"):
                load = await _load(subject, shape, concurrency, seconds)
            if isinstance(load, str):
                rows.append((subject.name, str(concurrency), "-", "-", "-", "-", load))
                continue
            direct = direct or load
            rows.append(_row(load, direct))
    return Table(
        shape.title, ("what", "at once", "p50 ms", "added ms", "p99 ms", "per s", "CPU ms each"), tuple(rows)
    )


async def _load(subject: Subject, shape: Shape, concurrency: int, seconds: float) -> Load | str:
    try:
        return await measure(
            subject.name, subject.url, subject.body(shape.model, stream=shape.stream), subject.headers,
            concurrency=concurrency, seconds=seconds, pids=subject.pids(),
        )  # fmt: skip
    except (RuntimeError, OSError) as error:
        return f"failed: {str(error)[:80]}"


def _row(load: Load, direct: Load) -> tuple[str, ...]:
    added = "" if load is direct else f"{load.p50_ms - direct.p50_ms:.2f}"
    cpu = ""
    if load.cpu_ms:
        parts = [f"{name} {value:.2f}" for name, value in load.cpu_ms.items() if value >= 0.005]
        cpu = f"{sum(load.cpu_ms.values()):.2f}" + (f" ({' + '.join(parts)})" if len(parts) > 1 else "")
    return (
        load.name, str(load.concurrency), f"{load.p50_ms:.2f}", added, f"{load.p99_ms:.2f}",
        f"{load.per_second:.0f}", cpu,
    )  # fmt: skip
