"""Made-up pools and tasks of the parametric environment: families, workers, true skills, and noisy cards."""

from collections.abc import Sequence
from dataclasses import dataclass

from podium_core.domain.errors import invalid
from podium_core.domain.pool import Card, Skill, Worker
from podium_core.domain.usage import Price
from podium_train.environments.assumptions import Assumptions
from podium_train.environments.draws import below, chosen, normal, phi, uniform
from podium_train.environments.parametric_run import THINKING
from podium_train.environments.port import Task

MEASURED_ON = "2025-06-01"
_PPM = 1_000_000
_PRICES = ((0.1, 0.3), (0.3, 1.2), (1.1, 4.4), (3.0, 15.0))
_ONE_THINKER_IN = 3
_SPEEDS = (40, 60, 90, 150)


@dataclass(frozen=True, slots=True)
class MadeUpPool:
    """`worker_count` workers on `family_count` families; all of it follows from the seed.

    Cards show what `card_samples` graded items of each family would have shown. What workers can really do is
    `accuracy`, which an environment takes as its `accuracy_of`. The last `unseen_families` are on no card:
    held out, as a real pool meets tasks that it was not measured on.
    """

    seed: int
    worker_count: int = 6
    family_count: int = 24
    card_samples: int = 50
    unseen_families: int = 0
    assumptions: Assumptions = Assumptions()

    def __post_init__(self) -> None:
        if min(self.worker_count, self.family_count, self.card_samples) < 1:
            raise invalid("a made-up pool needs a worker, a family and a graded item at least")
        if not 0 <= self.unseen_families < self.family_count:
            raise invalid("a family at least must be seen, that is on the cards", param="unseen_families")

    @property
    def families(self) -> tuple[str, ...]:
        """The names of the families."""
        return tuple(f"family {number}" for number in range(self.family_count))

    @property
    def seen(self) -> tuple[str, ...]:
        """The families that are on the cards."""
        return self.families[: self.family_count - self.unseen_families]

    @property
    def unseen(self) -> tuple[str, ...]:
        """The families that are held out."""
        return self.families[self.family_count - self.unseen_families :]

    @property
    def workers(self) -> tuple[Worker, ...]:
        """All workers with their cards."""
        return tuple(self._worker(number) for number in range(self.worker_count))

    def accuracy(self, worker: Worker, task: Task) -> float:
        """Return a worker's true accuracy on the task's family, 0..1."""
        return self._accuracy(worker.worker_id, task.family)

    def tasks(
        self,
        count: int,
        *,
        at_least: int = 3,
        at_most: int = 5,
        start: int = 0,
        families: Sequence[str] = (),
        workers: Sequence[Worker] = (),
    ) -> tuple[Task, ...]:
        """Return tasks, numbered from `start`, with random pools of `at_least` to `at_most` workers.

        `families` and `workers` restrict them to these: to `seen` or `unseen`, to known workers or others.
        """
        if not 1 <= at_least <= at_most:
            raise invalid("a task's pool needs a worker at least, and no fewer at most than at least")
        some_families, some_workers = families or self.families, workers or self.workers
        return tuple(
            self._task(number, some_workers, some_families, at_least, at_most)
            for number in range(start, start + count)
        )

    def _task(
        self, number: int, workers: Sequence[Worker], families: Sequence[str], at_least: int, at_most: int
    ) -> Task:
        name = f"made-up/{self.seed}/{number}"
        size = min(len(workers), at_least + below(at_most - at_least + 1, name, "size"))
        drawn = sorted(workers, key=lambda worker: uniform(name, "pool", worker.worker_id))[:size]
        family = chosen(families, name, "family")
        return Task(
            task_id=name,
            question=f"Task {number} of {family}.",
            reference="",
            family=family,
            category=f"group {self.families.index(family) % 4}",
            difficulty="standard",
            workers=tuple(drawn),
            seed=below(1 << 31, name, "seed"),
        )

    def _worker(self, number: int) -> Worker:
        name = f"worker-{number}"
        thinks = below(_ONE_THINKER_IN, self.seed, name, "thinks") == 0
        features = frozenset({THINKING}) if thinks else frozenset()
        skills = tuple(self._skill(name, family) for family in self.seen)
        level = below(len(_PRICES), self.seed, name, "price")
        price = Price(*(round(usd * 1e6) for usd in _PRICES[level]))
        speed = _SPEEDS[below(len(_SPEEDS), self.seed, name, "speed")]
        return Worker(
            name,
            "made-up",
            name,
            Card(skills=skills, output_tokens_per_second=speed, features=features),
            price,
        )

    def _skill(self, name: str, family: str) -> Skill:
        accuracy = self._accuracy(name, family)
        drawn = (uniform(self.seed, "card", name, family, sample) for sample in range(self.card_samples))
        right = sum(luck < accuracy for luck in drawn)
        return Skill(family, _PPM * right // self.card_samples, self.card_samples, MEASURED_ON)

    def _accuracy(self, name: str, family: str) -> float:
        assumed = self.assumptions
        strength = assumed.mean_strength
        strength += assumed.worker_spread * normal(self.seed, "ability", name)
        strength -= assumed.family_spread * normal(self.seed, "difficulty", family)
        strength += assumed.residual_spread * normal(self.seed, "residual", name, family)
        return phi(strength)
