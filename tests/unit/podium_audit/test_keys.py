"""Key files: made once, readable by us alone, never replaced."""

import os
from contextlib import closing
from pathlib import Path
from sqlite3 import connect

import pytest

from podium_audit import keys
from podium_audit.ports import StoreError
from podium_audit.stores.run_keys import SqliteKeyReader, SqliteRunKeys
from podium_core.domain.errors import PodiumError


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    keys.init_keys(tmp_path / "keys", log_exists=False)
    return tmp_path / "keys"


def test_first_start_makes_both_keys_for_us_alone(directory: Path) -> None:
    assert directory.stat().st_mode & 0o777 == 0o700
    for name in (keys.SIGNING_KEY_FILE, keys.ENCRYPTION_KEY_FILE):
        assert (directory / name).stat().st_mode & 0o777 == 0o600
    before = (directory / keys.SIGNING_KEY_FILE).read_text()
    keys.init_keys(directory, log_exists=True)
    assert (directory / keys.SIGNING_KEY_FILE).read_text() == before


@pytest.mark.parametrize("lost", [keys.SIGNING_KEY_FILE, keys.ENCRYPTION_KEY_FILE])
def test_half_a_set_of_keys_is_refused(directory: Path, lost: str) -> None:
    (directory / lost).unlink()
    with pytest.raises(PodiumError, match=lost):
        keys.init_keys(directory, log_exists=False)


def test_a_log_without_its_keys_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PodiumError, match="restore the keys"):
        keys.init_keys(tmp_path / "keys", log_exists=True)
    assert not (tmp_path / "keys").exists()


def test_a_checkpoint_without_its_keys_is_refused(directory: Path) -> None:
    keys.write_private(directory / keys.CHECKPOINT_FILE, "note")
    (directory / keys.SIGNING_KEY_FILE).unlink()
    (directory / keys.ENCRYPTION_KEY_FILE).unlink()
    with pytest.raises(PodiumError, match="restore the keys"):
        keys.init_keys(directory, log_exists=False)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o602])
def test_a_key_that_others_may_touch_is_refused(directory: Path, mode: int) -> None:
    file = directory / keys.SIGNING_KEY_FILE
    file.chmod(mode)
    with pytest.raises(PodiumError, match="0600"):
        keys.FileSigner(file)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a file to somebody else")
def test_a_mounted_secret_is_read_by_its_group(directory: Path) -> None:
    file = directory / keys.SIGNING_KEY_FILE
    os.chown(file, 12_345, os.getegid())
    file.chmod(0o440)
    assert len(keys.FileSigner(file).public_key) == 32
    for mode in (0o444, 0o460):
        file.chmod(mode)
        with pytest.raises(PodiumError, match="0600"):
            keys.FileSigner(file)


def test_keys_that_cannot_be_made_where_they_should_be_say_how_to_make_them(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("not a directory")
    with pytest.raises(PodiumError, match="openssl rand -hex 32"):
        keys.init_keys(tmp_path / "keys", log_exists=False)


@pytest.mark.parametrize("text", ["", "zz", "ab" * 31, "ab" * 33])
def test_a_file_that_holds_no_key_is_refused(directory: Path, text: str) -> None:
    file = directory / keys.ENCRYPTION_KEY_FILE
    file.write_text(text)
    with pytest.raises(PodiumError, match="32 bytes"):
        keys.FileKeyWrapper(file)


def test_a_wrapped_key_opens_for_its_context_only(directory: Path) -> None:
    wrapper = keys.FileKeyWrapper(directory / keys.ENCRYPTION_KEY_FILE)
    wrapped = wrapper.wrap(b"k" * 32, b"one")
    assert b"k" * 8 not in wrapped
    assert wrapper.unwrap(wrapped, b"one") == b"k" * 32
    with pytest.raises(StoreError):
        wrapper.unwrap(wrapped, b"two")


def test_run_keys_are_random_used_once_and_found_again(directory: Path, tmp_path: Path) -> None:
    wrapper = keys.FileKeyWrapper(directory / keys.ENCRYPTION_KEY_FILE)
    store = SqliteRunKeys(tmp_path / "run-keys.db", wrapper, pool_size=3)
    store.open(0)
    taken = [store.take() for _ in range(7)]
    assert [number for number, _ in taken] == list(range(1, 8))
    assert len({key for _, key in taken}) == 7
    store.close()
    reader = SqliteKeyReader(tmp_path / "run-keys.db", wrapper)
    assert [reader.get(number) for number, _ in taken] == [key for _, key in taken]
    reader.close()
    store.open(5)
    assert store.take() == taken[5]
    store.close()


def test_an_erased_run_key_is_gone_from_the_files(directory: Path, tmp_path: Path) -> None:
    wrapper = keys.FileKeyWrapper(directory / keys.ENCRYPTION_KEY_FILE)
    store = SqliteRunKeys(tmp_path / "run-keys.db", wrapper, pool_size=2)
    store.open(0)
    number, _ = store.take()
    (wrapped,) = store._connected.execute("SELECT wrapped FROM run_keys WHERE key_no = 1").fetchone()
    store.erase([number])
    assert store.get(number) is None
    assert all(wrapped not in file.read_bytes() for file in tmp_path.glob("run-keys.db*"))
    store.take()
    assert store.take()[0] == 3
    store.close()


def test_an_erasure_that_leaves_the_key_in_the_write_ahead_log_is_no_erasure(
    directory: Path, tmp_path: Path
) -> None:
    wrapper = keys.FileKeyWrapper(directory / keys.ENCRYPTION_KEY_FILE)
    store = SqliteRunKeys(tmp_path / "run-keys.db", wrapper, pool_size=2, busy_s=0.05)
    store.open(0)
    number, _ = store.take()
    with closing(connect(tmp_path / "run-keys.db", isolation_level=None)) as reading:
        reading.execute("BEGIN")
        reading.execute("SELECT count(*) FROM run_keys").fetchone()
        with pytest.raises(StoreError, match="still in it"):
            store.erase([number])
    store.erase([number])
    assert store.get(number) is None
    store.close()


def test_run_keys_of_another_encryption_key_are_refused(directory: Path, tmp_path: Path) -> None:
    store = SqliteRunKeys(tmp_path / "k.db", keys.FileKeyWrapper(directory / keys.ENCRYPTION_KEY_FILE))
    store.open(0)
    store.take()
    store.close()
    keys.write_private(directory / keys.ENCRYPTION_KEY_FILE, "ab" * 32)
    other = SqliteRunKeys(tmp_path / "k.db", keys.FileKeyWrapper(directory / keys.ENCRYPTION_KEY_FILE))
    with pytest.raises(StoreError, match="another key-encryption key"):
        other.open(0)
    other.close()


@pytest.mark.parametrize("is_old", [True, False])
def test_a_lost_or_old_key_store_is_refused(directory: Path, tmp_path: Path, is_old: bool) -> None:
    wrapper = keys.FileKeyWrapper(directory / keys.ENCRYPTION_KEY_FILE)
    if is_old:
        old = SqliteRunKeys(tmp_path / "run-keys.db", wrapper, pool_size=2)
        old.open(0)
        old.take()
        old.close()
    store = SqliteRunKeys(tmp_path / "run-keys.db", wrapper)
    with pytest.raises(
        StoreError, match=r"run-keys\.db holds keys up to [02], but the log uses keys up to 5"
    ):
        store.open(5)
    store.close()


def test_no_key_is_handed_out_from_a_file_that_is_gone(directory: Path, tmp_path: Path) -> None:
    store = SqliteRunKeys(
        tmp_path / "run-keys.db", keys.FileKeyWrapper(directory / keys.ENCRYPTION_KEY_FILE), pool_size=9
    )
    store.open(0)
    store.take()
    (tmp_path / "run-keys.db").unlink()
    with pytest.raises(StoreError, match="was deleted or replaced"):
        store.take()
    store.close()
