"""The demo provider's own record of what reached it, written before anything else happens."""

import json
from hashlib import sha256
from pathlib import Path
from typing import IO


class RequestLog:
    """Appends one JSON line per request to a file; without a path it keeps nothing."""

    def __init__(self, path: Path | None) -> None:
        self._file: IO[str] | None = None if path is None else path.open("a", encoding="utf-8")

    def write(self, *, time_ns: int, attempt_id: str, model: str, stream: bool, body: bytes) -> None:
        """Write one line and hand it to the operating system before returning."""
        if self._file is None:
            return
        line = {
            "time_ns": time_ns,
            "attempt_id": attempt_id,
            "model": model,
            "stream": stream,
            "body_sha256": sha256(body).hexdigest(),
        }
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
