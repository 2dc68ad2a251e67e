"""Provider keys, from files or the environment. They leave this module only inside `ApiKey`."""

import logging
from collections.abc import Callable
from pathlib import Path

from podium_core.config.pool import KeyReference
from podium_core.file_stamp import FileStamp, stamp_of
from podium_router.calls import ApiKey

_log = logging.getLogger(__name__)
_MAX_KEY_CHARS = 8_192


class Keys:
    """Reads keys. A key file is read again when it has changed, so a rotation needs no restart."""

    def __init__(self, environment: Callable[[str], str | None]) -> None:
        self._environment = environment
        self._files: dict[Path, tuple[FileStamp | None, ApiKey | None]] = {}
        self._variables: dict[str, ApiKey | None] = {}

    def find(self, reference: KeyReference) -> ApiKey | None:
        """Return the key, or None while there is none that could be sent."""
        if reference.file is not None:
            return self._from_file(reference.file)
        name = reference.env or ""
        if name not in self._variables:
            self._variables[name] = _usable(self._environment(name) or "")
        return self._variables[name]

    def _from_file(self, path: Path) -> ApiKey | None:
        stamp = stamp_of(path)
        known = self._files.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        key = _read(path) if stamp is not None else None
        if key is None:
            _log.warning("a key file is missing, empty or not one line of ASCII", extra={"file": path.name})
        self._files[path] = (stamp, key)
        return key


def _read(path: Path) -> ApiKey | None:
    try:
        with path.open(encoding="ascii") as file:
            return _usable(file.read(_MAX_KEY_CHARS + 1))
    except (OSError, UnicodeDecodeError):
        return None


def _usable(text: str) -> ApiKey | None:
    key = text.strip()
    if not key or len(key) > _MAX_KEY_CHARS or not key.isascii() or not key.isprintable() or " " in key:
        return None
    return ApiKey(key)
