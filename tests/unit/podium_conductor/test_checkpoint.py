"""A checkpoint that cannot be served is refused in words, before anything is loaded; digests see every byte."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_conductor.engines.embedded.weights import MANIFEST, read_weights
from podium_conductor.engines.vllm.checkpoint import (
    CheckpointDigests,
    adapter_rank,
    check_checkpoint,
    digests_of,
)
from podium_core.domain.errors import PodiumError
from tests.fakes.checkpoint_files import adapter, checkpoint, safetensors


def refused(act: Callable[[], object]) -> str:
    with pytest.raises(PodiumError) as failed:
        act()
    assert "/" not in failed.value.message
    return failed.value.reason


def test_a_whole_checkpoint_is_accepted_with_and_without_an_adapter(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "m")
    check_checkpoint(folder)
    check_checkpoint(folder, adapter(tmp_path / "a"))
    assert adapter_rank(tmp_path / "a") == 8


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda f: (f / "config.json").unlink(), "CHECKPOINT_MISSING"),
        (lambda f: (f / "config.json").write_text("{"), "CHECKPOINT_CORRUPT"),
        (lambda f: (f / "config.json").write_text("[]"), "CHECKPOINT_CORRUPT"),
        (lambda f: (f / "config.json").write_bytes(b"\xff{}"), "CHECKPOINT_CORRUPT"),
        (lambda f: (f / "config.json").write_text('{"architectures": ["BertModel"]}'), "CHECKPOINT_ARCHITECTURE"),
        (lambda f: (f / "model.safetensors").unlink(), "CHECKPOINT_MISSING"),
        (lambda f: (f / "model.safetensors").write_bytes(b"\0" * 4), "CHECKPOINT_CORRUPT"),
        (lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-1]), "CHECKPOINT_CORRUPT"),
        (lambda f: (f / "model.safetensors.index.json").write_text('{"weight_map": {"w": "part-1.safetensors"}}'), "CHECKPOINT_MISSING"),
        (lambda f: (f / "model.safetensors.index.json").write_text('{"weight_map": {}}'), "CHECKPOINT_CORRUPT"),
        (lambda f: (f / "tokenizer.json").unlink(), "CHECKPOINT_MISSING"),
        (lambda f: (f / "chat_template.jinja").unlink(), "CHECKPOINT_NO_CHAT_TEMPLATE"),
    ],
)  # fmt: skip
def test_each_defect_has_its_reason(tmp_path: Path, spoil: Callable[[Path], object], reason: str) -> None:
    folder = checkpoint(tmp_path / "m")
    spoil(folder)
    assert refused(lambda: check_checkpoint(folder)) == reason


def test_a_name_of_a_hub_is_no_path(tmp_path: Path) -> None:
    assert refused(lambda: check_checkpoint(Path("Qwen2.5-7B-Instruct"))) == "CHECKPOINT_MISSING"


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda a: (a / "adapter_config.json").write_text('{"peft_type": "IA3"}'), "ADAPTER_CORRUPT"),
        (lambda a: (a / "adapter_config.json").unlink(), "ADAPTER_MISSING"),
        (lambda a: (a / "adapter_model.safetensors").write_bytes(b"no"), "ADAPTER_CORRUPT"),
    ],
)
def test_an_adapter_is_checked_too(tmp_path: Path, spoil: Callable[[Path], object], reason: str) -> None:
    folder, lora = checkpoint(tmp_path / "m"), adapter(tmp_path / "a")
    spoil(lora)
    assert refused(lambda: check_checkpoint(folder, lora)) == reason
    assert refused(lambda: check_checkpoint(folder, tmp_path / "none")) == "ADAPTER_MISSING"


@given(st.binary(max_size=200))
def test_no_bytes_crash_the_check(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = checkpoint(tmp_path_factory.mktemp("m"))
    (folder / "model.safetensors").write_bytes(len(data).to_bytes(8, "little") + data)
    assert refused(lambda: check_checkpoint(folder)) == "CHECKPOINT_CORRUPT"


def test_digests_name_exactly_what_changed(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "m")
    first = digests_of(folder)
    safetensors(folder / "model.safetensors", b"\1" * 8)
    second = digests_of(folder)
    (folder / "tokenizer.json").write_text("{ }")
    third = digests_of(folder)
    (folder / "chat_template.jinja").write_text("{{ other }}")
    fourth = digests_of(folder)
    assert first.model != second.model == third.model == fourth.model
    assert first.tokenizer == second.tokenizer != third.tokenizer == fourth.tokenizer
    assert first.template == third.template != fourth.template
    assert digests_of(folder, adapter(tmp_path / "a")) == CheckpointDigests(
        digests_of(folder, tmp_path / "a").model, fourth.tokenizer, fourth.template
    )
    assert digests_of(folder, tmp_path / "a").model != fourth.model


def weights(parent: Path, files: dict[str, bytes]) -> Path:
    from hashlib import sha256

    listed = {name: sha256(data).hexdigest() for name, data in files.items()}
    manifest = json.dumps({"format": "podium-embedded/1", "files": listed}).encode()
    folder = parent / sha256(manifest).hexdigest()
    folder.mkdir()
    (folder / MANIFEST).write_bytes(manifest)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def test_embedded_weights_are_read_by_their_digest_and_nothing_is_pretended(tmp_path: Path) -> None:
    folder = weights(tmp_path, {"weights.bin": b"abc"})
    read = read_weights(folder)
    assert (read.digest, read.files) == (folder.name, ("weights.bin",))
    (folder / "weights.bin").write_bytes(b"abd")
    assert refused(lambda: read_weights(folder)) == "EMBEDDED_WEIGHTS_CORRUPT"
    assert refused(lambda: read_weights(tmp_path / "none")) == "EMBEDDED_WEIGHTS_MISSING"
    folder.rename(tmp_path / "renamed")
    assert refused(lambda: read_weights(tmp_path / "renamed")) == "EMBEDDED_WEIGHTS_CORRUPT"
