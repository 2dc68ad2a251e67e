"""Leases: renewed or lost."""

from podium_audit.leases import Leases
from tests.fakes.ids import FakeClock


def made() -> tuple[Leases, FakeClock]:
    clock = FakeClock()
    return Leases(clock, default_ms=10_000, max_ms=30_000), clock


def test_a_lease_lives_until_its_end() -> None:
    leases, clock = made()
    leases.start("run", 2_000)
    clock.advance(1.999)
    assert leases.is_alive("run")
    assert leases.lapsed() == []
    clock.advance(0.001)
    assert not leases.is_alive("run")
    assert leases.lapsed() == ["run"]


def test_renewal_names_what_is_lost() -> None:
    leases, clock = made()
    leases.start("live")
    leases.start("lapsed", 1_000)
    leases.start("sealed")
    leases.end("sealed")
    clock.advance(5)
    assert leases.renew(["live", "lapsed", "sealed", "unknown"], 8_000) == ["lapsed", "sealed", "unknown"]
    clock.advance(7)
    assert leases.is_alive("live")


def test_a_lease_is_never_longer_than_allowed() -> None:
    leases, clock = made()
    leases.start("run", 10**12)
    clock.advance(30)
    assert leases.lapsed() == ["run"]


def test_after_a_restart_open_runs_get_one_fresh_lease() -> None:
    leases, clock = made()
    leases.start("old", 1_000)
    leases.start("gone")
    leases.keep_only(["old", "new"])
    assert len(leases) == 2
    clock.advance(1)
    assert leases.lapsed() == ["old"]
    clock.advance(9)
    assert leases.lapsed() == ["old", "new"]


def test_extending_never_shortens_and_never_revives() -> None:
    leases, clock = made()
    leases.start("run", 20_000)
    leases.extend("run", 1_000)
    leases.extend("unknown", 1_000)
    clock.advance(19)
    assert leases.is_alive("run")
    leases.extend("run", 5_000)
    clock.advance(4)
    assert leases.is_alive("run")
    assert len(leases) == 1
