"""Reads the embedded model's weights folder, which is named by the digest of what it holds.

The manifest lists every file with its SHA-256; the folder's name is the SHA-256 of the manifest. So a name in
a plan's record is enough to tell whether these are the weights that made it.
"""

import json
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import NoReturn

from podium_core.domain.errors import PodiumError, invalid

MANIFEST = "manifest.json"
FORMAT = "podium-embedded/1"
_MAX_MANIFEST_BYTES = 1_000_000
_SHIPPED = Path(__file__).parent / "shipped"


@dataclass(frozen=True, slots=True)
class EmbeddedWeights:
    """A checked weights folder."""

    folder: Path
    digest: str
    files: tuple[str, ...]


def read_weights(folder: Path) -> EmbeddedWeights:
    """Return the weights after comparing every digest.

    Raises PodiumError INVALID_REQUEST: EMBEDDED_WEIGHTS_MISSING or EMBEDDED_WEIGHTS_CORRUPT.
    """
    manifest = folder / MANIFEST
    if not manifest.is_file():
        raise _missing()
    if manifest.stat().st_size > _MAX_MANIFEST_BYTES:
        _corrupt("its manifest is too large")
    data = manifest.read_bytes()
    digest = sha256(data).hexdigest()
    if folder.resolve().name != digest:
        _corrupt("the folder's name is not the SHA-256 of its manifest")
    return EmbeddedWeights(folder, digest, tuple(_checked_files(folder, data)))


def _checked_files(folder: Path, manifest: bytes) -> list[str]:
    try:
        read = json.loads(manifest)
        listed = dict(read["files"])
        known = read["format"] == FORMAT
    except (ValueError, TypeError, KeyError, RecursionError):
        _corrupt("its manifest cannot be read")
    if not known or not listed:
        _corrupt(f"its manifest is not of the format {FORMAT}")
    for name, expected in listed.items():
        path = folder / str(name)
        if path.name != name or not path.is_file():
            _corrupt("a file of its manifest is missing")
        with path.open("rb") as file:
            if file_digest(file, "sha256").hexdigest() != expected:
                _corrupt("a file differs from the digest in its manifest")
    return sorted(listed)


def shipped_folder() -> Path:
    """Return the folder of the weights that ship with the conductor.

    Raises PodiumError EMBEDDED_WEIGHTS_MISSING when this installation has none.
    """
    folders = sorted(path.parent for path in _SHIPPED.glob(f"*/{MANIFEST}"))
    if not folders:
        raise _missing()
    return folders[0]


def _missing() -> PodiumError:
    return invalid(
        "there is no weights folder for the embedded engine there; unset PODIUM_CONDUCTOR_MODEL_PATH to use "
        "the weights that ship with Podium, or name a folder that `podium-train export` wrote",
        reason="EMBEDDED_WEIGHTS_MISSING",
    )


def _corrupt(what: str) -> NoReturn:
    raise invalid(
        f"the weights folder of the embedded engine cannot be used: {what}", reason="EMBEDDED_WEIGHTS_CORRUPT"
    )
