"""Commands of docs/kubernetes.md that need no cluster, typed; stand-ins keep what `kubectl` and others get."""

from pathlib import Path

import grpc
import pytest
import yaml

from podium_core.runtime.identity import TlsFiles
from tests.fakes.echo_service import Peer, echo_server
from tests.fakes.runbook import commands, typed

RENDERED = Path(__file__).parents[2] / "k8s" / "rendered" / "air-gapped.yaml"


def stand_in(folder: Path, program: str, script: str) -> None:
    (folder / "bin").mkdir(exist_ok=True)
    file = folder / "bin" / program
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


async def test_certificates_by_hand_let_services_know_each_other(tmp_path: Path) -> None:
    stand_in(tmp_path, "kubectl", 'echo "$@" >> kubectl.txt')
    code, said = await typed(commands("certificates"), tmp_path, str(tmp_path / "bin"))
    assert code == 0, said
    assert (tmp_path / "kubectl.txt").read_text().count("create secret generic podium-") == 4

    def files(service: str) -> TlsFiles:
        return TlsFiles(tmp_path / f"{service}.crt", tmp_path / f"{service}.key", tmp_path / "ca.crt")

    server = echo_server(files("router"))
    port = await server.start()
    gateway, conductor = Peer(port, files("gateway")), Peer(port, files("conductor"))
    assert await gateway.one_to_one() == b"hello"
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await conductor.one_to_one()
    assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED
    for peer in (gateway, conductor):
        await peer.channel.close()
    await server.stop(0)


def images_in(value: object) -> set[str]:
    if isinstance(value, dict):
        own = {value["image"]} if isinstance(value.get("image"), str) else set()
        return own.union(*map(images_in, value.values()))
    return set[str]().union(*map(images_in, value)) if isinstance(value, list) else set()


async def test_the_mirror_gets_every_image_of_the_manifests(tmp_path: Path) -> None:
    wanted = set().union(*map(images_in, yaml.safe_load_all(RENDERED.read_text())))
    stand_in(tmp_path, "helm", f"cat {RENDERED}")
    stand_in(tmp_path, "skopeo", 'echo "$4 $5" >> copied.txt')
    variables = {"REGISTRY": "registry.example.com", "MIRROR": "mirror.internal"}
    code, said = await typed(commands("images"), tmp_path, str(tmp_path / "bin"), **variables)
    assert code == 0, said
    assert len(wanted) >= 4
    assert set((tmp_path / "copied.txt").read_text().splitlines()) == {
        f"docker://registry.example.com/{image} docker://mirror.internal/{image}" for image in wanted
    }
