"""`python -m podium_verifier FILE [--key VKEY|FILE] …`: the command, and its exit codes."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from podium_verifier.bundle import VerifiedBundle, is_bundle, verify_bundle
from podium_verifier.faults import ExitCode, Fault, printable
from podium_verifier.summary import render, render_bundle
from podium_verifier.trust import Trust
from podium_verifier.verify import verify_export

MAX_EXPORT_BYTES = 1 << 30
_KEY_FILE_BYTES = 4096
_NOTE_BYTES = 64 * 1024

EXIT_CODES = """exit codes:
   0  verified
   1  the command line or a file could not be read
   2  the file is not a well-formed export
   3  the checkpoint is not signed by the log key
   4  a leaf is not in the log: it was changed, if only in one byte
   5  content does not match its commitment
   6  the run's records are incomplete or contradict each other
   7  the tail is missing, of the file or of the run
   8  the log forked: another history was signed too
   9  an attempt began before the plan or verdict that permits it
  10  verified, but the content was erased: the leaf that says so is named
  11  too few witnesses cosigned
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line gives beside the file: keys and checkpoints, each as text or as a file's name."""

    key: str | None = None
    checkpoints: Sequence[Path] = ()
    witnesses: Sequence[str] = ()
    quorum: int | None = None


def add_trust_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what the reader trusts."""
    parser.add_argument("--key", metavar="VKEY|FILE", help="the log key you trust, or a file that holds it")
    parser.add_argument(
        "--checkpoint",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a checkpoint of the log that you kept: the export's must continue it",
    )
    parser.add_argument(
        "--witness", action="append", default=[], metavar="VKEY|FILE", help="a witness's key; may be repeated"
    )
    parser.add_argument("--quorum", type=int, metavar="K", help="how many witnesses must have cosigned: all")


def main(argv: Sequence[str] | None = None) -> int:
    """Verify one export file and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="podium_verifier",
        description="Check an exported Podium run, offline.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        exit_on_error=False,
    )
    parser.add_argument("file", type=Path, help="an export, <run id>.podium.jsonl, or a bundle, .zip")
    add_trust_arguments(parser)
    try:
        arguments = parser.parse_args(argv)
    except (argparse.ArgumentError, SystemExit) as error:
        if isinstance(error, SystemExit) and not error.code:
            return ExitCode.OK
        sys.stderr.write(f"{error}\n" if isinstance(error, argparse.ArgumentError) else "")
        return ExitCode.USAGE
    return verify_file(arguments.file, asked_of(arguments))


def asked_of(arguments: argparse.Namespace) -> Asked:
    """Return what the options of `add_trust_arguments` say."""
    return Asked(arguments.key, arguments.checkpoint, arguments.witness, arguments.quorum)


def verify_file(file: Path, asked: Asked) -> int:
    """Verify `file` against what the reader trusts and return the exit code."""
    trust = _trust(asked)
    if trust is None:
        return ExitCode.USAGE
    try:
        data = _read(file, MAX_EXPORT_BYTES)
    except (OSError, ValueError) as error:
        return _cannot_read(str(file), error)
    result = verify_bundle(data, trust) if is_bundle(data) else verify_export(data, trust=trust)
    if isinstance(result, Fault):
        sys.stderr.write(f"NOT VERIFIED (exit code {result.code:d})\n  {result}\n")
        return result.code
    sys.stdout.write(render_bundle(result) if isinstance(result, VerifiedBundle) else render(result))
    return result.exit_code


def _trust(asked: Asked) -> Trust | None:
    """Read what is given as files; None after saying what could not be read."""
    keys: list[str] = []
    kept: list[str] = []
    for key in (asked.key, *asked.witnesses):
        try:
            keys += [] if key is None else [_resolve_key(key)]
        except (OSError, ValueError):
            name = printable(key or "")
            sys.stderr.write(f"cannot read the key: {name} is neither a key nor a key's file\n")
            return None
    for file in asked.checkpoints:
        try:
            kept.append(_read(file, _NOTE_BYTES).decode())
        except (OSError, ValueError) as error:
            _cannot_read(str(file), error)
            return None
    vkey = keys.pop(0) if asked.key is not None else None
    return Trust(vkey, tuple(kept), tuple(keys), asked.quorum)


def _cannot_read(name: str, error: OSError | ValueError) -> ExitCode:
    why = error.strerror if isinstance(error, OSError) else str(error)
    sys.stderr.write(f"cannot read {printable(name)}: {why}\n")
    return ExitCode.USAGE


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
