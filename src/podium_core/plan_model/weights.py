"""The plan model as named arrays and the names of its skills: what a weights folder holds.

Nothing here touches files: callers give and take bytes. Arrays are checked against each other, so that a
model that loads can plan.
"""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from podium_core.domain.errors import PodiumError, invalid
from podium_core.plan_model.encoder import TextEncoder
from podium_core.plan_model.model import POINT_KINDS, PlanModel, feature_widths, output_width
from podium_core.plan_model.skills import SkillSpace
from podium_core.plan_model.words import BUCKETS, Floats

ARRAYS_FILE = "model.npz"
SKILLS_FILE = "skills.json"
WORKER = "worker"


def packed(model: PlanModel) -> dict[str, bytes]:
    """Return the files of a weights folder: arrays (half precision where that is enough) and skill names."""
    names = sorted(model.space.rows, key=lambda name: model.space.rows[name])
    # Two skills may have the same words; then one row is left out, so that names and rows stay in step.
    centroids = model.space.centroids[[model.space.rows[name] for name in names]]
    arrays: dict[str, np.typing.NDArray[np.generic]] = {
        "encoder.table": model.encoder.table,
        "encoder.factors": model.encoder.factors,
        "skills.centroids": centroids.astype(np.float16),
    }
    for kind in POINT_KINDS:
        network = model.points[kind]
        arrays |= {f"{kind.value}.{part.name}": getattr(network, part.name) for part in fields(network)}
    workers = model.workers
    arrays |= {f"{WORKER}.{part.name}": getattr(workers, part.name) for part in fields(workers)}
    return {ARRAYS_FILE: _zipped(arrays), SKILLS_FILE: json.dumps(names, indent=0).encode()}


def unpacked(files: Mapping[str, bytes]) -> PlanModel:
    """Return the model that `packed` wrote. Raises PodiumError EMBEDDED_WEIGHTS_CORRUPT."""
    try:
        names = [str(name) for name in json.loads(files[SKILLS_FILE])]
        with np.load(io.BytesIO(files[ARRAYS_FILE]), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        model = _built(arrays, names)
    except (KeyError, ValueError, TypeError, OSError, EOFError, zipfile.BadZipFile):
        raise _corrupt("its arrays cannot be read") from None
    _check(model)
    return model


def _built(arrays: Mapping[str, np.typing.NDArray[np.generic]], names: list[str]) -> PlanModel:
    floats: dict[str, Floats] = {
        name: np.asarray(value, np.float32) for name, value in arrays.items() if name != "encoder.table"
    }
    encoder = TextEncoder(np.asarray(arrays["encoder.table"], np.int8), floats["encoder.factors"])
    space = SkillSpace(encoder, {name: row for row, name in enumerate(names)}, floats["skills.centroids"])
    return PlanModel.of(space, floats)


def _check(model: PlanModel) -> None:
    width = model.encoder.width
    if model.encoder.table.shape != (BUCKETS, width) or model.encoder.factors.shape != (BUCKETS,):
        raise _corrupt("its table has another size than this version reads")
    if model.space.centroids.shape != (len(model.space.rows), width):
        raise _corrupt("its skills do not fit its table")
    widths = feature_widths(width)
    for kind in POINT_KINDS:
        network = model.points[kind]
        hidden = network.hidden.shape[-1]
        shapes = ((widths[kind], hidden), (hidden,), (hidden, output_width(kind)), (output_width(kind),))
        found = (network.hidden, network.hidden_bias, network.out, network.out_bias)
        if tuple(array.shape for array in found) != shapes:
            raise _corrupt(f"its network for the choice {kind.value} does not fit this version")
    if model.workers.line.shape != (widths[next(k for k in widths if k.value == WORKER)], 1):
        raise _corrupt("its network for the choice of workers does not fit this version")
    if not all(np.isfinite(array).all() for array in _floats_of(model)):
        raise _corrupt("it holds numbers that are none")


def _floats_of(model: PlanModel) -> list[Floats]:
    arrays = [model.encoder.factors, model.space.centroids]
    for network in model.points.values():
        arrays += [getattr(network, part.name) for part in fields(network)]
    return [*arrays, *(getattr(model.workers, part.name) for part in fields(model.workers))]


def _zipped(arrays: Mapping[str, np.typing.NDArray[np.generic]]) -> bytes:
    """Return the arrays as `.npz` bytes that are the same for the same arrays: no times are stored."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(arrays):
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            content = io.BytesIO()
            np.lib.format.write_array(content, np.ascontiguousarray(arrays[name]), allow_pickle=False)
            archive.writestr(entry, content.getvalue())
    return buffer.getvalue()


def _corrupt(what: str) -> PodiumError:
    return invalid(
        f"the weights folder of the embedded engine cannot be used: {what}", reason="EMBEDDED_WEIGHTS_CORRUPT"
    )
