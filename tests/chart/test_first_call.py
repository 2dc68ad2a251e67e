"""What the chart tells people to type after an installation, and what `helm test` asks, typed against a real one."""

import asyncio
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.chart.pods import pods_of
from tests.chart.rendering import CHART, LEAST, Chart
from tests.e2e.cluster import Cluster, running
from tests.fakes.runbook import typed

QUESTION = "What is 17 * 23?"


@pytest.fixture(scope="module")
def podium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(Cluster(tmp_path_factory.mktemp("podium"))) as cluster:
        asyncio.run(cluster.wait_ready())
        yield cluster


def notes(chart: Chart) -> str:
    profile = str(CHART / "profiles" / "laptop.yaml")
    done = chart.run(["install", "podium", str(CHART), "--dry-run=client", "--values", profile])
    assert done.returncode == 0, done.stderr
    return done.stdout.partition("NOTES:\n")[2]


def commands_of(text: str, heading: str) -> str:
    """Return the indented lines below a heading of the notes."""
    (section,) = re.findall(rf"^\d\. {heading}.*?\n\n(.*?)(?=^\S|\Z)", text, re.DOTALL | re.MULTILINE)
    return str(section)


def without_a_cluster(tmp_path: Path) -> str:
    """Return a folder with a `kubectl` that forwards nothing: what it would forward listens here already."""
    program = tmp_path / "bin" / "kubectl"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return str(program.parent)


async def test_the_notes_lead_to_an_answer_and_its_proof(
    chart: Chart, podium: Cluster, tmp_path: Path
) -> None:
    text, path = notes(chart), without_a_cluster(tmp_path)
    text = text.replace(":8080", f":{podium.ports['gateway']}").replace(
        ":8081", f":{podium.ports['audit_http']}"
    )
    own = {"PODIUM_API_KEY": podium.api_key, "HOME": str(tmp_path)}
    code, said = await typed(commands_of(text, "The first call"), tmp_path, path, **own)
    assert code == 0, said
    answer = json.loads(said[said.index("{") :])
    assert "391" in answer["choices"][0]["message"]["content"]
    prove = commands_of(text, "Ask what stands behind").replace("RUN_ID", answer["podium"]["run_id"])
    code, said = await typed(prove, tmp_path, path, **own)
    assert code == 0, said
    assert "verified" in said.lower()


@pytest.mark.parametrize("secret", ["", "api-key"])
async def test_helm_test_asks_what_it_says(
    chart: Chart, podium: Cluster, tmp_path: Path, secret: str
) -> None:
    objects = chart.render({"tests": {"apiKeySecret": secret, "question": QUESTION}})
    ((container,),) = (pod.containers for pod in pods_of(objects) if pod.component == "test")
    script = shlex.join([*container["command"], *container["args"]])
    script = script.replace("http://podium-gateway.podium.svc:8080", podium.gateway_url)
    code, said = await typed(script, tmp_path, PODIUM_API_KEY=podium.api_key, HOME=str(tmp_path))
    assert code == 0, said
    assert ("391" if secret else "200") in said
    code, said = await typed(script, tmp_path, PODIUM_API_KEY="podium_alice_no", HOME=str(tmp_path))
    assert (code != 0) == bool(secret), said


async def test_a_file_of_tenants_is_a_file_of_values(chart: Chart, tmp_path: Path) -> None:
    """As the README, the notes and the refusal of an installation without tenants say."""
    refused = chart.template({"tls": {"mode": "secrets"}}).stderr
    (begun,) = re.findall(r"write `(.*?)` to tenants\.yaml, run `(.*?)`", refused)
    code, said = await typed(f"echo '{begun[0]}' > tenants.yaml; {begun[1]}", tmp_path, HOME=str(tmp_path))
    assert code == 0, said
    tenants = yaml.safe_load((tmp_path / "tenants.yaml").read_text())
    objects = chart.render({**LEAST, **tenants})
    (config,) = [found for found in objects if found["metadata"]["name"] == "podium-config"]
    assert yaml.safe_load(config["data"]["tenants.yaml"]) == tenants
    secret = next(word for word in said.split() if word.startswith("podium_alice_"))
    assert secret not in json.dumps(objects)
