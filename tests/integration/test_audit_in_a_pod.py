"""What audit meets in a pod: keys on a read-only Secret, the checkpoint elsewhere, tables changed by a job before."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from podium_audit import shut_log
from podium_audit.keys import CHECKPOINT_FILE, ENCRYPTION_KEY_FILE, FileSigner, init_keys
from podium_audit.tree.checkpoint import CheckpointSigner
from podium_core.domain.errors import PodiumError
from tests.fakes.audit_service import running_audit, settings_for


async def test_keys_from_a_secret_and_the_checkpoint_beside_the_data(tmp_path: Path, tls_dir: Path) -> None:
    secret, own = tmp_path / "secret", tmp_path / "own"
    init_keys(secret, log_exists=False)
    own.mkdir()
    before = sorted(file.name for file in secret.iterdir())
    async with running_audit(tmp_path, tls_dir, keys_dir=secret, checkpoint_dir=own) as audit:
        await audit.run("run_1")
    assert (own / CHECKPOINT_FILE).exists()
    assert sorted(file.name for file in secret.iterdir()) == before
    for file in (tmp_path / "data").glob("log.db*"):
        file.unlink()
    with pytest.raises(PodiumError, match="older copy"):
        async with running_audit(tmp_path, tls_dir, keys_dir=secret, checkpoint_dir=own):
            pass


async def test_a_checkpoint_elsewhere_keeps_new_keys_from_being_made(tmp_path: Path, tls_dir: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / CHECKPOINT_FILE).write_text("note")
    with pytest.raises(PodiumError, match="restore the keys"):
        async with running_audit(tmp_path, tls_dir, checkpoint_dir=own):
            pass


async def test_a_replica_that_slept_through_a_change_of_keys_knows_its_checkpoint(
    tmp_path: Path, tls_dir: Path
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    settings = settings_for(tmp_path, tls_dir, checkpoint_dir=own)
    async with running_audit(tmp_path, tls_dir, checkpoint_dir=own) as audit:
        await audit.run("run_1")
    slept = (own / CHECKPOINT_FILE).read_text()
    for _ in range(2):
        shut_log.rotate_key(settings)
    (own / CHECKPOINT_FILE).write_text(slept)
    async with running_audit(tmp_path, tls_dir, checkpoint_dir=own) as audit:
        await audit.run("run_2")
    stranger = CheckpointSigner(settings.origin, FileSigner(settings.keys / ENCRYPTION_KEY_FILE))
    (own / CHECKPOINT_FILE).write_text(stranger.sign(1, b"r" * 32))
    with pytest.raises(PodiumError, match="not one of this log"):
        async with running_audit(tmp_path, tls_dir, checkpoint_dir=own):
            pass
    (own / CHECKPOINT_FILE).write_text(slept)
    for file in (tmp_path / "data").glob("log.db*"):
        file.unlink()
    with pytest.raises(PodiumError):
        async with running_audit(tmp_path, tls_dir, checkpoint_dir=own):
            pass


def migrate(**variables: str) -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PODIUM_")}
    return subprocess.run(
        [sys.executable, "-m", "podium_audit", "migrate"],
        env={**environment, **{f"PODIUM_AUDIT_{name}": value for name, value in variables.items()}},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_job_makes_the_tables_and_may_run_again(database_url: str) -> None:
    for _ in range(2):
        done = migrate(DATABASE_URL=database_url)
        assert (done.returncode, done.stdout) == (0, "the log's tables are those of this version\n"), (
            done.stderr
        )


def test_the_job_says_what_it_lacks(tmp_path: Path) -> None:
    missing = migrate()
    assert missing.returncode == 2
    assert "PODIUM_AUDIT_DATABASE_URL" in missing.stderr
    away = migrate(DATABASE_URL=f"postgresql://podium@/podium?host={tmp_path}")
    assert away.returncode == 1
    assert "the tables cannot be changed" in away.stderr
