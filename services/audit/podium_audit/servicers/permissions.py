"""Who may call what, over every service of audit's server: by the caller's certificate."""

from collections.abc import Mapping
from typing import Final

from podium_audit.servicers import audit, conversations, grades, limits, stops, usage

PERMISSIONS: Final[Mapping[str, frozenset[str]]] = {
    **audit.PERMISSIONS,
    **conversations.PERMISSIONS,
    **stops.PERMISSIONS,
    **limits.PERMISSIONS,
    **usage.PERMISSIONS,
    **grades.PERMISSIONS,
}
"""Full method names to the callers that may use them."""
