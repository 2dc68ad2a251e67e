"""The grade port in memory: knows the runs it is told of, and whatever tallies a test wants."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.gate import GradeTally
from podium_gateway.ports import GradePort


@dataclass(slots=True)
class FakeGrades(GradePort):
    """Takes grades of `ended` runs, by (tenant id, run id); `known` are their tallies by tenant.

    `of_any_key` tells of each grade that was taken whether its giver may grade other keys' runs.
    """

    ended: set[tuple[str, str]] = field(default_factory=set)
    known: dict[str, Sequence[GradeTally]] = field(default_factory=dict)
    taken: list[tuple[str, str, str, int, str]] = field(default_factory=list)
    of_any_key: list[bool] = field(default_factory=list)

    async def grade(
        self,
        tenant_id: str,
        run_id: str,
        principal_id: str,
        *,
        score_ppm: int,
        comment: str,
        of_any_key: bool = False,
    ) -> int:
        """Keep the grade."""
        if (tenant_id, run_id) not in self.ended:
            raise PodiumError(Code.NOT_FOUND, "there is no such run", reason="RUN_UNKNOWN", param="run_id")
        self.taken.append((tenant_id, run_id, principal_id, score_ppm, comment))
        self.of_any_key.append(of_any_key)
        return len(self.taken) - 1

    def tallies(self, tenant_id: str) -> Sequence[GradeTally]:
        """Return what the test has set."""
        return self.known.get(tenant_id, ())
