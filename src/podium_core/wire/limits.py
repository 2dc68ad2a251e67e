"""Names of limits on the wire."""

from podium.audit.v1 import limit_service_pb2
from podium_core.domain.limits import LimitKind, LimitName
from podium_core.wire.enums import EnumTable

_LIMIT_KIND = EnumTable(LimitKind, limit_service_pb2.LimitKind, "LIMIT_KIND")


def limit_name_to_proto(name: LimitName) -> limit_service_pb2.LimitName:
    """Return the message."""
    return limit_service_pb2.LimitName(
        tenant_id=name.tenant_id, key_id=name.key_id, kind=_LIMIT_KIND.to_proto(name.kind)
    )


def limit_name_from_proto(message: limit_service_pb2.LimitName) -> LimitName:
    """Return the name; raise PodiumError (INVALID_REQUEST) for a kind that no version knows."""
    return LimitName(message.tenant_id, message.key_id, _LIMIT_KIND.from_proto(message.kind))
