"""The runbook of docs/kubernetes.md, typed: a restored log proves that it continues the one backed up."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from podium_core.domain.errors import PodiumError
from tests.fakes.audit_service import RunningAudit, running_audit
from tests.fakes.postgres_server import find_binaries
from tests.fakes.runbook import commands, typed

if TYPE_CHECKING:
    from tests.fakes.postgres_server import PostgresServer

VERIFIED, FORKED = 0, 8


@dataclass(frozen=True, slots=True)
class Operator:
    """Somebody with a shell, the page, and a folder for backups."""

    folder: Path
    tls_dir: Path
    server: "PostgresServer"

    def databases(self) -> dict[str, Any]:
        return {"database_url": self.server.new_database(), "key_database_url": self.server.new_database()}

    def audit(self, databases: dict[str, Any], *, volume: str = "volume") -> Any:
        """A pod: keys from the same Secret whatever its databases, the newest checkpoint on a volume."""
        checkpoints = self.folder / volume
        checkpoints.mkdir(exist_ok=True)
        return running_audit(self.folder, self.tls_dir, **databases, checkpoint_dir=checkpoints)

    async def type(
        self, name: str, databases: dict[str, Any], audit: RunningAudit | None = None
    ) -> tuple[int, str]:
        named = {
            "LOG_OWNER_URL": databases["database_url"],
            "KEYS_OWNER_URL": databases["key_database_url"],
            "AUDIT_URL": "" if audit is None else audit.url,
            "AUDITOR_KEY": "" if audit is None else audit.tokens["auditor"],
        }
        return await typed(commands(name), self.folder, str(self.server.binaries), **named)

    async def back_up(self, databases: dict[str, Any], audit: RunningAudit) -> None:
        _, told = await audit.get("/v1/vkey")
        (self.folder / "log.vkey").write_text(told["vkey"] if isinstance(told, dict) else told.decode())
        assert (await self.type("backup", databases, audit))[0] == 0

    async def restored(self) -> dict[str, Any]:
        databases = self.databases()
        code, said = await self.type("restore", databases)
        assert code == 0, said
        return databases


@pytest.fixture
def operator(tmp_path: Path, tls_dir: Path, postgres: "PostgresServer") -> Operator:
    binaries = find_binaries()
    if binaries is None or not (binaries / "pg_dump").exists():
        pytest.skip("no pg_dump: install PostgreSQL's client programs")
    return Operator(tmp_path, tls_dir, postgres)


async def test_a_restored_log_proves_that_it_continues_the_one_backed_up(operator: Operator) -> None:
    databases = operator.databases()
    async with operator.audit(databases) as audit:
        await audit.run("run_1")
        await operator.back_up(databases, audit)
    restored = await operator.restored()
    async with operator.audit(restored) as audit:
        code, said = await operator.type("prove", restored, audit)
        assert (code, "run_1" in said) == (VERIFIED, True), said
        await audit.run("run_2")  # which goes on from there
        code, said = await operator.type("prove", restored, audit)
        assert (code, "run_2" in said) == (VERIFIED, True), said


@pytest.mark.slow
async def test_an_older_backup_is_refused_while_the_volume_is_there(operator: Operator) -> None:
    databases = operator.databases()
    async with operator.audit(databases) as audit:
        await audit.run("run_1")
        await operator.back_up(databases, audit)
        await audit.run("run_2")
    restored = await operator.restored()
    with pytest.raises(PodiumError, match=r"holds 5 leaves, but 1\d were signed"):
        async with operator.audit(restored):
            pass


@pytest.mark.slow
async def test_an_older_backup_is_told_by_the_checkpoint_outside(operator: Operator) -> None:
    databases = operator.databases()
    async with operator.audit(databases) as audit:
        await audit.run("run_1")
        await operator.back_up(databases, audit)
        dumps = {name: (operator.folder / name).read_bytes() for name in ("log.dump", "keys.dump")}
        await audit.run("run_2")
        await operator.back_up(databases, audit)  # a newer checkpoint; the newer dumps are lost
    for name, content in dumps.items():
        (operator.folder / name).write_bytes(content)
    restored = await operator.restored()
    async with operator.audit(restored, volume="a new one") as audit:
        await audit.run("run_3")
        code, said = await operator.type("prove", restored, audit)
        assert code != VERIFIED, said
        for number in range(4, 7):  # longer than what was lost, and still another history
            await audit.run(f"run_{number}")
        code, said = await operator.type("prove", restored, audit)
        assert code == FORKED, said
