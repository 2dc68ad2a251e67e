"""What the log adds up to: per worker and skill how many of how many were right, and how fast."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from podium_cli.calibrate.journal import Ended, Journal
from podium_cli.calibrate.plan import PlannedCall
from podium_core.grading.interval import wilson
from podium_core.grading.result import Grade

_PPM = 1_000_000
_US_PER_S = 1_000_000


@dataclass(slots=True)
class SkillScore:
    """Right answers of those that could be graded."""

    right: int = 0
    count: int = 0
    unscorable: int = 0

    @property
    def accuracy_ppm(self) -> int:
        """The share of right answers, in millionths."""
        return round(_PPM * self.right / self.count) if self.count else 0

    @property
    def interval(self) -> tuple[float, float]:
        """The Wilson 95 % interval of the share."""
        return wilson(self.right, self.count)


@dataclass(slots=True)
class WorkerScore:
    """What was measured of one worker. `lost` calls were cut short and never graded."""

    skills: dict[str, SkillScore] = field(default_factory=dict)
    cost_usd_micros: int = 0
    output_tokens: int = 0
    latency_us: int = 0
    lost: int = 0
    left: int = 0

    @property
    def total(self) -> SkillScore:
        """All skills together."""
        skills = self.skills.values()
        return SkillScore(
            sum(s.right for s in skills), sum(s.count for s in skills), sum(s.unscorable for s in skills)
        )

    @property
    def output_tokens_per_second(self) -> int:
        """Output tokens over the whole time of the calls; 0 when nothing was measured."""
        if not self.output_tokens or not self.latency_us:
            return 0
        return max(1, min(_PPM, round(self.output_tokens * _US_PER_S / self.latency_us)))


def scores_of(calls: Sequence[PlannedCall], journal: Journal) -> dict[str, WorkerScore]:
    """Return the scores of every worker in `calls`, from these calls alone."""
    scores: dict[str, WorkerScore] = {}
    for call in calls:
        score = scores.setdefault(call.worker.worker_id, WorkerScore())
        skill = score.skills.setdefault(call.item.skill, SkillScore())
        ended = journal.ended.get(call.key)
        if ended is not None:
            _add(score, skill, ended)
        elif call.key in journal.lost:
            score.lost += 1
        else:
            score.left += 1
    return scores


def _add(score: WorkerScore, skill: SkillScore, ended: Ended) -> None:
    score.cost_usd_micros += ended.cost_usd_micros
    if ended.grade == Grade.UNSCORABLE:
        skill.unscorable += 1
        return
    skill.count += 1
    skill.right += ended.grade == Grade.RIGHT
    score.output_tokens += ended.output_tokens
    score.latency_us += ended.latency_us
