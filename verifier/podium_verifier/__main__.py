"""`python -m podium_verifier FILE [--key VKEY|FILE]`: the command, and its exit codes."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from podium_verifier.faults import ExitCode, Fault, printable
from podium_verifier.summary import render
from podium_verifier.verify import verify_export

MAX_EXPORT_BYTES = 1 << 30
_KEY_FILE_BYTES = 4096

EXIT_CODES = """exit codes:
  0  verified
  1  the command line or a file could not be read
  2  the file is not a well-formed export
  3  the checkpoint is not signed by the log key
  4  a leaf is not in the log
  5  content does not match its commitment
  6  the run is incomplete or out of order
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Verify one export file and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="podium_verifier",
        description="Check an exported Podium run, offline.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        exit_on_error=False,
    )
    parser.add_argument("file", type=Path, help="the export, <run id>.podium.jsonl")
    parser.add_argument("--key", metavar="VKEY|FILE", help="the log key you trust, or a file that holds it")
    try:
        arguments = parser.parse_args(argv)
    except (argparse.ArgumentError, SystemExit) as error:
        if isinstance(error, SystemExit) and not error.code:
            return ExitCode.OK
        sys.stderr.write(f"{error}\n" if isinstance(error, argparse.ArgumentError) else "")
        return ExitCode.USAGE
    return verify_file(arguments.file, arguments.key)


def verify_file(file: Path, key: str | None) -> int:
    """Verify `file` against `key` (a vkey, a file that holds one, or None) and return the exit code."""
    try:
        vkey = None if key is None else _resolve_key(key)
    except (OSError, ValueError):
        sys.stderr.write(
            f"cannot read the log key: {printable(key or '')} is neither a key nor a key's file\n"
        )
        return ExitCode.USAGE
    try:
        data = _read(file, MAX_EXPORT_BYTES)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        sys.stderr.write(f"cannot read {printable(str(file))}: {why}\n")
        return ExitCode.USAGE
    result = verify_export(data, vkey)
    if isinstance(result, Fault):
        sys.stderr.write(f"NOT VERIFIED (exit code {result.code:d})\n  {result}\n")
        return result.code
    sys.stdout.write(render(result))
    return ExitCode.OK


def _read(file: Path, limit: int) -> bytes:
    with file.open("rb") as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"it is over {limit} bytes")
    return data


def _resolve_key(key: str) -> str:
    """Return the vkey itself: a vkey holds two pluses, anything else names a file."""
    if key.count("+") >= 2 and not Path(key).is_file():  # noqa: PLR2004 - name, id, key
        return key
    return _read(Path(key), _KEY_FILE_BYTES).decode().strip()


if __name__ == "__main__":
    sys.exit(main())
