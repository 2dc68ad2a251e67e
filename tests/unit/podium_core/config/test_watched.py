"""A watched file: good versions are taken, bad ones change nothing."""

import asyncio
import logging
from pathlib import Path

import pytest

from podium_core.config.watched import Watched
from podium_core.domain.errors import PodiumError, invalid
from tests.fakes.waiting import PATIENCE_S


def _load(path: Path) -> int:
    try:
        return int(path.read_text())
    except (ValueError, OSError):
        raise invalid("number.txt line 1: no number") from None


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "number.txt"
    path.write_text("1")
    return path


def _replace(path: Path, text: str) -> None:
    """Write as mounted configuration changes: a new file takes the old one's name."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def test_a_new_version_is_taken_once(path: Path) -> None:
    heard: list[int] = []
    watched = Watched(path, _load, on_change=heard.append)
    assert (watched.current, watched.refresh()) == (1, False)
    _replace(path, "2")
    assert (watched.refresh(), watched.current) == (True, 2)
    assert watched.refresh() is False
    assert heard == [2]


def test_a_bad_or_missing_version_is_logged_once_and_changes_nothing(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    watched = Watched(path, _load)
    _replace(path, "two")
    assert [watched.refresh(), watched.refresh()] == [False, False]
    assert watched.current == 1
    path.unlink()
    assert watched.refresh() is False
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert errors == ["kept the last good version: number.txt line 1: no number"] * 2
    _replace(path, "3")
    assert (watched.refresh(), watched.current) == (True, 3)


def test_the_first_version_must_be_good(path: Path) -> None:
    path.write_text("one")
    with pytest.raises(PodiumError):
        Watched(path, _load)


async def test_it_looks_at_every_interval_until_cancelled(path: Path) -> None:
    slept: list[float] = []
    taken = asyncio.Event()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await asyncio.sleep(0)

    watched = Watched(path, _load, interval_s=2.5, on_change=lambda _: taken.set(), sleep=sleep)
    watching = asyncio.create_task(watched.watch())
    _replace(path, "2")
    await asyncio.wait_for(taken.wait(), PATIENCE_S)
    watching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watching
    assert set(slept) == {2.5}
