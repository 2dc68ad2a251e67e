"""A whole training run: encoder, warm start, reinforcement, export. Killed, it goes on where it was."""

import json
import logging
import pickle
import random
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from podium_core.domain.errors import PodiumError, invalid
from podium_core.plan_model.encoder import TextEncoder
from podium_core.plan_model.model import PlanModel
from podium_core.plan_model.skills import SkillSpace, skill_words
from podium_core.plan_model.words import Floats
from podium_train.learning import checkpoint
from podium_train.learning.encoder import EncoderOptions, learn_encoder
from podium_train.learning.grpo import Grpo, GrpoOptions, StepFigures
from podium_train.learning.measuring import (
    Measured,
    composite_questions,
    measured,
    one_step_questions,
    replay_questions,
)
from podium_train.learning.progress import Alarms, Progress
from podium_train.learning.sources import DemoSource, Question, QuestionSource, ReplaySource
from podium_train.learning.teacher import teach
from podium_train.learning.texts import Example, all_examples
from podium_train.learning.warm_start import WarmOptions, draw_lessons, learn_warm_start
from podium_train.outcomes.folder import read_folder
from podium_train.outcomes.items import RecordedSet
from podium_train.outcomes.splits import Split
from podium_train.policy.export import export_model
from podium_train.policy.twin import Twin

_log = logging.getLogger(__name__)
_SPACE_FILE, _WARM_FILE = "space.pkl", "warm.pkl"
_DEV_TOLERANCE = 0.02
"""Summed dev accuracies that differ by less count as equal."""


@dataclass(frozen=True, slots=True)
class LearnOptions:
    """How large a run is. The encoder's teacher reads `taught_per_skill` examples of each skill; 0: none.

    `dev_every` steps the greedy plans for dev tasks are measured; after `patience` measurements without a
    gain the run stops. `encoder_of` and `supervised_of` are folders of other runs, from which the encoder, or
    encoder and warm start, are taken over instead of learnt: such runs differ in what follows only.
    """

    seed: int = 0
    generated_per_family: int = 16
    taught_per_skill: int = 9
    encoder: EncoderOptions = field(default_factory=EncoderOptions)
    warm: WarmOptions = field(default_factory=WarmOptions)
    grpo: GrpoOptions = field(default_factory=GrpoOptions)
    demo_share: float = 0.6
    dev_every: int = 20
    patience: int = 6
    dev_per_template: int = 12
    dev_replay: int = 300
    encoder_of: Path | None = None
    supervised_of: Path | None = None


FULL = LearnOptions()
REDUCED = LearnOptions(
    generated_per_family=6,
    taught_per_skill=3,
    encoder=EncoderOptions(steps=500),
    warm=WarmOptions(questions=1_500),
    grpo=GrpoOptions(steps=100),
    dev_every=20,
    dev_replay=150,
)
"""Under a quarter of an hour on two cores."""
SMOKE = LearnOptions(
    generated_per_family=0,
    taught_per_skill=0,
    encoder=EncoderOptions(steps=250, width=48),
    warm=WarmOptions(questions=400, batch=64),
    grpo=GrpoOptions(steps=60, questions=24),
    dev_every=20,
    dev_per_template=6,
    dev_replay=60,
)
"""A few minutes, for CI: shows the curve rising on the demo tasks."""


@dataclass(frozen=True, slots=True)
class Learned:
    """What a run ended with: the folder of the exported weights, and greedy dev accuracy after each stage."""

    folder: Path
    stages: Mapping[str, Mapping[str, float]]


def learn(data: Path | None, out: Path, options: LearnOptions) -> Learned:
    """Train a plan model into `out` and return where its weights are.

    Without `data` it learns from the demo tasks and the graders' items alone. Run again with the same
    folder, it goes on where it was stopped. Raises PodiumError: DATA_MISSING, DATA_MALFORMED,
    INVALID_REQUEST for a run to take over that has not come so far, TRAINING_COLLAPSED, TRAIN_NOT_SAVED.
    """
    torch.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    _take_over(out, options)
    recorded = RecordedSet(()) if data is None else read_folder(data)
    if data is None:
        _log.info("no data folder: recorded outcomes are left out, demo tasks remain")
    space = _encoder_stage(recorded, data, out, options)
    twin = Twin(space.encoder.width, options.seed)
    model = untrained(space, twin)
    export_model(model, out / "untrained", {"seed": options.seed, "stage": "encoder only"})
    sources = sources_of(recorded, options)
    dev = dev_questions(recorded, options)
    stages = {"format": accuracies(dev_measured(model, dev))}
    _warm_stage(twin, model, sources, out, options)
    supervised = model.with_networks(twin.export())
    stages["supervised"] = accuracies(dev_measured(supervised, dev))
    export_model(supervised, out / "supervised", {"seed": options.seed, "stage": "supervised only"})
    _log.info("after the warm start: %s", stages["supervised"])
    model = _reinforce(Grpo(model, twin, sources, options.grpo), dev, out, options)
    stages["reinforced"] = accuracies(dev_measured(model, dev))
    about = {"seed": options.seed, "stages": stages, "reinforcement_steps": options.grpo.steps}
    folder = export_model(model, out / "weights", about)
    (out / "stages.json").write_text(json.dumps({**about, "digest": folder.name}, indent=2), "utf-8")
    return Learned(folder, stages)


def untrained(space: SkillSpace, twin: Twin) -> PlanModel:
    """Return the model with the networks that a twin starts with."""
    return PlanModel.of(space, twin.export())


def sources_of(recorded: RecordedSet, options: LearnOptions) -> list[tuple[QuestionSource, float]]:
    """Return where questions come from, with weights."""
    demo: tuple[QuestionSource, float] = (DemoSource(seed=options.seed), options.demo_share)
    if not recorded.items:
        return [demo]
    return [(ReplaySource(recorded), 1.0 - options.demo_share), demo]


def dev_questions(recorded: RecordedSet, options: LearnOptions) -> dict[str, list[Question]]:
    """Return the tasks that choose the checkpoint, by kind."""
    dev = {
        "composite": composite_questions(Split.DEV, options.dev_per_template),
        "one-step": one_step_questions(Split.DEV, 1),
    }
    if recorded.items:
        dev["replay"] = replay_questions(recorded, Split.DEV, options.dev_replay)
    return dev


def dev_measured(model: PlanModel, dev: Mapping[str, Sequence[Question]]) -> dict[str, Measured]:
    """Return what the greedy plans of a model give on dev tasks."""
    return {kind: measured(model, questions) for kind, questions in dev.items()}


def accuracies(found: Mapping[str, Measured]) -> dict[str, float]:
    """Return the accuracies alone."""
    return {kind: round(value.accuracy, 4) for kind, value in found.items()}


def _advanced(learner: Grpo, out: Path, best: tuple[float, Mapping[str, Floats], int]) -> StepFigures:
    """Do one step; when it cannot be done, keep what there is first."""
    try:
        return learner.advance()
    except PodiumError:
        checkpoint.save(out, {"learner": learner.state(), "best": best})
        raise


def _take_over(out: Path, options: LearnOptions) -> None:
    """Copy what other runs have learnt already, unless this run has it."""
    wanted = [(options.encoder_of, _SPACE_FILE), (options.supervised_of, _SPACE_FILE)]
    for folder, name in [*wanted, (options.supervised_of, _WARM_FILE)]:
        if folder is None or (out / name).is_file():
            continue
        if not (folder / name).is_file():
            stage = "text encoder" if name == _SPACE_FILE else "warm start"
            raise invalid(f"the run {folder.name} holds no {stage} to take over; let it come so far first")
        shutil.copyfile(folder / name, out / name)


def _encoder_stage(recorded: RecordedSet, data: Path | None, out: Path, options: LearnOptions) -> SkillSpace:
    path = out / _SPACE_FILE
    if path.is_file():
        _log.info("the encoder is there already")
        stored = pickle.loads(path.read_bytes())  # noqa: S301 - our own file, in our own folder
        return SkillSpace(
            TextEncoder(stored["table"], stored["factors"]), stored["rows"], stored["centroids"]
        )
    examples = all_examples(recorded, data, options.generated_per_family)
    names = sorted({example.skill for example in examples if example.skill})
    taught, name_taught = {}, None
    if options.taught_per_skill:
        chosen = _spread(examples, options.taught_per_skill, options.seed)
        vectors = teach([examples[index].text for index in chosen], out / "teacher")
        taught = dict(zip(chosen, vectors, strict=True))
        name_taught = teach([skill_words(name) for name in names], out / "teacher")
    encoder_options = replace(options.encoder, seed=options.seed)
    space = learn_encoder(examples, taught, names, name_taught, encoder_options)
    stored = {
        "table": space.encoder.table,
        "factors": space.encoder.factors,
        "rows": dict(space.rows),
        "centroids": space.centroids,
    }
    path.write_bytes(pickle.dumps(stored))
    return space


def _spread(examples: Sequence[Example], per_skill: int, seed: int) -> list[int]:
    """Return indices of up to `per_skill` examples of each skill, and more of texts without one."""
    order = list(range(len(examples)))
    random.Random(seed).shuffle(order)  # noqa: S311 - reproducible, not secret
    counts: Counter[str] = Counter()
    chosen = []
    for index in order:
        skill = examples[index].skill
        counts[skill] += 1
        if counts[skill] <= (per_skill if skill else 8 * per_skill):
            chosen.append(index)
    return chosen


def _warm_stage(
    twin: Twin,
    model: PlanModel,
    sources: Sequence[tuple[QuestionSource, float]],
    out: Path,
    options: LearnOptions,
) -> None:
    path = out / _WARM_FILE
    if path.is_file():
        _log.info("the warm start is there already")
        twin.load(pickle.loads(path.read_bytes()))  # noqa: S301 - our own file, in our own folder
        return
    warm = replace(options.warm, seed=options.seed)
    learn_warm_start(twin, draw_lessons(model, sources, warm), warm)
    path.write_bytes(pickle.dumps(twin.export()))


def _reinforce(
    learner: Grpo, dev: Mapping[str, Sequence[Question]], out: Path, options: LearnOptions
) -> PlanModel:
    """Reinforce until the steps are done or dev stands still, and return the best model on dev."""
    state = checkpoint.load(out)
    best_score, best_arrays, since = -1.0, learner.twin.export(), 0
    if state is not None:
        learner.restore(state["learner"])
        best_score, best_arrays, since = state["best"]
        _log.info("going on at step %d", learner.step)
    progress, alarms = Progress(out, learner.step), Alarms()
    while learner.step < options.grpo.steps and since < options.patience:
        figures = _advanced(learner, out, (best_score, best_arrays, since))
        alarms.watch(figures)
        found: dict[str, float] | None = None
        if figures.step % options.dev_every == 0 or figures.step == options.grpo.steps:
            found = accuracies(dev_measured(learner.current(), dev))
            score = sum(found.values())
            since = 0 if score > best_score - _DEV_TOLERANCE else since + 1
            if score >= best_score:
                best_score, best_arrays = score, learner.twin.export()
        progress.add(figures, found)
        if found is not None:
            checkpoint.save(out, {"learner": learner.state(), "best": (best_score, best_arrays, since)})
    return learner.model.with_networks(best_arrays)
