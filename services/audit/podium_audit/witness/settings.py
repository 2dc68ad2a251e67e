"""Everything a witness can be told, as environment variables `PODIUM_WITNESS_*`."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from podium_audit.tree.checkpoint import NoteVerifier, check_key_name, log_verifier
from podium_core.domain.errors import invalid
from podium_core.runtime.settings_base import ProcessSettings, check_listen, settings_config

_MAX_LOGS_BYTES = 1 << 20


def _check_name(value: str) -> str:
    check_key_name(value)
    return value


class WitnessSettings(ProcessSettings):
    """Witness: cosigns checkpoints of logs that it knows, and never two histories of one log."""

    model_config = settings_config("WITNESS")

    listen: Annotated[str, AfterValidator(check_listen)] = "127.0.0.1:7061"
    """host:port of the HTTP server that logs send their checkpoints to (C2SP tlog-witness)."""
    data_dir: Path
    """Directory of the witness's keys and of what it cosigned. Without it the witness needs another name."""
    name: Annotated[str, AfterValidator(_check_name)]
    """The name on its signature lines, such as witness.example.com/w1. It can never change for a key."""
    logs_file: Path
    """File with the verifier key of each log, a line each; two lines of one log while its key is changed. A
    change is taken up without a restart."""
    ml_dsa: bool = False
    """Cosign by ML-DSA-44 too, for records that must outlive Ed25519."""

    def logs(self) -> list[NoteVerifier]:
        """Return the keys of the logs it knows; raise PodiumError that names the line to mend."""
        try:
            text = self.logs_file.read_text() if self.logs_file.stat().st_size <= _MAX_LOGS_BYTES else None
        except (OSError, UnicodeDecodeError):
            text = None
        if text is None:
            raise invalid(f"cannot read {self.logs_file}: it must hold a log's verifier key on each line")
        keys: list[NoteVerifier] = []
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip() and not line.startswith("#"):
                try:
                    keys.append(log_verifier(line.strip()))
                except ValueError as error:
                    raise invalid(f"{self.logs_file}, line {number}: {error}") from None
        return keys

    def check(self) -> None:
        """Read the logs' keys."""
        super().check()
        if not self.logs():
            raise invalid(f"{self.logs_file} names no log")
