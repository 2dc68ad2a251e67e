"""Domain enumerations on the wire: one table each, built from the names, so none can be forgotten."""

from enum import StrEnum
from typing import Any, Generic, TypeVar

from podium_core.domain.errors import PodiumError, invalid

D = TypeVar("D", bound=StrEnum)
P = TypeVar("P", bound=int)


class EnumTable(Generic[D, P]):
    """Translates members of `domain` to values of `proto`, whose names are `<prefix>_<member name>`."""

    def __init__(self, domain: type[D], proto: type[P], prefix: str) -> None:
        self._name = prefix.lower()
        values: Any = proto  # generated enumerations are types in the stubs only
        self._to_proto: dict[D, P] = {member: values.Value(f"{prefix}_{member.name}") for member in domain}
        self._from_proto: dict[int, D] = {value: member for member, value in self._to_proto.items()}

    def to_proto(self, member: D) -> P:
        """Return the wire value."""
        return self._to_proto[member]

    def from_proto(self, value: int) -> D:
        """Return the member; raise PodiumError (INVALID_REQUEST) when it is unspecified or unknown."""
        member = self._from_proto.get(value)
        if member is None:
            raise self._refusal(value)
        return member

    def _refusal(self, value: int) -> PodiumError:
        state = "not set" if value == 0 else f"{value}, which this version does not know"
        return invalid(f"{self._name} is {state}", reason="WIRE_VALUE_UNKNOWN", param=self._name)
