"""Calls stay under the cap, are made once, and end in peace."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from podium_cli.calibrate.command import _advice
from podium_cli.calibrate.journal import Begun, Ended, Journal
from podium_cli.calibrate.measure import Asked, Measuring
from podium_cli.calibrate.plan import Choice, PlannedCall, calls_of, left_of
from podium_cli.calibrate.results import scores_of
from podium_cli.failures import CliError
from podium_core.config.pool import WorkerEntry
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.usage import Price, Usage
from tests.fakes.ids import CountingIds, FakeClock
from tests.fakes.pools import worker

SKILLS = ("mean", "reversal")
NOT_ALLOWED = PodiumError(Code.POLICY_DENIED, "no", reason="CALLER_NOT_ALLOWED")


def entry(worker_id: str, price: Price | None = Price(1_000_000, 2_000_000)) -> WorkerEntry:
    return WorkerEntry(worker(worker_id, price=price), "http://h/v1", {}, 5.0)


def calls(count: int = 5, *entries: WorkerEntry) -> list[PlannedCall]:
    return calls_of(Choice((), SKILLS, count, 1, 100), entries or (entry("w"),))


@dataclass
class FakeWorkers:
    """Answers right unless told otherwise; each answer costs what `cost` says."""

    cost: int = 50
    errors: list[PodiumError | None] = field(default_factory=list)
    answer: Callable[[PlannedCall], str] = lambda call: call.item.task.gold
    asked: list[PlannedCall] = field(default_factory=list)
    under_way: int = 0
    most: int = 0

    async def ask(self, run_id: str, call: PlannedCall) -> Asked:
        self.asked.append(call)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            return Asked("", Usage(), 0, 0, "", error)
        return Asked(self.answer(call), Usage(10, 20), self.cost, 500_000, "stop")


async def measure(
    port: FakeWorkers, journal: Journal, todo: list[PlannedCall], *, cap: int = 10**9, concurrency: int = 3
) -> Measuring:
    measuring = Measuring(
        port, journal, FakeClock(), CountingIds(), cap_usd_micros=cap, on_end=lambda _call, _ended: None
    )
    await measuring.run(left_of(todo, journal), concurrency)
    return measuring


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "log.jsonl"


@pytest.fixture
def reopen(log: Path) -> Iterator[Callable[[], Journal]]:
    """Open the log as another start would."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(Journal(log)))


@pytest.fixture
def journal(reopen: Callable[[], Journal]) -> Journal:
    return reopen()


async def test_all_are_asked_once_so_many_at_a_time(journal: Journal, reopen: Callable[[], Journal]) -> None:
    port, todo = FakeWorkers(), calls()
    assert (await measure(port, journal, todo)).stop is None
    assert (len(port.asked), port.most) == (10, 3)
    assert [c.item.skill for c in todo[:2]] == list(SKILLS)
    journal.close()

    again = reopen()
    await measure(port, again, todo)
    assert len(port.asked) == 10
    await measure(port, again, calls(6))
    assert len(port.asked) == 12
    score = scores_of(calls(6), again)["w"]
    assert (score.total.right, score.total.count, score.output_tokens_per_second) == (12, 12, 40)
    assert (score.cost_usd_micros, again.spent_usd_micros) == (600, 600)


async def test_the_cap_counts_the_most_that_calls_under_way_can_cost(journal: Journal) -> None:
    todo = calls()
    most = max(call.max_cost_usd_micros for call in todo)
    port = FakeWorkers(cost=most)
    measuring = await measure(port, journal, todo, cap=3 * most, concurrency=8)
    assert measuring.stop is not None
    assert measuring.stop.is_cap
    assert len(port.asked) == 3
    assert journal.spent_usd_micros <= 3 * most
    assert "higher --max-usd" in _advice(measuring.stop)


async def test_another_question_worker_or_limit_is_another_call(journal: Journal) -> None:
    port = FakeWorkers()
    await measure(port, journal, calls(1))
    for other in (
        calls_of(Choice((), SKILLS, 1, 2, 100), [entry("w")]),
        calls_of(Choice((), SKILLS, 1, 1, 50), [entry("w")]),
        calls(1, entry("v")),
    ):
        assert left_of(other, journal) == other


async def test_what_was_cut_short_counts_and_is_not_repeated(
    log: Path, journal: Journal, reopen: Callable[[], Journal]
) -> None:
    port, todo = FakeWorkers(), calls(1)
    journal.begin(todo[0].key, Begun("run_1", 700, 1))
    journal.close()
    with log.open("ab") as file:
        file.write(b'{"v":1,"event":"ended","wor')
    again = reopen()
    assert again.at_risk_usd_micros == 700
    await measure(port, again, todo)
    assert port.asked == todo[1:]
    assert scores_of(todo, again)["w"].lost == 1
    again.forget_lost()
    assert left_of(todo, again) == todo[:1]
    assert again.spent_usd_micros == 750


async def test_passing_failures_are_left_for_the_next_start(journal: Journal) -> None:
    port, todo = FakeWorkers(errors=[PodiumError(Code.UNAVAILABLE, "later")]), calls(1)
    assert (await measure(port, journal, todo)).stop is None
    assert left_of(todo, journal) == todo[:1]
    await measure(port, journal, todo)
    assert left_of(todo, journal) == []


async def test_failures_of_unpriced_workers_may_have_cost(journal: Journal) -> None:
    todo = calls(1, entry("w", price=None))
    port = FakeWorkers(errors=[PodiumError(Code.DEADLINE, "late")])
    await measure(port, journal, todo)
    assert left_of(todo, journal) == []
    assert scores_of(todo, journal)["w"].total.unscorable == 1


async def test_a_refusal_stops_at_once_and_says_what_to_change(journal: Journal) -> None:
    port = FakeWorkers(errors=[NOT_ALLOWED])
    measuring = await measure(port, journal, calls(), concurrency=1)
    assert len(port.asked) == 1
    assert measuring.stop is not None
    assert "PODIUM_ROUTER_ALLOW_CLI=true" in _advice(measuring.stop)


async def test_a_dead_provider_stops_after_ten_failures(journal: Journal) -> None:
    dead = PodiumError(Code.PROVIDER_FAILED, "down")
    port = FakeWorkers(errors=[dead] * 50)
    measuring = await measure(port, journal, calls(20), concurrency=1)
    assert measuring.stop is not None
    assert "10 calls in a row failed" in measuring.stop.reason
    assert len(port.asked) == 10


async def test_wrong_and_empty_answers_are_wrong(journal: Journal) -> None:
    port, todo = FakeWorkers(answer=lambda c: "" if c.item.index else "no idea"), calls(2)
    await measure(port, journal, todo)
    total = scores_of(todo, journal)["w"].total
    assert (total.right, total.count, total.unscorable) == (0, 4, 0)


async def test_an_interruption_ends_in_peace(journal: Journal) -> None:
    port = FakeWorkers()
    measuring = Measuring(
        port,
        journal,
        FakeClock(),
        CountingIds(),
        cap_usd_micros=10**9,
        on_end=lambda _call, _ended: measuring.interrupt(),
    )
    await measuring.run(calls(), 1)
    assert len(port.asked) == 1
    assert not journal.lost


def test_two_at_once_and_foreign_logs_are_refused(log: Path) -> None:
    first = Journal(log)
    with pytest.raises(CliError, match="another calibration"):
        Journal(log)
    first.close()
    for line in (b"{}\n", b"[1]\n", b'{"v":2}\n', b"nonsense\n", b"\xff\n"):
        log.write_bytes(line)
        with pytest.raises(CliError, match="line 1"):
            Journal(log)


@pytest.mark.parametrize(
    ("choice", "named"),
    [
        (Choice(("nobody",), (), 1, 1, 9), "nobody"),
        (Choice((), ("alchemy",), 1, 1, 9), "alchemy"),
        (Choice((), (), 0, 1, 9), "1 to 60"),
        (Choice((), (), 61, 1, 9), "1 to 60"),
    ],
)
def test_impossible_choices_are_refused(choice: Choice, named: str) -> None:
    with pytest.raises(CliError, match=named):
        calls_of(choice, [entry("w")])


def test_the_answer_is_never_longer_than_the_worker_may() -> None:
    (call, *_) = calls_of(Choice((), SKILLS, 1, 1, 9_999), [entry("w")])
    assert call.max_output_tokens == 100


def test_ended_lines_are_read_back_as_written(journal: Journal, reopen: Callable[[], Journal]) -> None:
    call = calls(1)[0]
    journal.begin(call.key, Begun("run_1", 9, 1))
    ended = Ended("run_1", "right", "", 5, 1, 2, 3, "stop", 4)
    journal.end(call.key, ended)
    journal.close()
    assert reopen().ended == {call.key: ended}
