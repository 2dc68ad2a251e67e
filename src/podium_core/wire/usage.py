"""Usage on the wire."""

from podium.plan.v1 import plan_pb2
from podium_core.domain.usage import Usage, UsageSource
from podium_core.wire.enums import EnumTable

USAGE_SOURCE = EnumTable(UsageSource, plan_pb2.UsageSource, "USAGE_SOURCE")


def usage_to_proto(usage: Usage) -> plan_pb2.Usage:
    """Return `usage` as a message."""
    return plan_pb2.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_input_tokens=usage.cached_input_tokens,
        cache_write_input_tokens=usage.cache_write_input_tokens,
        reasoning_output_tokens=usage.reasoning_output_tokens,
        source=USAGE_SOURCE.to_proto(usage.source),
    )


def usage_from_proto(message: plan_pb2.Usage) -> Usage:
    """Return the usage in `message`; raise PodiumError (INVALID_REQUEST) without a known source."""
    return Usage(
        message.input_tokens,
        message.output_tokens,
        message.cached_input_tokens,
        message.cache_write_input_tokens,
        message.reasoning_output_tokens,
        USAGE_SOURCE.from_proto(message.source),
    )
