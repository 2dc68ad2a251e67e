"""What befalls the log itself: its key is changed, an old copy is restored. Both on record, and verified."""

import asyncio
import os
import shutil
import sys
from pathlib import Path

import pytest

from podium_audit import keys, shut_log
from podium_audit.assembly import open_log
from podium_audit.files import LOG_FILE, open_files
from podium_audit.proofs import history
from podium_audit.tree.checkpoint import CheckpointSigner
from podium_core.domain.clock import SystemClock
from podium_core.domain.errors import PodiumError
from podium_verifier import ExitCode, Fault, Verified, verify_export
from podium_verifier.trust import Trust
from tests.fakes.audit_service import RunningAudit, running_audit, settings_for


async def vkey_of(audit: RunningAudit) -> str:
    return str((await audit.get("/v1/vkey"))[1].decode().strip())


async def note_of(audit: RunningAudit) -> str:
    return str((await audit.get("/checkpoint"))[1].decode())


async def test_a_changed_key_is_followed_from_the_old_one(tmp_path: Path, tls_dir: Path) -> None:
    settings = settings_for(tmp_path, tls_dir)
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1")
        old, kept = await vkey_of(audit), await note_of(audit)
    new = shut_log.rotate_key(settings)
    third = shut_log.rotate_key(settings)
    assert len({old, new, third}) == 3
    assert not (settings.keys / keys.NEXT_SIGNING_KEY_FILE).exists()
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_2")
        assert await vkey_of(audit) == third
        size = kept.split("\n")[1]
        for run in ("run_1", "run_2"):
            _, data = await audit.get(f"/v1/runs/{run}/export?since={size}")
            for pinned in (old, new, third):
                result = verify_export(data, trust=Trust(pinned, kept=(kept,)))
                assert isinstance(result, Verified), result
                assert len(result.history.rotations) == 2
        stranger = CheckpointSigner(
            settings.origin, keys.FileSigner(settings.keys / keys.ENCRYPTION_KEY_FILE)
        )
        result = verify_export(data, stranger.vkey)
        assert isinstance(result, Fault)
        assert result.code is ExitCode.CHECKPOINT


@pytest.mark.parametrize("is_recorded", [False, True])
async def test_a_change_of_keys_that_broke_off_is_finished_or_dropped_at_the_start(
    tmp_path: Path, tls_dir: Path, is_recorded: bool
) -> None:
    settings = settings_for(tmp_path, tls_dir)
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1")
        old = await vkey_of(audit)
    keys.make_next_signing_key(settings.keys)
    following, former = keys.signers(settings.keys)
    assert former is not None
    new = CheckpointSigner(settings.origin, following)
    if is_recorded:
        files = open_files(settings)
        files.store.open()
        files.run_keys.open(files.store.last_key_no())
        log = open_log(files, settings, SystemClock())
        log.load()
        history.rotate(log, new, CheckpointSigner(settings.origin, former), log.state.size)
        files.close()
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_2")
        assert await vkey_of(audit) == (new.vkey if is_recorded else old)
        _, data = await audit.get("/v1/runs/run_2/export")
        assert isinstance(verify_export(data, old), Verified)
    assert not (settings.keys / keys.NEXT_SIGNING_KEY_FILE).exists()


async def test_an_old_copy_is_refused_until_the_loss_is_put_on_record(tmp_path: Path, tls_dir: Path) -> None:
    settings = settings_for(tmp_path, tls_dir)
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1")
        kept_size = int((await note_of(audit)).split("\n")[1])
    shutil.copytree(settings.data_dir, tmp_path / "backup")
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_2")
        lost_note = await note_of(audit)
        vkey = await vkey_of(audit)
    with pytest.raises(PodiumError, match="nothing to recover"):
        shut_log.recover(settings)
    for file in settings.data_dir.glob(LOG_FILE + "*"):
        file.unlink()
    for file in (tmp_path / "backup").glob(LOG_FILE + "*"):
        shutil.copy(file, settings.data_dir)
    with pytest.raises(PodiumError, match="podium-audit recover"):
        async with running_audit(tmp_path, tls_dir):
            pass
    lost_size = int(lost_note.split("\n")[1])
    assert shut_log.recover(settings) == (kept_size, lost_size)
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_3")
        _, data = await audit.get(f"/v1/runs/run_3/export?since={kept_size}")
        result = verify_export(data, vkey)
        assert isinstance(result, Verified)
        assert [(gap.index, gap.lost_size) for gap in result.history.gaps] == [(kept_size, lost_size)]
        fork = verify_export(data, trust=Trust(vkey, kept=(lost_note,)))
        while isinstance(fork, Fault) and fork.code is ExitCode.USAGE:  # the log has to outgrow what was lost
            await audit.run(f"run_{len(data)}")
            _, data = await audit.get("/v1/runs/run_3/export")
            fork = verify_export(data, trust=Trust(vkey, kept=(lost_note,)))
        assert isinstance(fork, Fault)
        assert (fork.code, fork.leaf_index) == (ExitCode.FORKED, kept_size)


async def test_nobody_else_writes_what_befell_the_log(tmp_path: Path, tls_dir: Path) -> None:
    async with running_audit(tmp_path, tls_dir) as audit:
        with pytest.raises(PodiumError, match=r"must not begin with audit\.history"):
            await audit.run("run_1", event_id="audit.history.7")
        assert (await audit.get("/v1/runs/run_1/export?since=99"))[0] == 404
        await audit.run("run_1")
        for since in ("99", "x", "-1"):
            assert (await audit.get(f"/v1/runs/run_1/export?since={since}"))[0] == 400


def test_losing_records_must_be_said_twice(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        shut_log.verb_of(["recover"])
    assert exit_.value.code == 2
    assert "--accept-loss" in capsys.readouterr().err
    assert shut_log.verb_of(["--help"]) is None
    assert shut_log.verb_of(["rotate-key"]) is not None


async def test_the_verbs_work_from_a_shell(tmp_path: Path, tls_dir: Path) -> None:
    settings = settings_for(tmp_path, tls_dir)
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1")
        old = await vkey_of(audit)
    names = ("tls_cert_file", "tls_key_file", "tls_ca_file", "data_dir", "keys_dir", "tenants_file")
    variables = {f"PODIUM_AUDIT_{name.upper()}": str(getattr(settings, name)) for name in names}

    async def perform(*words: str) -> tuple[int | None, str]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "podium_audit", *words, env={**os.environ, **variables},
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        said = (await process.communicate())[0].decode()
        return process.returncode, said

    code, said = await perform("rotate-key")
    assert (code, old in said, "podium.local/audit+" in said) == (0, False, True), said
    code, said = await perform("recover", "--accept-loss")
    assert (code, "nothing to recover" in said) == (1, True)
    assert (await perform("recover"))[0] == 2
    assert (await perform("rotate"))[0] == 2
    async with running_audit(tmp_path, tls_dir):
        code, said = await perform("rotate-key")
        assert (code, "is a service running on it?" in said) == (1, True), said
