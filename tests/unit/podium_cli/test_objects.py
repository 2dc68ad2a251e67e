"""`podium objects`: what the files say, as objects that an API server takes and that mean the same."""

import io
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from docs.generated.config_page import POOL_EXAMPLE, TENANTS_EXAMPLE
from podium_cli.arguments import build_parser
from podium_cli.failures import CliError
from podium_cli.home import open_home
from podium_cli.objects import run
from podium_cli.settings import CliSettings
from podium_core.config.pool import load_pool, pool_of
from podium_core.config.tenants import load_tenants, tenant_of
from podium_core.resources import specs
from podium_core.resources.objects import Kind, Resource, resource_of
from tests.fakes.crds import KINDS, problems


def printed(tmp_path: Path, *options: str) -> str:
    files = ("--pool", str(tmp_path / "pool.yaml"), "--tenants", str(tmp_path / "tenants.yaml"))
    out = io.StringIO()
    arguments = build_parser().parse_args(["objects", *files, *options])
    console = Console(file=out, width=1_000, highlight=False, markup=False)
    assert run(arguments, console, open_home(tmp_path), CliSettings()) == 0
    return out.getvalue()


def resources_of(text: str) -> list[Resource]:
    found = []
    for thing in yaml.safe_load_all(text):
        assert problems(thing["kind"], thing) == []
        metadata = {**thing["metadata"], "uid": thing["metadata"]["name"], "resourceVersion": "1"}
        found.append(resource_of(Kind(thing["kind"], KINDS[thing["kind"]]), {**thing, "metadata": metadata}))
    return found


@pytest.mark.parametrize("which", ["demo", "example"])
def test_objects_mean_what_the_files_mean(tmp_path: Path, which: str) -> None:
    demo = resources.files("podium_demo").joinpath("pool.demo.yaml").read_text()
    pool = demo.replace("{base_url}", "http://127.0.0.1:8000/v1") if which == "demo" else POOL_EXAMPLE
    (tmp_path / "pool.yaml").write_text(pool)
    (tmp_path / "tenants.yaml").write_text(TENANTS_EXAMPLE)
    found = resources_of(printed(tmp_path))
    workers = tuple(specs.worker_of(each) for each in found if each.kind.name == "Worker")
    assert pool_of(workers, tmp_path).pool == load_pool(tmp_path / "pool.yaml").pool
    tenants = tuple(tenant_of(specs.tenant_of(each)) for each in found if each.kind.name == "Tenant")
    assert tenants == load_tenants(tmp_path / "tenants.yaml").tenants


def test_keys_are_named_and_told_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "pool.yaml").write_text(
        "workers:\n"
        "  - {id: a, provider: openai, model: m, key: {file: keys/openai.key}}\n"
        "  - {id: b, provider: openai, model: m, key: {env: OTHER_KEY}, limits: {timeout_s: 2.5}, demo: yes}\n"
    )
    (tmp_path / "tenants.yaml").write_text("tenants: [{id: acme}]\n")
    text = printed(tmp_path, "--namespace", "podium")
    assert "#   openai.key: the file keys/openai.key" in text
    assert "#   OTHER_KEY: the variable OTHER_KEY" in text
    things: list[dict[str, Any]] = list(yaml.safe_load_all(text))
    assert [each["spec"]["key"]["name"] for each in things[:2]] == ["openai.key", "OTHER_KEY"]
    assert (things[1]["spec"]["limits"], things[1]["spec"]["demo"]) == ({"timeout_s": 2.5}, True)
    assert {each["metadata"]["namespace"] for each in things} == {"podium"}


def test_two_keys_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "pool.yaml").write_text(
        "workers:\n"
        "  - {id: a, provider: openai, model: m, key: {file: a/key}}\n"
        "  - {id: b, provider: openai, model: m, key: {file: b/key}}\n"
    )
    (tmp_path / "tenants.yaml").write_text("tenants: [{id: acme}]\n")
    with pytest.raises(CliError, match="a/key and the file b/key"):
        printed(tmp_path)


def test_an_id_that_can_name_no_object_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pool.yaml").write_text("workers: [{id: My_Model, provider: openai, model: m}]\n")
    (tmp_path / "tenants.yaml").write_text("tenants: [{id: acme}]\n")
    with pytest.raises(CliError, match="worker My_Model"):
        printed(tmp_path)
