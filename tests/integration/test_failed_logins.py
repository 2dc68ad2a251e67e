"""Keys that audit does not let in are on record: claimed by whom, how often, a bounded number of records, no secret."""

import asyncio
from contextlib import suppress
from pathlib import Path

from podium_audit.reading.failed_logins import FailedLogins
from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.ids import RandomIds
from tests.fakes.audit_service import running_audit
from tests.fakes.leaves import leaves_in
from tests.fakes.waiting import until

GUESSED = "podium_key1_" + "A" * 43


async def test_a_tenant_reads_who_tried_its_keys(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        for token in (GUESSED, GUESSED, GUESSED, "podium_nobody_" + "A" * 43, "x'; DROP TABLE leaves; --"):
            assert (await audit.get("/v1/runs", token))[0] == 401
        await audit.audit.http.failed_logins.record()
        (tried,) = [leaf for leaf in leaves_in(tmp_path, "read") if leaf["facts"]["action"] == "login_failed"]
        assert tried["tenant_id"] == "acme"
        assert (tried["facts"]["principal_id"], tried["facts"]["count"]) == ("key1", "3")
        (note,) = leaves_in(tmp_path, "note")
        assert note["facts"] == {"kind": "login_failed", "facts": {"count": "2"}}
        page = (await audit.get("/v1/reads", "auditor"))[1]
        assert [read["action"] for read in page["reads"]] == ["list_reads", "login_failed"]
        assert (await audit.get("/v1/reads", "officer3"))[1]["total"] == 1
        assert GUESSED not in (tmp_path / "data" / "log.db").read_bytes().decode("latin-1")


async def test_a_flood_is_one_record_and_then_one_a_minute(tmp_path: Path, tls_dir: Path) -> None:
    pauses: list[float] = []
    going_on = asyncio.Event()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await going_on.wait()

    async with running_audit(tmp_path, tls_dir) as audit:
        logins = FailedLogins(audit.audit.commit, RandomIds(SystemClock()), sleep)
        keeping = asyncio.create_task(logins.keep_recorded())
        logins.failed(("acme", "key1"))
        await until(lambda: len(leaves_in(tmp_path, "read")) == 1)
        for _ in range(1_000):
            logins.failed(("acme", "key1"))
        await asyncio.sleep(0)
        assert len(leaves_in(tmp_path, "read")) == 1
        going_on.set()
        await until(lambda: len(leaves_in(tmp_path, "read")) == 2)
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping
        assert [leaf["facts"]["count"] for leaf in leaves_in(tmp_path, "read")] == ["1", "1000"]
        assert set(pauses) == {60.0}


async def test_what_the_log_does_not_take_now_is_counted_further() -> None:
    taken: list[str] = []

    class Commit:
        is_away = True

        async def submit(self, command: object) -> None:
            if self.is_away:
                raise PodiumError(Code.AUDIT_UNAVAILABLE, "away")
            taken.append(command.facts["count"])  # type: ignore[attr-defined]

    commit = Commit()
    logins = FailedLogins(commit, RandomIds(SystemClock()))  # type: ignore[arg-type]
    logins.failed(("acme", "key1"))
    await logins.record()
    logins.failed(("acme", "key1"))
    commit.is_away = False
    await logins.record()
    await logins.record()
    assert taken == ["2"]
