"""Clock and identifiers under the tests' control."""

from dataclasses import dataclass


@dataclass(slots=True)
class FakeClock:
    """A clock that moves only when told to."""

    wall_ns: int = 1_790_000_000_000_000_000
    steady_ns: int = 0

    def now_ns(self) -> int:
        """Return the set wall time."""
        return self.wall_ns

    def monotonic_ns(self) -> int:
        """Return the set steady time."""
        return self.steady_ns

    def advance(self, seconds: float) -> None:
        """Move both times forward."""
        self.wall_ns += int(seconds * 1e9)
        self.steady_ns += int(seconds * 1e9)


@dataclass(slots=True)
class CountingIds:
    """Ids that count up, so that tests can name them."""

    count: int = 0

    def new(self, prefix: str) -> str:
        """Return the prefix and the next number."""
        self.count += 1
        return f"{prefix}_{self.count:032x}"

    def tag(self) -> str:
        """Return the next number as a tag."""
        self.count += 1
        return f"tag{self.count:05x}"

    def seed(self) -> int:
        """Return the next number as a seed."""
        self.count += 1
        return self.count
