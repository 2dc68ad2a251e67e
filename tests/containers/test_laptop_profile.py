"""What the chart renders for a laptop runs: a question is answered over mutual TLS, and its record verifies."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podium_cli.local_ca import create_local_ca
from tests.containers.laptop import Laptop, running
from tests.containers.podman import image, podman
from tests.containers.test_images import HARDENED
from tests.fakes.waiting import PATIENCE_S

QUESTION = "What is 17 * 23?"


@pytest.fixture(scope="module")
def laptop(
    tmp_path_factory: pytest.TempPathFactory, network: str, cache: Path, hadolint: Path
) -> Iterator[Laptop]:
    home = tmp_path_factory.mktemp("laptop")
    with running(Laptop(home, network, hadolint.with_name("helm4"))) as installation:
        yield installation


def ask(laptop: Laptop, timeout_s: float = PATIENCE_S) -> Any:
    body = json.dumps({"model": "podium", "messages": [{"role": "user", "content": QUESTION}]}).encode()
    headers = {"Authorization": f"Bearer {laptop.api_key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{laptop.url('gateway', 8080)}/v1/chat/completions", body, headers)
    with urllib.request.urlopen(request, timeout=timeout_s) as answer:
        return json.load(answer)


def test_a_question_is_answered_and_its_record_verifies_offline(laptop: Laptop, tmp_path: Path) -> None:
    told = ask(laptop)
    assert "391" in told["choices"][0]["message"]["content"]
    run_id = told["podium"]["receipt"]["run_id"]
    request = urllib.request.Request(
        f"{laptop.url('audit', 8081)}/v1/runs/{run_id}/export",
        headers={"Authorization": f"Bearer {laptop.api_key}"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        (tmp_path / "run.podium.jsonl").write_bytes(answer.read())
    tmp_path.chmod(0o755)
    verified = podman(
        "run", *HARDENED, f"--volume={tmp_path}:/records:ro", "--entrypoint=podium", image("audit"),
        "verify", "/records/run.podium.jsonl",
    )  # fmt: skip
    assert run_id in verified.stdout


def test_the_question_of_helm_test_is_answered_from_inside(laptop: Laptop) -> None:
    (pod,) = [each for each in laptop.documents if each["kind"] == "Pod"]
    (container,) = pod["spec"]["containers"]
    told = podman(
        "run", "--rm", "--network", laptop.network, "--read-only", "--user=10001", "--cap-drop=ALL",
        "--entrypoint", container["command"][0], container["image"], *container["command"][1:], *container["args"],
    )  # fmt: skip
    assert told.stdout.startswith("200")


@pytest.mark.parametrize("fault", ["of another authority", "of another service"])
def test_a_service_with_the_wrong_certificate_is_refused(fault: str, laptop: Laptop, tmp_path: Path) -> None:
    """A router that is not the router gets no question, though name and address are right."""
    secret = laptop.home / "podium-router-tls"
    kept = {path.name: path.read_bytes() for path in secret.iterdir()}
    if fault == "of another authority":
        create_local_ca(tmp_path, ["router"])
        (secret / "tls.crt").write_bytes((tmp_path / "router" / "cert.pem").read_bytes())
        (secret / "tls.key").write_bytes((tmp_path / "router" / "key.pem").read_bytes())
    else:
        for name in ("tls.crt", "tls.key"):
            (secret / name).write_bytes((laptop.home / "podium-demo-tls" / name).read_bytes())
    try:
        laptop.replace("router")
        laptop.wait_ready("router", probe="livez")  # it runs, and is believed by nobody
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask(laptop)
        assert refused.value.code in {502, 503}
        refused.value.close()
    finally:
        for name, content in kept.items():
            (secret / name).write_bytes(content)
        laptop.replace("router")
    laptop.wait_ready("router", "gateway")
    assert ask(laptop)["choices"]
