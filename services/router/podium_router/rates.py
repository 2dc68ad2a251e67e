"""Allowances per minute: requests and tokens that one worker may be asked for."""

_S_PER_MINUTE = 60.0


class Allowance:
    """So much per minute, filling evenly; at most one minute's worth is kept (a token bucket).

    Times are seconds of any steady clock. More may be taken than there is when it turns out to be used:
    then nobody gets any until the debt is gone.
    """

    def __init__(self, per_minute: int, now_s: float) -> None:
        self._per_minute = per_minute
        self._left = float(per_minute)
        self._at_s = now_s

    @property
    def per_minute(self) -> int:
        """The limit."""
        return self._per_minute

    def wait_s(self, amount: int, now_s: float) -> float:
        """Return how long until `amount` may be taken; 0 when it may be now.

        What is more than a minute's worth waits for a whole minute's worth.
        """
        self._fill(now_s)
        missing = min(amount, self._per_minute) - self._left
        return max(0.0, missing * _S_PER_MINUTE / self._per_minute)

    def take(self, amount: int, now_s: float) -> None:
        """Take `amount`; a negative one is given back."""
        self._fill(now_s)
        self._left = min(self._left - amount, float(self._per_minute))

    def _fill(self, now_s: float) -> None:
        gained = max(0.0, now_s - self._at_s) * self._per_minute / _S_PER_MINUTE
        self._left = min(self._left + gained, float(self._per_minute))
        self._at_s = now_s
