"""The shipped witness as a process: it serves, keeps what it cosigned, and says what is wrong with its settings."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import aiohttp

from podium_audit.tree.add_checkpoint import AddCheckpoint
from podium_audit.tree.checkpoint import CheckpointSigner
from podium_audit.tree.cosignatures import parse_witness
from podium_core.domain.merkle import leaf_hash
from tests.fakes.audit_store import FakeSigner
from tests.fakes.ports import free_ports

PATIENCE_S = 60


async def start(*words: str, **settings: str) -> asyncio.subprocess.Process:
    variables = {f"PODIUM_WITNESS_{name.upper()}": value for name, value in settings.items()}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "podium_audit.witness", *words,
        env={**os.environ, **variables},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip


async def until_it_answers(session: aiohttp.ClientSession, url: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                async with session.get(f"{url}/healthz") as answer:
                    assert answer.status == 200
                    return
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(0.05)


async def test_it_serves_until_it_is_told_to_stop_and_remembers(tmp_path: Path) -> None:
    signer = CheckpointSigner("podium.local/audit", FakeSigner())
    (tmp_path / "logs").write_text(signer.vkey + "\n")
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    settings = {
        "listen": f"127.0.0.1:{port}",
        "data_dir": str(tmp_path / "data"),
        "name": "witness.example/w1",
        "logs_file": str(tmp_path / "logs"),
    }
    asked = AddCheckpoint(0, (), signer.sign(1, leaf_hash(b"leaf"))).encode()
    async with aiohttp.ClientSession() as session:
        for status in (200, 409):
            process = await start(**settings)
            await until_it_answers(session, url)
            async with session.get(f"{url}/vkeys") as answer:
                assert parse_witness((await answer.text()).strip()).name == "witness.example/w1"
            async with session.post(f"{url}/add-checkpoint", data=asked) as answer:
                assert answer.status == status
            for path in ("/", "/add-checkpoint"):
                async with session.get(f"{url}{path}") as answer:
                    assert answer.status in (404, 405)
            async with session.post(f"{url}/add-checkpoint", data=b"x" * 70_000) as answer:
                assert answer.status == 413
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(PATIENCE_S):
                await process.communicate()
            assert process.returncode == 0


async def test_settings_that_cannot_be_are_named(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("nonsense\n")
    process = await start(
        "--check-config", data_dir=str(tmp_path), name="two words", logs_file=str(tmp_path / "logs")
    )
    _, said = await process.communicate()
    assert (process.returncode, b"PODIUM_WITNESS_NAME" in said) == (1, True)
    process = await start(
        "--check-config", data_dir=str(tmp_path), name="w", logs_file=str(tmp_path / "logs")
    )
    _, said = await process.communicate()
    assert (process.returncode, b"line 1" in said) == (1, True)
