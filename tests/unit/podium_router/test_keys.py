"""Keys are found, renewed, and never shown."""

import os
from pathlib import Path

import pytest

from podium_core.config.pool import KeyReference
from podium_router.calls import ApiKey
from podium_router.keys import Keys


def revealed(keys: Keys, reference: KeyReference) -> str | None:
    key = keys.find(reference)
    return None if key is None else key.reveal()


def test_a_variable() -> None:
    keys = Keys({"A_KEY": " sk-1\n", "EMPTY": ""}.get)
    assert revealed(keys, KeyReference(env="A_KEY")) == "sk-1"
    assert revealed(keys, KeyReference(env="EMPTY")) is None
    assert revealed(keys, KeyReference(env="ABSENT")) is None


def test_a_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "key"
    reference = KeyReference(file=path)
    keys = Keys(lambda name: None)
    assert revealed(keys, reference) is None
    path.write_text("sk-1\n")
    assert revealed(keys, reference) == "sk-1"
    renewed = tmp_path / "new"
    renewed.write_text("sk-2\n")
    os.utime(renewed, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    renewed.rename(path)
    assert revealed(keys, reference) == "sk-2", "same size and time: the inode tells"
    path.unlink()
    assert revealed(keys, reference) is None


def test_a_mounted_secret_that_is_rotated_is_read_again(tmp_path: Path) -> None:
    """As the kubelet does it: the file is a link into `..data`, itself a link that is pointed elsewhere."""

    def mount(version: str, key: str) -> None:
        (tmp_path / version).mkdir()
        (tmp_path / version / "openai").write_text(key)
        os.utime(tmp_path / version / "openai", ns=(1, 1))
        (tmp_path / "..data_tmp").symlink_to(version)
        (tmp_path / "..data_tmp").rename(tmp_path / "..data")

    mount("..2026_12_01", "sk-1\n")
    (tmp_path / "openai").symlink_to("..data/openai")
    keys, reference = Keys(lambda name: None), KeyReference(file=tmp_path / "openai")
    assert revealed(keys, reference) == "sk-1"
    mount("..2026_12_02", "sk-2\n")
    assert revealed(keys, reference) == "sk-2"


@pytest.mark.parametrize("text", ["", " \n", "two words", "two\nlines", "sk-\x00", "schlüssel", "x" * 9_000])
def test_what_cannot_be_a_header_is_no_key(
    text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "key"
    path.write_text(text)
    assert Keys(lambda name: None).find(KeyReference(file=path)) is None
    assert len(caplog.records) == 1
    assert str(tmp_path) not in caplog.text


def test_a_key_does_not_show_itself() -> None:
    key = ApiKey("sk-1")
    assert "sk-1" not in f"{key} {key!r} {[key]} {key:}"
    assert key.is_within("Incorrect key sk-1")
    assert not key.is_within("chatcmpl-1")
