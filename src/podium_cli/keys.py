"""`podium keys new`: a new API key, shown once, with the lines that let it in."""

import argparse

from rich.console import Console

from podium_cli.failures import CliError
from podium_cli.home import Home
from podium_cli.settings import CliSettings
from podium_core.config.tenants import new_key


def run(arguments: argparse.Namespace, console: Console, home: Home, _settings: CliSettings) -> int:
    """Print a new token and what `tenants.yaml` needs to accept it."""
    try:
        token, digest = new_key(arguments.id)
    except ValueError as error:
        raise CliError(str(error)) from None
    console.print("The key, shown this once; hand it to its owner over a safe channel:\n")
    console.print(f"  {token}\n", soft_wrap=True)
    console.print(
        f"Add this under `keys:` of its tenant in {home.tenants_file}; the services notice by themselves:\n",
        soft_wrap=True,
    )
    console.print(key_entry(arguments.id, digest, arguments.role or ["client"]), soft_wrap=True)
    return 0


def key_entry(key_id: str, digest: str, roles: list[str]) -> str:
    """Return the entry of one key, indented for `tenants.yaml`."""
    return (
        f"      - id: {key_id}\n        sha256: {digest}\n        roles: [{', '.join(dict.fromkeys(roles))}]"
    )
