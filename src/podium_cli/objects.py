"""`podium objects`: pool.yaml and tenants.yaml as Worker and Tenant objects, for `kubectl apply`."""

import argparse
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from podium_cli.failures import CliError
from podium_cli.home import Home
from podium_cli.settings import CliSettings
from podium_core.config.pool import load_pool
from podium_core.config.tenant_sections import TenantSection
from podium_core.config.tenants import load_tenants
from podium_core.config.worker_sections import WorkerSection
from podium_core.config.yaml_file import read_texts
from podium_core.domain.errors import PodiumError
from podium_core.resources.objects import GROUP, TENANT, VERSION, WORKER, Kind

Texts = dict[str, Any]
"""A mapping of a file, all of whose scalars are text."""

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_TRUE = frozenset({"1", "on", "t", "true", "y", "yes"})


class _Dumper(yaml.SafeDumper):
    """Quotes the one-letter words that kubectl would read as yes or no, and PyYAML takes for text."""


_Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"[yYnN]\Z"), list("yYnN"))


def run(arguments: argparse.Namespace, console: Console, home: Home, _settings: CliSettings) -> int:
    """Print the objects."""
    pool, tenants = arguments.pool or home.pool_file, arguments.tenants or home.tenants_file
    try:
        load_pool(pool)
        load_tenants(tenants)
        workers, owners = read_texts(pool)["workers"], read_texts(tenants)["tenants"]
    except PodiumError as error:
        raise CliError(error.message) from None
    needed = _needed(workers)
    parts = (
        (WORKER, WorkerSection.model_json_schema(), workers),
        (TENANT, TenantSection.model_json_schema(), owners),
    )
    objects = [
        _object(kind, entry, schema, arguments.namespace)
        for kind, schema, entries in parts
        for entry in entries
    ]
    if needed:
        console.print("# The Secret with the provider keys needs these entries:", soft_wrap=True)
    for name, origin in needed.items():
        console.print(f"#   {name}: {origin}", soft_wrap=True)
    text = yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, width=100)
    console.print(text.rstrip(), soft_wrap=True)
    return 0


def _object(kind: Kind, entry: Texts, schema: Mapping[str, Any], namespace: str) -> Texts:
    """Return the object for one entry. Raises CliError: its id can name no object."""
    name = entry.pop("id")
    if not _NAME.fullmatch(name):
        raise CliError(
            f"{kind.name.lower()} {name}: objects are named by lower-case letters, digits, dashes and dots",
            hint="give it another id; plans and lists of workers name it too",
        )
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    spec = _typed(entry, schema, schema.get("$defs", {}))
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind.name, "metadata": metadata, "spec": spec}


def _needed(workers: list[Texts]) -> dict[str, str]:
    """Name all keys; return where each entry of the Secret comes from. Raises CliError: two have one name."""
    found: dict[str, str] = {}
    for name, origin in (entry for worker in workers for entry in _name_keys(worker)):
        if found.setdefault(name, origin) != origin:
            clash = f"{found[name]} and {origin} would be one entry {name} of the Secret"
            raise CliError(clash, hint="rename one of them")
    return dict(sorted(found.items()))


def _name_keys(worker: Texts) -> Iterator[tuple[str, str]]:
    """Name each key by an entry of the Secret instead of where it is; yield the name and that place."""
    places = [(worker, "key"), *((worker.get("aws") or {}, field) for field in worker.get("aws") or {})]
    for holder, field in places:
        key = holder.get(field)
        if not key:
            continue
        if file := key.get("file"):
            holder[field] = {"name": Path(file).name}
            yield Path(file).name, f"the file {file}"
        else:
            holder[field] = {"name": key["env"]}
            yield key["env"], f"the variable {key['env']}"


def _typed(value: Any, schema: Mapping[str, Any], parts: Mapping[str, Any]) -> Any:
    """Return text as what the schema says it is; what is text stays as it was written."""
    while "$ref" in schema or "anyOf" in schema:
        schema = parts[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema["anyOf"][0]
    if isinstance(value, dict):
        fields = schema.get("properties", {})
        return {
            name: _typed(each, fields.get(name, {}), parts)
            for name, each in value.items()
            if each is not None
        }
    if isinstance(value, list):
        return [_typed(each, schema["items"], parts) for each in value]
    match schema.get("type"):
        case "integer":
            return int(value)
        case "number":
            return int(value) if value.isdecimal() else float(value)
        case "boolean":
            return value.lower() in _TRUE
    return value
