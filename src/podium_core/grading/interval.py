"""How sure a measured share is."""

import math

_Z_95 = 1.959964


def wilson(right: int, count: int, z: float = _Z_95) -> tuple[float, float]:
    """Return the Wilson score interval of a share, 95 % by default; (0, 1) when nothing was measured."""
    if count == 0:
        return 0.0, 1.0
    share = right / count
    spread = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    middle = share + z * z / (2 * count)
    scale = 1 + z * z / count
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)
