"""A witness on loopback: the shipped one's own application over real files."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from podium_audit.witness.__main__ import application, open_judge, refusal
from podium_audit.witness.judgement import Judge
from podium_audit.witness.settings import WitnessSettings
from podium_core.runtime.http_server import listen


@dataclass(frozen=True, slots=True)
class RunningWitness:
    """A witness that serves."""

    judge: Judge
    url: str

    @property
    def vkeys(self) -> list[str]:
        """Its keys."""
        return [cosigner.witness.vkey for cosigner in self.judge.cosigners]

    @property
    def policy(self) -> str:
        """The lines that tell audit of it."""
        return "".join(f"witness w{at} {vkey} {self.url}\n" for at, vkey in enumerate(self.vkeys))


def witness_settings(
    home: Path, *vkeys: str, name: str = "witness.example/w1", ml_dsa: bool = True
) -> WitnessSettings:
    """Return the settings of a witness that knows these logs."""
    home.mkdir(exist_ok=True)
    (home / "logs").write_text("# logs\n" + "".join(f"{vkey}\n" for vkey in vkeys))
    return WitnessSettings(data_dir=home / "data", name=name, logs_file=home / "logs", ml_dsa=ml_dsa)


@asynccontextmanager
async def running_witness(home: Path, *vkeys: str) -> AsyncIterator[RunningWitness]:
    """Serve until the block ends."""
    judge = open_judge(witness_settings(home, *vkeys))
    runner, port = await listen(application(judge), "127.0.0.1", 0, refuse=refusal)
    try:
        yield RunningWitness(judge, f"http://127.0.0.1:{port}")
    finally:
        await runner.cleanup()
        judge.book.close()
