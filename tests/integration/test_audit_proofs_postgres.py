"""Proofs, anchors, a changed key and bundles where the log is in PostgreSQL and has several replicas."""

import asyncio
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from podium_audit import shut_log
from podium_audit.anchors import COSIGNATURE
from podium_core.domain.errors import PodiumError
from podium_verifier import Verified, verify_export
from podium_verifier.bundle import VerifiedBundle, verify_bundle
from podium_verifier.trust import Trust
from tests.fakes.audit_service import running_audit, settings_for
from tests.fakes.witnesses import running_witness
from tests.integration.test_audit_postgres import databases

if TYPE_CHECKING:
    from tests.fakes.postgres_server import PostgresServer

PATIENCE_S = 30


async def test_all_proofs_of_a_tenant_hold_under_row_level_security(
    tmp_path: Path, tls_dir: Path, postgres: "PostgresServer"
) -> None:
    named = databases(postgres)
    async with running_audit(tmp_path, tls_dir, **named) as audit:
        await audit.run("run_1")
        await audit.run("foreign", tenant_id="other", principal_id="key3")
        await audit.run("run_2")
        vkey = (await audit.get("/v1/vkey"))[1].decode().strip()
        day = datetime.now(UTC)
        time = f"from={day - timedelta(days=1):%Y-%m-%d}&to={day + timedelta(days=1):%Y-%m-%d}"
        status, data = await audit.get(f"/v1/bundle?{time}", "auditor")
        assert status == 200, data
        bundle = verify_bundle(data, Trust(vkey))
        assert isinstance(bundle, VerifiedBundle), bundle
        assert [run.header.run_id for run in bundle.runs] == ["run_1", "run_2"]
        assert (await audit.get("/v1/consistency?from=3", "key1"))[0] == 200
        assert (await audit.get("/tile/0/000.p/5", "examiner"))[0] == 200
        status, leaves = await audit.get("/tile/entries/000.p/12", "examiner")
        assert (status, b'"foreign"' in leaves) == (200, True)
    new = shut_log.rotate_key(settings_for(tmp_path, tls_dir, **named))
    async with running_audit(tmp_path, tls_dir, **named) as audit:
        await audit.run("run_3")
        _, data = await audit.get("/v1/runs/run_3/export")
        for pinned in (vkey, new):
            result = verify_export(data, pinned)
            assert isinstance(result, Verified), result
            assert len(result.history.rotations) == 1


async def test_a_replica_with_the_old_key_commits_nothing_after_a_change(
    tmp_path: Path, tls_dir: Path, postgres: "PostgresServer"
) -> None:
    named = databases(postgres)
    async with running_audit(tmp_path, tls_dir, **named) as old:
        await old.run("run_1")
        shutil.copytree(tmp_path / "keys", tmp_path / "new-keys")
        elsewhere = settings_for(tmp_path, tls_dir, **named, keys_dir=tmp_path / "new-keys")
        shut_log.rotate_key(elsewhere)
        with pytest.raises(PodiumError, match="cannot commit"):
            await old.run("run_2")


async def test_a_witness_asked_by_one_replica_is_shown_by_the_other(
    tmp_path: Path, tls_dir: Path, postgres: "PostgresServer"
) -> None:
    named = databases(postgres)
    async with running_audit(tmp_path, tls_dir, **named) as audit:
        await audit.run("run_1")
        vkey = (await audit.get("/v1/vkey"))[1].decode().strip()
    async with running_witness(tmp_path / "w", vkey) as witness:
        (tmp_path / "witnesses").write_text(witness.policy)
        asks = {**named, "witnesses_file": tmp_path / "witnesses", "witness_interval_s": 0.05}
        async with (
            running_audit(tmp_path, tls_dir, **asks) as first,
            running_audit(tmp_path, tls_dir, **named) as second,
        ):
            asking = asyncio.create_task(first.audit.http.anchoring.run())
            async with asyncio.timeout(PATIENCE_S):
                while len((await second.get("/v1/anchors"))[1]["anchors"]) < 2:
                    await asyncio.sleep(0.02)
            rows = (await second.get("/v1/anchors"))[1]["anchors"]
            assert {row["kind"] for row in rows} == {COSIGNATURE}
            _, data = await second.get("/v1/runs/run_1/export")
            asking.cancel()
            await asyncio.wait([asking])
        result = verify_export(data, trust=Trust(vkey, witnesses=tuple(witness.vkeys)))
        assert isinstance(result, Verified), result
