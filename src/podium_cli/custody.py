"""`podium erase`, `hold`, `approve`, `reads`, `retention`: the keeping of records, by role."""

import argparse
import asyncio
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from podium_cli.access import audit_client
from podium_cli.audit_client import RUN_ID
from podium_cli.failures import CliError
from podium_cli.home import Home
from podium_cli.settings import CliSettings
from podium_cli.words import moment

_S_PER_HOUR = 3_600
_FOR_EVER = "for ever"


def erase(arguments: argparse.Namespace, console: Console, home: Home, settings: CliSettings) -> int:
    """Erase the content of runs; say under which leaf each is erased."""
    client = audit_client(arguments, home, settings)
    body = {
        "run_ids": arguments.run,
        "subject_id": arguments.subject,
        "everything": arguments.everything,
        "basis": arguments.basis,
        "case_id": arguments.case,
    }
    refused = 0
    while True:
        answer = asyncio.run(client.send("/v1/erasures", body))
        for run in answer.get("erased") or ():
            console.print(f"{run.get('run_id')} is erased under leaf {run.get('leaf_index')}")
        for run in answer.get("refused") or ():
            refused += 1
            console.print(f"{run.get('run_id')} is held; the refusal is leaf {run.get('leaf_index')}")
        if not answer.get("remaining"):
            break
    if answer.get("forgotten"):
        console.print("Whose the pseudonym was is forgotten.")
    console.print(
        f"Backups of the key store may still hold the keys for {answer.get('final_after_days')} days."
    )
    return 1 if refused else 0


def hold(arguments: argparse.Namespace, console: Console, home: Home, settings: CliSettings) -> int:
    """Place a hold, end one, or list those that stand."""
    client = audit_client(arguments, home, settings)
    if arguments.release:
        path = f"/v1/holds/{_id(arguments.release)}/release"
        asyncio.run(client.send(path, {"approval_id": arguments.approval}))
        console.print(f"{arguments.release} has ended; what it held may be erased again.")
        return 0
    if not (arguments.run or arguments.all):
        page = asyncio.run(client.page("/v1/holds"))
        console.print(
            _table(page.get("holds"), hold_id="hold", case_id="case", placed_us="since", run_ids="runs")
        )
        return 0
    if not arguments.case:
        raise CliError("say which case asks for it", hint="podium hold RUN --case ID")
    body = {"case_id": arguments.case, "run_ids": arguments.run, "everything": arguments.all}
    answer = asyncio.run(client.send("/v1/holds", body))
    console.print(f"{answer.get('hold_id')} stands: nothing of it is erased, nothing expires.")
    return 0


def approve(arguments: argparse.Namespace, console: Console, home: Home, settings: CliSettings) -> int:
    """Ask for an approval, give one, or list those that wait."""
    client = audit_client(arguments, home, settings)
    if arguments.id:
        asyncio.run(client.send(f"/v1/approvals/{_id(arguments.id)}/approve", {}))
        console.print(f"{arguments.id} is approved.")
    elif arguments.ask:
        body = {
            "action": arguments.ask,
            "target": arguments.of,
            "case_id": arguments.case,
            "valid_s": arguments.hours * _S_PER_HOUR,
        }
        answer = asyncio.run(client.send("/v1/approvals", body))
        console.print(f"{answer.get('approval_id')} waits until {moment(answer.get('expires_us'))}.")
        console.print(f"Another key approves it: podium approve {answer.get('approval_id')}")
    else:
        page = asyncio.run(client.page("/v1/approvals"))
        names = {
            "approval_id": "approval",
            "action": "action",
            "target": "of",
            "case_id": "case",
            "requested_by": "asked by",
            "approved_by": "approved by",
            "expires_us": "until",
        }
        console.print(_table(page.get("approvals"), **names))
    return 0


def reads(arguments: argparse.Namespace, console: Console, home: Home, settings: CliSettings) -> int:
    """List who read what of the tenant, newest first."""
    query = {"limit": str(arguments.limit)} | ({"before": arguments.before} if arguments.before else {})
    page = asyncio.run(audit_client(arguments, home, settings).page("/v1/reads", query))
    names = {
        "leaf_index": "leaf",
        "time_us": "when",
        "principal_id": "who",
        "action": "did",
        "run_id": "run",
        "with_content": "content",
        "case_id": "case",
    }
    console.print(_table(page.get("reads"), **names))
    console.print(f"{len(page.get('reads') or ())} of {page.get('total', '?')} reads")
    return 0


def retention(arguments: argparse.Namespace, console: Console, home: Home, settings: CliSettings) -> int:
    """Show the retention policy that stands, and the one that tenants.yaml wants."""
    page = asyncio.run(audit_client(arguments, home, settings).page("/v1/retention"))
    table = Table("days", "stands", "wanted", box=None, pad_edge=False)
    standing, wanted = page.get("standing") or {}, page.get("wanted") or {}
    for name in ("evidence_days", "content_days", "conversation_days"):
        cells = (_FOR_EVER if each.get(name) is None else str(each.get(name)) for each in (standing, wanted))
        table.add_row(name.removesuffix("_days"), *cells)
    console.print(table)
    if target := page.get("approval_target"):
        console.print("What is wanted keeps less: two keys with the role privacy must approve it.")
        console.print(f"podium approve --ask change_retention --of {target} --case CASE")
    return 0


def _table(rows: Any, **names: str) -> Table:
    table = Table(*names.values(), box=None, pad_edge=False)
    for row in rows or ():
        table.add_row(*(_cell(row, name) for name in names))
    return table


def _cell(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if name.endswith("_us"):
        return moment(value)
    if isinstance(value, bool):
        return "yes" if value else ""
    if name == "run_ids":
        return ", ".join(map(str, value or ())) or "every run"
    return "" if value is None else str(value)


def _id(text: str) -> str:
    if not RUN_ID.fullmatch(text):  # it becomes part of an address
        raise CliError(f"{text} is no id", hint="`podium hold` and `podium approve` list those there are")
    return text
