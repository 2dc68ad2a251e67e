"""SHA-256 of data folders and weights, so that a figure names what it was measured on."""

from hashlib import sha256
from pathlib import Path

_CHUNK = 1 << 20


def folder_digest(folder: Path, pattern: str = "**/*") -> str:
    """Return the digest (hex) over relative names and bytes of all files that match, in order of names."""
    digest = sha256()
    for path in sorted(path for path in folder.glob(pattern) if path.is_file()):
        name = path.relative_to(folder).as_posix()
        digest.update(f"{name}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
    return digest.hexdigest()
