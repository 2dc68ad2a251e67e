"""`podium keys`: API keys made, given new secrets, and taken away, while the services run."""

import argparse
import re
from pathlib import Path

from rich.console import Console
from rich.table import Table

from podium_cli.failures import CliError
from podium_cli.home import Home, write_private
from podium_cli.key_file import KeyFile, moment_text
from podium_cli.settings import CliSettings
from podium_core.config.tenant_sections import to_moment_ns
from podium_core.config.tenants import Key, Tenant, new_key
from podium_core.domain.clock import SystemClock
from podium_core.domain.policy import Reach

_NANOS = 1_000_000_000
_UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_SPAN = re.compile(r"(\d{1,6})([smhd])|0")
_NOTICED = "The services notice by themselves, within a second."


def run(arguments: argparse.Namespace, console: Console, home: Home, _settings: CliSettings) -> int:
    """Do what the second word says."""
    path: Path = arguments.tenants or home.tenants_file
    if not path.exists():
        raise CliError(
            f"there is no tenants file {path}",
            hint="start Podium with `podium up`, or name the file with --tenants",
        )
    file = KeyFile(path)
    if arguments.keys_command == "list":
        console.print(_table(file))
    elif arguments.keys_command == "create":
        _create(arguments, console, file)
    elif arguments.keys_command == "rotate":
        _rotate(arguments, console, home, file)
    else:
        file.remove(arguments.id)
        console.print(f"{arguments.id} is revoked. {_NOTICED} Runs that it began go on to their end.")
    return 0


def key_entry(key_id: str, digest: str, roles: list[str]) -> str:
    """Return the entry of one key, indented for `tenants.yaml`."""
    return (
        f"      - id: {key_id}\n        sha256: {digest}\n        roles: [{', '.join(dict.fromkeys(roles))}]"
    )


def _create(arguments: argparse.Namespace, console: Console, file: KeyFile) -> None:
    token, digest = _new_key(arguments.id)
    expires_ns = _moment_ns(arguments.expires) if arguments.expires else None
    roles = frozenset(arguments.role or ["client"])
    file.add(arguments.tenant or _only_tenant(file).tenant_id, Key(arguments.id, digest, roles, expires_ns))
    _show(console, token)


def _rotate(arguments: argparse.Namespace, console: Console, home: Home, file: KeyFile) -> None:
    now_ns = SystemClock().now_ns()
    overlap_s = _span_s(arguments.overlap)
    until_ns = (now_ns // _NANOS + overlap_s) * _NANOS
    file.tenant_of(arguments.id)
    token, digest = _new_key(arguments.id)
    if arguments.end_earlier:
        file.end_earlier(arguments.id)
    file.rotate(arguments.id, digest, until_ns=until_ns if overlap_s else 0, now_ns=now_ns)
    _show(console, token)
    if overlap_s:
        console.print(f"The secret it had goes on working until {moment_text(until_ns)}.")
    else:
        console.print("The secret it had works no more.")
    if _is_own(home, arguments.id):
        write_private(home.api_key_file, f"{token}\n")
        console.print(f"It was this command's own key: {home.api_key_file} has the new secret.")


def _show(console: Console, token: str) -> None:
    console.print("The key, shown this once; hand it to its owner over a safe channel:\n")
    console.print(f"  {token}\n", soft_wrap=True)
    console.print(_NOTICED)


def _is_own(home: Home, key_id: str) -> bool:
    try:
        return home.read_api_key().startswith(f"podium_{key_id}_")
    except CliError:
        return False


def _table(file: KeyFile) -> Table:
    table = Table("key", "tenant", "roles", "expires", "earlier secrets until", "lists", box=None)
    for tenant in file.tenants():
        for key in tenant.keys:
            table.add_row(
                key.key_id,
                tenant.tenant_id,
                ", ".join(sorted(key.roles)),
                "never" if key.expires_ns is None else moment_text(key.expires_ns),
                ", ".join(moment_text(old.until_ns) for old in key.previous),
                "; ".join(_lists(key.reach)),
            )
    return table


def _lists(reach: Reach) -> list[str]:
    told = []
    for name, lists in (
        ("workers", reach.workers),
        ("providers", reach.providers),
        ("regions", reach.regions),
    ):
        if lists.only is not None:
            told.append(f"{name} only {', '.join(sorted(lists.only))}")
        if lists.excluded:
            told.append(f"{name} except {', '.join(sorted(lists.excluded))}")
    return told


def _only_tenant(file: KeyFile) -> Tenant:
    tenants = file.tenants()
    if len(tenants) > 1:
        names = ", ".join(tenant.tenant_id for tenant in tenants)
        raise CliError("there are several tenants", hint=f"say whose key it is with --tenant: {names}")
    return tenants[0]


def _new_key(key_id: str) -> tuple[str, str]:
    try:
        return new_key(key_id)
    except ValueError as error:
        raise CliError(str(error)) from None


def _span_s(text: str) -> int:
    match = _SPAN.fullmatch(text)
    if match is None:
        raise CliError(f"{text} is no span of time", hint="write 0, 90s, 30m, 24h or 7d")
    return int(match[1]) * _UNITS_S[match[2]] if match[1] else 0


def _moment_ns(text: str) -> int:
    try:
        return to_moment_ns(text)
    except ValueError:
        raise CliError(f"{text} is no date", hint="write 2027-01-31 or 2027-01-31T12:00:00Z") from None
