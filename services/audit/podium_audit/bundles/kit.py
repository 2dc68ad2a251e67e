"""What a bundle holds besides exports: the verifier in one file, the page of the formats, how to begin."""

import importlib.util
import io
import zipfile
from functools import cache
from pathlib import Path

from podium_core.domain.errors import Code, PodiumError

VERIFIER = "verifier.pyz"
FORMATS = "log-format.md"
SCHEMA = "record.schema.json"
README = "README.txt"

_PACKAGE = "podium_verifier"
_WHEN = (1980, 1, 1, 0, 0, 0)
_START = f"from {_PACKAGE}.__main__ import main\nraise SystemExit(main())\n"
_HOW = """This bundle proves what a Podium installation recorded. To check it you need Python 3.11 or
newer and the package cryptography, and nothing of the installation itself:

    pip install cryptography
    unzip -p THIS.zip verifier.pyz > verifier.pyz
    python verifier.pyz THIS.zip --key VKEY

VKEY is the log's public key. Ask for it by another way than this file; keys.txt holds the one that this
file claims. A verifier from elsewhere is worth more than the one enclosed: get yours from Podium's
releases, or write one from log-format.md.

manifest.json lists every other file with its digest; manifest.proof.json proves that the log holds the
digest of the manifest. runs/ holds an export of each run; records.jsonl, if there is one, every record of
the tenant between the first and the last of them. Time stamps (RFC 3161) of checkpoints, if any:

    openssl ts -verify -in N.tsr -data N.note -CAfile ROOTS
"""


@cache
def kit() -> dict[str, bytes]:
    """Return the files by name. Raises PodiumError when the verifier is not installed."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise PodiumError(Code.INTERNAL, "the verifier is not installed here", reason="NO_VERIFIER")
    # Its sources are data here, never run: whoever checks a bundle runs them.
    package = Path(next(iter(spec.submodule_search_locations)))
    files = {
        README: _HOW.encode(),
        VERIFIER: _archive(package),
        SCHEMA: (package / SCHEMA).read_bytes(),
    }
    for page in (package / FORMATS, package.parents[1] / "docs" / FORMATS):
        if page.is_file():
            files[FORMATS] = page.read_bytes()
            break
    return files


def _archive(package: Path) -> bytes:
    """Return the package as one file that `python` runs, the same bytes each time."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(package.glob("*.py")):
            archive.writestr(zipfile.ZipInfo(f"{_PACKAGE}/{file.name}", _WHEN), file.read_bytes())
        archive.writestr(zipfile.ZipInfo("__main__.py", _WHEN), _START)
    return b"#!/usr/bin/env python3\n" + data.getvalue()
