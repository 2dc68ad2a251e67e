"""The command line of the demo provider."""

import argparse
import ipaddress
from pathlib import Path

_MAX_PORT = 65_535


def option_parser() -> argparse.ArgumentParser:
    """Return the parser of `podium-demo-provider`; it names the option to change on any mistake."""
    parser = argparse.ArgumentParser(
        prog="podium-demo-provider",
        description="Serves demo specialists (programs, not language models) over the OpenAI protocol.",
    )
    parser.add_argument(
        "--listen", type=_loopback, default=("127.0.0.1", 7070), metavar="HOST:PORT", help="loopback only"
    )
    parser.add_argument(
        "--request-log", type=_writable, metavar="FILE", help="append one JSON line per request"
    )
    parser.add_argument(
        "--allow-faults", action="store_true", help="for tests: let clients ask for delays and broken replies"
    )
    return parser


def _writable(text: str) -> Path:
    path = Path(text)
    try:
        path.open("a").close()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot be written: {error.strerror}") from None
    return path


def _loopback(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        is_loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise argparse.ArgumentTypeError("must be a loopback address such as 127.0.0.1:7070")
    if not port.isascii() or not port.isdigit() or int(port) > _MAX_PORT:
        raise argparse.ArgumentTypeError(f"the port must be a number from 0 to {_MAX_PORT}")
    return host, int(port)
