"""A plan model with random weights: right in form, knows nothing."""

import numpy as np

from podium_core.plan_model.choices import Kind
from podium_core.plan_model.encoder import TextEncoder, unit
from podium_core.plan_model.model import POINT_KINDS, PlanModel, feature_widths, output_width
from podium_core.plan_model.skills import SkillSpace
from podium_core.plan_model.words import BUCKETS, Floats

WIDTH = 12
SKILLS = ("arithmetic", "text", "dates")


def random_model(seed: int = 0, scale: float = 1.0) -> PlanModel:
    """Return a model whose every choice is arbitrary; the same seed gives the same one."""
    rng = np.random.default_rng(seed)

    def array(*shape: int) -> Floats:
        return rng.normal(0, scale, shape).astype(np.float32)

    encoder = TextEncoder(
        rng.integers(-127, 128, (BUCKETS, WIDTH)).astype(np.int8), np.full(BUCKETS, 0.01, np.float32)
    )
    space = SkillSpace(
        encoder, {name: row for row, name in enumerate(SKILLS)}, unit(array(len(SKILLS), WIDTH))
    )
    widths = feature_widths(WIDTH)
    arrays: dict[str, Floats] = {}
    for kind in POINT_KINDS:
        out = output_width(kind)
        shapes = {"hidden": (widths[kind], 8), "hidden_bias": (8,), "out": (8, out), "out_bias": (out,)}
        arrays |= {f"{kind.value}.{part}": array(*shape) for part, shape in shapes.items()}
    of_workers = {
        "hidden": (widths[Kind.WORKER], 8),
        "hidden_bias": (8,),
        "second": (8, 6),
        "around": (16, 6),
        "second_bias": (6,),
        "out": (6, 1),
        "line": (widths[Kind.WORKER], 1),
    }
    arrays |= {f"worker.{part}": array(*shape) for part, shape in of_workers.items()}
    return PlanModel.of(space, arrays)
