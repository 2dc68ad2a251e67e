"""Writes a plan model as a weights folder of the embedded engine, named by the digest of its manifest."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from podium_core.domain.errors import Code, PodiumError
from podium_core.plan_model.model import PlanModel
from podium_core.plan_model.weights import packed

FORMAT = "podium-embedded/1"
MANIFEST = "manifest.json"


def export_model(model: PlanModel, parent: Path, about: Mapping[str, object]) -> Path:
    """Write the model into a new folder of `parent` and return the folder.

    The manifest lists each file with its SHA-256 and holds `about`; the folder's name is the SHA-256 of the
    manifest. The same model and facts give the same bytes. Raises PodiumError TRAIN_NOT_SAVED.
    """
    files = packed(model)
    manifest = json.dumps(
        {
            "format": FORMAT,
            "files": {name: sha256(data).hexdigest() for name, data in sorted(files.items())},
            "about": about,
        },
        indent=2,
        sort_keys=True,
    ).encode()
    folder = parent / sha256(manifest).hexdigest()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)
        (folder / MANIFEST).write_bytes(manifest)
    except OSError as error:
        raise PodiumError(
            Code.INTERNAL,
            "the weights could not be written; free space in the output folder and export again",
            reason="TRAIN_NOT_SAVED",
        ) from error
    return folder
