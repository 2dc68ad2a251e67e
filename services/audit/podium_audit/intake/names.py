"""Which attributes of a span are kept, and under which name: one table for every generation of names.

GenAI conventions v0.1.0 as they are; older names of the same conventions (v1.30 to v1.41 of the core
repository) and OpenInference (0.1) under today's. What holds content, or may, has no line here.
"""

from collections.abc import Mapping
from typing import Final

from podium_core.runtime import attributes as now

_KEPT: Final = frozenset(
    {
        *(
            value
            for name, value in vars(now).items()
            if name.isupper()
            and isinstance(value, str)
            and not name.startswith(("SPAN_", "METRIC_", "OPERATION_I"))
        ),
        "gen_ai.conversation.id",
        "gen_ai.output.type",
        "gen_ai.prompt.name",
        "gen_ai.prompt.version",
        "gen_ai.request.choice.count",
        "gen_ai.request.seed",
        "gen_ai.request.temperature",
        "gen_ai.request.top_k",
        "gen_ai.request.top_p",
        "gen_ai.tool.name",
        "gen_ai.tool.type",
        "http.request.method",
    }
)

_RENAMED: Final[Mapping[str, str]] = {
    # GenAI conventions before their own repository
    "gen_ai.system": now.PROVIDER_NAME,
    "gen_ai.usage.prompt_tokens": now.USAGE_INPUT_TOKENS,
    "gen_ai.usage.completion_tokens": now.USAGE_OUTPUT_TOKENS,
    "gen_ai.usage.cache_creation.input_tokens": now.USAGE_CACHE_WRITE_INPUT_TOKENS,
    "gen_ai.usage.cache_creation_input_tokens": now.USAGE_CACHE_WRITE_INPUT_TOKENS,
    "gen_ai.usage.cache_read_input_tokens": now.USAGE_CACHE_READ_INPUT_TOKENS,
    "gen_ai.usage.cached_tokens": now.USAGE_CACHE_READ_INPUT_TOKENS,
    "gen_ai.usage.reasoning_tokens": now.USAGE_REASONING_OUTPUT_TOKENS,
    "gen_ai.openai.request.seed": "gen_ai.request.seed",
    "gen_ai.workflow.name": now.AGENT_NAME,
    # OpenInference
    "llm.model_name": now.REQUEST_MODEL,
    "embedding.model_name": now.REQUEST_MODEL,
    "reranker.model_name": now.REQUEST_MODEL,
    "llm.provider": now.PROVIDER_NAME,
    "llm.system": now.PROVIDER_NAME,
    "llm.token_count.prompt": now.USAGE_INPUT_TOKENS,
    "llm.token_count.completion": now.USAGE_OUTPUT_TOKENS,
    "llm.token_count.prompt_details.cache_read": now.USAGE_CACHE_READ_INPUT_TOKENS,
    "llm.token_count.prompt_details.cache_write": now.USAGE_CACHE_WRITE_INPUT_TOKENS,
    "llm.token_count.completion_details.reasoning": now.USAGE_REASONING_OUTPUT_TOKENS,
    "agent.name": now.AGENT_NAME,
    "graph.node.name": now.AGENT_NAME,
    "session.id": "gen_ai.conversation.id",
    "tool.name": "gen_ai.tool.name",
    # Core conventions
    "http.status_code": now.HTTP_RESPONSE_STATUS_CODE,
    "http.method": "http.request.method",
    "net.peer.name": now.SERVER_ADDRESS,
    "exception.type": now.ERROR_TYPE,
}

_OPERATIONS: Final[Mapping[str, str]] = {
    "AGENT": now.OPERATION_INVOKE_AGENT,
    "CHAIN": now.OPERATION_INVOKE_WORKFLOW,
    "EMBEDDING": "embeddings",
    "LLM": now.OPERATION_CHAT,
    "RETRIEVER": "retrieval",
    "TOOL": "execute_tool",
}
_OPENINFERENCE_KIND: Final = "openinference.span.kind"


def kept(attributes: Mapping[str, object]) -> dict[str, object]:
    """Return the attributes that may stay, under today's names; a name of today wins over an older one."""
    found = {
        _RENAMED[name]: value for name, value in attributes.items() if name in _RENAMED and name not in _KEPT
    }
    found |= {name: value for name, value in attributes.items() if name in _KEPT}
    kind = _OPERATIONS.get(str(attributes.get(_OPENINFERENCE_KIND, "")).upper())
    if kind is not None:
        found.setdefault(now.OPERATION_NAME, kind)
    return found
