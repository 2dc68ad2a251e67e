"""Every span, metric and attribute name that Podium emits, with its meaning.

GenAI conventions v0.1.0 where they have a word, `podium.*` where they have none (never a home-made
`gen_ai.*`). Code uses these constants only, so a new generation of names is a change to this file.
"""

from typing import Final

from podium_core.domain.usage import Usage

# Spans. The tree of a run: run > policy, plan, step > chat.
SPAN_RUN: Final = "invoke_workflow"
SPAN_POLICY: Final = "policy"
SPAN_PLAN: Final = "plan"
SPAN_STEP: Final = "invoke_agent"
SPAN_CHAT: Final = "chat"

# GenAI conventions: attributes.
OPERATION_NAME: Final = "gen_ai.operation.name"
PROVIDER_NAME: Final = "gen_ai.provider.name"
AGENT_NAME: Final = "gen_ai.agent.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
REQUEST_TOP_P: Final = "gen_ai.request.top_p"
REQUEST_SEED: Final = "gen_ai.request.seed"
REQUEST_STREAM: Final = "gen_ai.request.stream"
RESPONSE_ID: Final = "gen_ai.response.id"
RESPONSE_MODEL: Final = "gen_ai.response.model"
RESPONSE_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
RESPONSE_TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
USAGE_INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
USAGE_OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
USAGE_CACHE_READ_INPUT_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
USAGE_CACHE_WRITE_INPUT_TOKENS: Final = "gen_ai.usage.cache_write.input_tokens"
USAGE_REASONING_OUTPUT_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"

# Values of gen_ai.operation.name.
OPERATION_INVOKE_WORKFLOW: Final = "invoke_workflow"
OPERATION_PLAN: Final = "plan"
OPERATION_INVOKE_AGENT: Final = "invoke_agent"
OPERATION_CHAT: Final = "chat"
OPERATION_EMBEDDINGS: Final = "embeddings"

# Core conventions: attributes.
ERROR_TYPE: Final = "error.type"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
HTTP_RESPONSE_STATUS_CODE: Final = "http.response.status_code"

# Podium: attributes.
RUN_ID: Final = "podium.run.id"
RUN_KIND: Final = "podium.run.kind"
RUN_OUTCOME: Final = "podium.run.outcome"
TENANT_ID: Final = "podium.tenant.id"
TIER: Final = "podium.tier"
PLAN_SOURCE: Final = "podium.plan.source"
PLAN_ROUND: Final = "podium.plan.round"
PLAN_STEP_COUNT: Final = "podium.plan.step_count"
PLAN_DEPTH: Final = "podium.plan.depth"
PLAN_GENERATION_COUNT: Final = "podium.plan.generation_count"
PLAN_FALLBACK_REASON: Final = "podium.plan.fallback_reason"
CONDUCTOR_MODEL_DIGEST: Final = "podium.conductor.model_digest"
STEP_INDEX: Final = "podium.step.index"
STEP_ACCESS: Final = "podium.step.access"
STEP_SEES_PREVIOUS_ROUND: Final = "podium.step.sees_previous_round"
WORKER_ID: Final = "podium.worker.id"
WORKER_IS_DEMO: Final = "podium.worker.is_demo"
ATTEMPT_ID: Final = "podium.attempt.id"
ATTEMPT_KIND: Final = "podium.attempt.kind"
ATTEMPT_OUTCOME: Final = "podium.attempt.outcome"
USAGE_SOURCE: Final = "podium.usage.source"
COST_USD_MICROS: Final = "podium.cost_usd_micros"
POOL_DIGEST: Final = "podium.pool.digest"
POOL_WORKER_COUNT: Final = "podium.pool.worker_count"
POOL_ELIGIBLE_COUNT: Final = "podium.pool.eligible_count"
POLICY_RULE_IDS: Final = "podium.policy.rule_ids"
AUDIT_LEAF_INDEX: Final = "podium.audit.leaf_index"
AUDIT_RECORD_TYPE: Final = "podium.audit.record_type"

# GenAI conventions: metrics.
METRIC_INFERENCE_DURATION: Final = "gen_ai.client.inference.duration"
METRIC_TIME_TO_FIRST_CHUNK: Final = "gen_ai.client.inference.time_to_first_chunk"
METRIC_INPUT_TOKENS: Final = "gen_ai.client.inference.usage.input_tokens"
METRIC_OUTPUT_TOKENS: Final = "gen_ai.client.inference.usage.output_tokens"
METRIC_CACHE_READ_INPUT_TOKENS: Final = "gen_ai.client.inference.usage.cache_read.input_tokens"
METRIC_CACHE_WRITE_INPUT_TOKENS: Final = "gen_ai.client.inference.usage.cache_write.input_tokens"
METRIC_REASONING_OUTPUT_TOKENS: Final = "gen_ai.client.inference.usage.reasoning.output_tokens"
METRIC_INVOKE_AGENT_DURATION: Final = "gen_ai.invoke_agent.duration"
METRIC_SERVER_REQUEST_DURATION: Final = "gen_ai.server.request.duration"

# Podium: metrics.
METRIC_RUNS: Final = "podium.runs"
METRIC_RUN_DURATION: Final = "podium.run.duration"
METRIC_RUNS_ACTIVE: Final = "podium.runs.active"
METRIC_RUN_COST: Final = "podium.run.cost_usd_micros"
METRIC_PLANS: Final = "podium.plans"
METRIC_PLAN_DURATION: Final = "podium.plan.duration"
METRIC_ATTEMPTS: Final = "podium.attempts"
METRIC_ATTEMPT_COST: Final = "podium.attempt.cost_usd_micros"
METRIC_ATTEMPTS_ACTIVE: Final = "podium.attempts.active"
METRIC_REFUSALS: Final = "podium.refusals"
METRIC_AUDIT_COMMIT_DURATION: Final = "podium.audit.commit.duration"
METRIC_AUDIT_COMMIT_RECORDS: Final = "podium.audit.commit.records"
METRIC_AUDIT_TREE_SIZE: Final = "podium.audit.tree.size"
METRIC_AUDIT_RUNS_OPEN: Final = "podium.audit.runs.open"
METRIC_AUDIT_RESERVED: Final = "podium.audit.reserved_usd_micros"

DURATION_BUCKETS_S: Final = tuple(0.01 * 2**power for power in range(14))
"""Bucket bounds of every duration: 10 ms doubling to 81.92 s, as GenAI conventions v0.1.0 ask."""

USAGE_FIELDS: Final = {
    "input_tokens": (USAGE_INPUT_TOKENS, METRIC_INPUT_TOKENS),
    "output_tokens": (USAGE_OUTPUT_TOKENS, METRIC_OUTPUT_TOKENS),
    "cached_input_tokens": (USAGE_CACHE_READ_INPUT_TOKENS, METRIC_CACHE_READ_INPUT_TOKENS),
    "cache_write_input_tokens": (USAGE_CACHE_WRITE_INPUT_TOKENS, METRIC_CACHE_WRITE_INPUT_TOKENS),
    "reasoning_output_tokens": (USAGE_REASONING_OUTPUT_TOKENS, METRIC_REASONING_OUTPUT_TOKENS),
}
"""The mapping table: each count of `Usage` with its span attribute and its counter."""


def usage_attributes(usage: Usage) -> dict[str, int | str]:
    """Return the span attributes of `usage`: subsets only where they are not zero."""
    attributes: dict[str, int | str] = {
        USAGE_INPUT_TOKENS: usage.input_tokens,
        USAGE_OUTPUT_TOKENS: usage.output_tokens,
        USAGE_SOURCE: usage.source.value,
    }
    for field, (attribute, _) in USAGE_FIELDS.items():
        if count := getattr(usage, field):
            attributes[attribute] = count
    return attributes
