"""A volume as kubelet makes it from a Secret or a ConfigMap: links to a folder that one rename replaces."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from podium_core.runtime.identity import TlsFiles


class MountedVolume:
    """Files under `path`, all changed at once by `write`."""

    def __init__(self, path: Path, files: Mapping[str, bytes]) -> None:
        self.path = path
        self._version = 0
        path.mkdir()
        self.write(files)
        for name in files:
            (path / name).symlink_to(Path("..data") / name)

    def write(self, files: Mapping[str, bytes]) -> None:
        """Replace what is there, as an update of the object does."""
        self._version += 1
        folder = self.path / f"..version_{self._version}"
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        data, before = self.path / "..data", self.path / f"..version_{self._version - 1}"
        (self.path / "..data_tmp").symlink_to(folder.name)
        os.replace(self.path / "..data_tmp", data)  # noqa: PTH105 - replaces the link, not what it names
        shutil.rmtree(before, ignore_errors=True)


class MountedTls(MountedVolume):
    """A Secret with a certificate, by cert-manager's names."""

    def __init__(self, path: Path, source: TlsFiles) -> None:
        super().__init__(path, _files(source))

    @property
    def tls(self) -> TlsFiles:
        """Where a service reads it."""
        return TlsFiles(self.path / "tls.crt", self.path / "tls.key", self.path / "ca.crt")

    def renew(self, source: TlsFiles) -> None:
        """Replace all three files by those of `source`."""
        self.write(_files(source))


def _files(source: TlsFiles) -> dict[str, bytes]:
    certificate, key, ca = source.read()
    return {"tls.crt": certificate, "tls.key": key, "ca.crt": ca}
