"""Anchors of a running log: witnesses, files that are written once, a time-stamping authority."""

import asyncio
import base64
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podium_audit.anchors import COSIGNATURE, FILE, TIME_STAMP
from podium_audit.ports import CheckpointRow
from podium_audit.proofs.anchoring import AnchorError
from podium_audit.proofs.checkpoint_files import FileAnchor
from podium_audit.proofs.time_stamps import TimeStampAnchor, load_roots
from podium_audit.tree.add_checkpoint import AddCheckpoint
from podium_audit.tree.checkpoint import Checkpoint
from podium_core.domain.errors import PodiumError
from podium_verifier import ExitCode, Verified, verify_export
from podium_verifier.trust import Trust
from tests.fakes.audit_service import RunningAudit, running_audit
from tests.fakes.authority import OPENSSL, authority
from tests.fakes.metrics import ReadableMeter
from tests.fakes.witnesses import running_witness

PATIENCE_S = 30


@asynccontextmanager
async def anchored_audit(home: Path, tls_dir: Path, **changes: Any) -> AsyncIterator[RunningAudit]:
    """An audit service whose places are asked."""
    async with running_audit(home, tls_dir, **changes) as audit:
        asking = asyncio.create_task(audit.audit.http.anchoring.run())
        try:
            yield audit
        finally:
            asking.cancel()
            await asyncio.wait([asking])


async def vkey_of(audit: RunningAudit) -> str:
    return str((await audit.get("/v1/vkey"))[1].decode().strip())


async def anchored(audit: RunningAudit, *kinds: str) -> dict[str, dict[str, Any]]:
    """Wait until the newest checkpoint is anchored in each of these ways."""
    size = int((await audit.get("/checkpoint"))[1].split(b"\n")[1])
    async with asyncio.timeout(PATIENCE_S):
        while True:
            rows = (await audit.get("/v1/anchors"))[1]["anchors"]
            found = {row["kind"]: row for row in rows if row["size"] >= size}
            if found.keys() >= set(kinds):
                return found
            await asyncio.sleep(0.02)


@pytest.fixture
async def vkey(tmp_path: Path, tls_dir: Path) -> str:
    """The key of a log with one run."""
    async with running_audit(tmp_path, tls_dir) as audit:
        await audit.run("run_1")
        return await vkey_of(audit)


async def test_witnesses_cosign_in_the_background_and_exports_show_it(
    tmp_path: Path, tls_dir: Path, vkey: str
) -> None:
    async with (
        running_witness(tmp_path / "w1", vkey) as first,
        running_witness(tmp_path / "w2", vkey) as second,
    ):
        (tmp_path / "witnesses").write_text(f"# two\n{first.policy}{second.policy}")
        changes = {"witnesses_file": tmp_path / "witnesses", "witness_interval_s": 0.05}
        async with anchored_audit(tmp_path, tls_dir, **changes) as audit:
            await audit.run("run_2")
            await anchored(audit, COSIGNATURE)
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    _, data = await audit.get("/v1/runs/run_2/export")
                    trust = Trust(vkey, witnesses=(*first.vkeys, *second.vkeys))
                    result = verify_export(data, trust=trust)
                    if isinstance(result, Verified):
                        break
                    assert result.code is ExitCode.WITNESSES
                    await asyncio.sleep(0.05)
            assert result.cosigned is not None
            assert len(result.cosigned.by) == 4
            rows = (await audit.get("/v1/anchors"))[1]["anchors"]
            assert len({row["name"] for row in rows}) == len(rows) == 4


async def test_a_witness_that_is_away_holds_nobody_up_and_is_asked_again(
    tmp_path: Path, tls_dir: Path, vkey: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_witness(tmp_path / "w1", vkey) as witness:
        away = witness.policy.replace(witness.url, "http://127.0.0.1:9")
        known = witness.vkeys[0]
        (tmp_path / "witnesses").write_text(away + witness.policy)
        changes = {"witnesses_file": tmp_path / "witnesses", "witness_interval_s": 0.05}
        async with anchored_audit(tmp_path, tls_dir, **changes) as audit:
            await audit.run("run_2")
            rows = await anchored(audit, COSIGNATURE)
            assert rows[COSIGNATURE]["name"] in (known, witness.vkeys[1])
        assert caplog.text.count("cannot be reached") <= 2, "one word for each that is away"


async def test_an_answer_that_was_lost_is_asked_for_again(tmp_path: Path, tls_dir: Path, vkey: str) -> None:
    async with running_witness(tmp_path / "w1", vkey) as witness:
        (tmp_path / "witnesses").write_text(witness.policy)
        changes: dict[str, Any] = {"witnesses_file": tmp_path / "witnesses", "witness_interval_s": 0.05}
        async with running_audit(tmp_path, tls_dir, **changes) as audit:
            note = (await audit.get("/checkpoint"))[1].decode()
            lost = witness.judge.add_checkpoint(AddCheckpoint(0, (), note).encode())
            assert lost.status == 200
            asking = asyncio.create_task(audit.audit.http.anchoring.run())
            rows = await anchored(audit, COSIGNATURE)
            assert rows[COSIGNATURE]["size"] == int(note.split("\n")[1])
            asking.cancel()
            await asyncio.wait([asking])


async def test_a_witness_that_saw_another_history_raises_the_alarm(
    tmp_path: Path, tls_dir: Path, vkey: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_witness(tmp_path / "w1", vkey) as witness:
        witness.judge.book.advance(Checkpoint("podium.local/audit", 3, bytes(32)), "", 0)
        (tmp_path / "witnesses").write_text(witness.policy)
        changes = {"witnesses_file": tmp_path / "witnesses", "witness_interval_s": 0.05}
        async with anchored_audit(tmp_path, tls_dir, **changes) as audit:
            async with asyncio.timeout(PATIENCE_S):
                while "does not continue" not in caplog.text:
                    await asyncio.sleep(0.02)
            assert (await audit.get("/v1/anchors"))[1]["anchors"] == []


async def test_operators_see_how_far_each_place_ties_the_log_down(
    tmp_path: Path, tls_dir: Path, vkey: str
) -> None:
    counted = ReadableMeter()
    async with (
        running_witness(tmp_path / "w1", vkey) as good,
        running_witness(tmp_path / "w2", vkey) as alarmed,
    ):
        alarmed.judge.book.advance(Checkpoint("podium.local/audit", 3, bytes(32)), "", 0)
        away = good.policy.replace(good.url, "http://127.0.0.1:9").splitlines()[1]
        (tmp_path / "witnesses").write_text(
            f"{good.policy.splitlines()[0]}\n{away}\n{alarmed.policy.splitlines()[0]}\n"
        )
        changes = {"witnesses_file": tmp_path / "witnesses", "witness_interval_s": 0.05}
        async with anchored_audit(tmp_path, tls_dir, meter=counted.meter, **changes) as audit:
            await audit.run("run_2")
            size = int((await audit.get("/checkpoint"))[1].split(b"\n")[1])
            places = ["+".join(vkey.split("+")[:2]) for vkey in (*good.vkeys, alarmed.vkeys[0])]
            label = [{"podium.anchor.kind": COSIGNATURE, "podium.anchor.place": place} for place in places]
            wanted = [(label[0], size), (label[1], 0), (label[2], 0)]
            async with asyncio.timeout(PATIENCE_S):
                while (
                    counted.points("podium.audit.anchored.size") != wanted
                    or len(failures := counted.points("podium.audit.anchor.failures")) < len(places) - 1
                ):
                    await asyncio.sleep(0.02)
    told = [labels for labels, _ in failures]
    assert {**label[1], "podium.anchor.failure": "unreached"} in told
    assert {**label[2], "podium.anchor.failure": "forked"} in told
    assert len(told) == 2
    assert all(key not in str(told) for key in good.vkeys), "a label is a name and a hash, no whole key"


async def test_checkpoints_are_written_once_to_a_directory(tmp_path: Path, tls_dir: Path, vkey: str) -> None:
    worm = tmp_path / "worm"
    worm.mkdir()
    changes = {"anchor_dir": worm, "anchor_interval_s": 0.05}
    async with anchored_audit(tmp_path, tls_dir, **changes) as audit:
        row = (await anchored(audit, FILE))[FILE]
        file = worm / base64.b64decode(row["data"]).decode()
        assert file.read_bytes() == (await audit.get("/checkpoint"))[1]
        assert file.stat().st_mode & 0o777 == 0o444
        place = FileAnchor(worm, "podium.local/audit", 1)
        same = CheckpointRow(row["size"], file.read_text())
        await place.anchor(same)
        with pytest.raises(AnchorError, match="another tree") as error:
            await place.anchor(same._replace(note=same.note.replace("\n", "\n\n", 1)))
        assert error.value.is_alarm
        with pytest.raises(AnchorError, match="cannot write"):
            await FileAnchor(worm / "absent", "o", 1).anchor(same)


@pytest.mark.skipif(OPENSSL is None, reason="needs openssl, which plays the authority")
async def test_an_authority_stamps_checkpoints_and_openssl_agrees(
    tmp_path: Path, tls_dir: Path, vkey: str
) -> None:
    async with authority(tmp_path / "tsa") as tsa:
        changes = {
            "time_stamp_url": tsa.url,
            "time_stamp_roots_file": tsa.roots_file,
            "anchor_interval_s": 0.05,
        }
        async with anchored_audit(tmp_path, tls_dir, **changes) as audit:
            row = (await anchored(audit, TIME_STAMP))[TIME_STAMP]
            (tmp_path / "note").write_bytes((await audit.get("/checkpoint"))[1])
            (tmp_path / "stamp.tsr").write_bytes(base64.b64decode(row["data"]))
        checked = subprocess.run(
            [str(OPENSSL), "ts", "-verify", "-in", str(tmp_path / "stamp.tsr"), "-data", str(tmp_path / "note"),
             "-CAfile", str(tsa.roots_file)],
            capture_output=True, check=False,
        )  # fmt: skip
        assert checked.returncode == 0, checked.stderr
        place = TimeStampAnchor(tsa.url, load_roots(tsa.roots_file), 1)
        tsa.is_lying = True
        with pytest.raises(AnchorError, match="not valid"):
            await place.anchor(CheckpointRow(1, "another note"))
        away = TimeStampAnchor("http://127.0.0.1:9/", place.roots, 1)
        with pytest.raises(AnchorError, match="cannot be reached"):
            await away.anchor(CheckpointRow(1, "note"))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"witnesses_file": "absent"}, "cannot read"),
        ({"witnesses_file": "bad"}, "line 1"),
        ({"anchor_dir": "absent"}, "is no directory"),
        ({"time_stamp_url": "http://127.0.0.1:9/"}, "time_stamp_roots_file"),
    ],
)
async def test_places_that_cannot_be_are_named_at_the_start(
    tmp_path: Path, tls_dir: Path, changes: dict[str, str], says: str
) -> None:
    (tmp_path / "bad").write_text("witness w1 nonsense http://127.0.0.1:1\n")
    values: dict[str, Any] = {
        name: value if name == "time_stamp_url" else tmp_path / value for name, value in changes.items()
    }
    with pytest.raises(PodiumError, match=says):
        async with running_audit(tmp_path, tls_dir, **values):
            pass
