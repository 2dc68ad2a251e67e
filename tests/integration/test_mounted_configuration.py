"""Every file that services watch, changed as kubelet changes a mounted ConfigMap or Secret."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podium_core.config.gate import load_gate
from podium_core.config.pins import load_pins
from podium_core.config.plans import load_plans
from podium_core.config.pool import KeyReference, load_pool
from podium_core.config.tenants import load_tenants
from podium_core.config.watched import Watched
from podium_router.keys import Keys
from tests.fakes.mounted import MountedVolume

_WORKER = "workers: [{{id: {0}, provider: openai-compatible, model: m, base_url: 'http://127.0.0.1:1/v1'}}]\n"
_TENANT = "tenants: [{{id: {0}}}]\n"
_PLAN = "plans: [{{name: {0}, description: one, steps: [{{worker: a, subtask: x}}]}}]\n"
_PIN = "pins: [{{date: 2026-11-30, pool_digest: %s, model_digest: {0}}}]\n" % ("0" * 64)
_ROW = "rows: [{{tier: podium, steps: 2, difference_low: {0}, n: 400, measured_on: 2026-11-30}}]\n"


@pytest.mark.parametrize(
    ("file", "load", "text", "names"),
    [
        ("pool.yaml", load_pool, _WORKER, ("one", "two")),
        ("tenants.yaml", load_tenants, _TENANT, ("one", "two")),
        ("plans.yaml", load_plans, _PLAN, ("one", "two")),
        ("pins.yaml", load_pins, _PIN, ("one", "two")),
        ("gate.yaml", load_gate, _ROW, ("0.01", "0.02")),
    ],
)
def test_a_config_map_is_taken_whole_and_a_broken_one_not_at_all(
    tmp_path: Path, file: str, load: Callable[[Path], Any], text: str, names: tuple[str, str]
) -> None:
    def written(name: str) -> bytes:
        return text.format(name).encode()

    volume = MountedVolume(tmp_path / "config", {file: written(names[0])})
    watched = Watched(volume.path / file, load)
    first = watched.current
    volume.write({file: b"nothing: [of the kind"})
    assert (watched.refresh(), watched.current) == (False, first)
    volume.write({})
    assert (watched.refresh(), watched.current) == (False, first)
    volume.write({file: written(names[1])})
    assert watched.refresh()
    assert watched.current != first


def test_a_rotated_provider_key_is_sent_from_the_next_call_on(tmp_path: Path) -> None:
    volume = MountedVolume(tmp_path / "provider-keys", {"openai": b"sk-old\n"})
    keys, reference = Keys(lambda _: None), KeyReference(file=volume.path / "openai")
    before = keys.find(reference)
    volume.write({"openai": b"sk-new\n"})
    after = keys.find(reference)
    assert (before, after) != (None, None)
    assert before != after
