"""The command line of the demo provider."""

import argparse
import ipaddress
from collections.abc import Sequence
from pathlib import Path

_MAX_PORT = 65_535


def options_of(argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of `podium-demo-provider`. Exits (2) on a mistake, naming the option to change."""
    parser = _parser()
    options = parser.parse_args(argv)
    if not options.allow_network and not _is_loopback(options.listen[0]):
        parser.error(
            "argument --listen: must be a loopback address such as 127.0.0.1:7070 (or --allow-network)"
        )
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="podium-demo-provider",
        description="Serves demo specialists (programs, not language models) over the OpenAI protocol.",
    )
    parser.add_argument(
        "--listen", type=_address, default=("127.0.0.1", 7070), metavar="HOST:PORT", help="where to listen"
    )
    parser.add_argument(
        "--allow-network",
        action="store_true",
        help="listen beyond loopback: in a pod that policies close off",
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


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or int(port) > _MAX_PORT:
        raise argparse.ArgumentTypeError(f"must be HOST:PORT, the port a number from 0 to {_MAX_PORT}")
    return host, int(port)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
