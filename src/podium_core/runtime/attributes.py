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
SPAN_RECORD: Final = "record"
"""A write to the audit log, under whichever span asked for it."""

# GenAI conventions: attributes.
OPERATION_NAME: Final = "gen_ai.operation.name"
PROVIDER_NAME: Final = "gen_ai.provider.name"
AGENT_NAME: Final = "gen_ai.agent.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
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

# Core conventions: attributes.
ERROR_TYPE: Final = "error.type"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
HTTP_RESPONSE_STATUS_CODE: Final = "http.response.status_code"

# Podium: attributes.
RUN_ID: Final = "podium.run.id"
"""The run a span belongs to."""
RUN_KIND: Final = "podium.run.kind"
"""chat, embed, calibrate, train or probe."""
RUN_OUTCOME: Final = "podium.run.outcome"
"""How the run ended."""
TENANT_ID: Final = "podium.tenant.id"
"""Whose run it is."""
TIER: Final = "podium.tier"
"""The model name that decided how the run is planned, such as podium."""
PLAN_SOURCE: Final = "podium.plan.source"
"""Who made the plan."""
PLAN_ROUND: Final = "podium.plan.round"
"""0 for the first plan of a run."""
ROUND_RESULT: Final = "podium.round.result"
"""`accepted`, `kept`, `changed` or `unplanned`: what a round after the first did to the answer."""
PLAN_STEP_COUNT: Final = "podium.plan.step_count"
"""Steps of the plan."""
PLAN_DEPTH: Final = "podium.plan.depth"
"""The longest chain of steps that wait for each other."""
PLAN_GENERATION_COUNT: Final = "podium.plan.generation_count"
"""Generations until one was valid, that one included."""
PLAN_FALLBACK_REASON: Final = "podium.plan.fallback_reason"
"""Why the fallback plan was used; a stable reason."""
CONDUCTOR_MODEL_DIGEST: Final = "podium.conductor.model_digest"
"""Digest of what made the plan."""
STEP_INDEX: Final = "podium.step.index"
"""0-based place in the plan."""
STEP_ACCESS: Final = "podium.step.access"
"""Indices of the earlier steps that this one sees."""
STEP_SEES_PREVIOUS_ROUND: Final = "podium.step.sees_previous_round"
"""Whether it sees the answer of the round before."""
WORKER_ID: Final = "podium.worker.id"
"""The worker of a step or attempt."""
WORKER_IS_DEMO: Final = "podium.worker.is_demo"
"""Whether it is a demonstration specialist and no language model."""
ATTEMPT_ID: Final = "podium.attempt.id"
"""The attempt: also its id in the log and, as X-Client-Request-Id, at the provider."""
ATTEMPT_KIND: Final = "podium.attempt.kind"
"""plan, step, repair, continuation, embed or probe."""
ATTEMPT_OUTCOME: Final = "podium.attempt.outcome"
"""How the attempt ended."""
USAGE_SOURCE: Final = "podium.usage.source"
"""Whether token counts are the provider's, estimated or unknown."""
COST_USD_MICROS: Final = "podium.cost_usd_micros"
"""Cost in millionths of a US dollar."""
POOL_DIGEST: Final = "podium.pool.digest"
"""The version of the pool that a plan was made for."""
POOL_WORKER_COUNT: Final = "podium.pool.worker_count"
"""Workers in the pool."""
POOL_ELIGIBLE_COUNT: Final = "podium.pool.eligible_count"
"""Workers that policy, capability, health and budget left."""
POLICY_RULE_IDS: Final = "podium.policy.rule_ids"
"""The rules that excluded a worker."""
LIMIT_KIND: Final = "podium.limit.kind"
"""requests_per_minute, tokens_per_minute or concurrent_runs."""
LIMIT_SCOPE: Final = "podium.limit.scope"
"""Whose limit: `key`, or `tenant` for all its keys together."""
BUDGET_PERCENT: Final = "podium.budget.percent"
"""The share of a tenant's monthly budget that is used, one of its warn_at_percent."""
AUDIT_LEAF_INDEX: Final = "podium.audit.leaf_index"
"""Index in the log of the record that was committed."""
WORKER_HEALTH: Final = "podium.worker.health"
"""up, paused by its provider, down after failures in a row, or unconfigured: without its key."""
ANCHOR_KIND: Final = "podium.anchor.kind"
"""cosignature, time_stamp or file."""
ANCHOR_PLACE: Final = "podium.anchor.place"
"""Name and key hash of a witness; empty for the other kinds, of which there is one each."""
ANCHOR_FAILURE: Final = "podium.anchor.failure"
"""`unreached`, or `forked` when the place says that the log does not continue what it saw before."""
CONFIG_FILE: Final = "podium.config.file"
"""Name of a configuration file, such as pool.yaml, or of a kind of a cluster's objects, such as workers."""
CONFIG_OUTCOME: Final = "podium.config.outcome"
"""`taken`, `refused` for a version with a mistake, `unreachable` for each try while the cluster is away: the
last good version stays in force."""

# GenAI conventions: metrics.
METRIC_INFERENCE_DURATION: Final = "gen_ai.client.inference.duration"
METRIC_TIME_TO_FIRST_CHUNK: Final = "gen_ai.client.inference.time_to_first_chunk"
METRIC_INPUT_TOKENS: Final = "gen_ai.client.inference.usage.input_tokens"
METRIC_OUTPUT_TOKENS: Final = "gen_ai.client.inference.usage.output_tokens"
METRIC_CACHE_READ_INPUT_TOKENS: Final = "gen_ai.client.inference.usage.cache_read.input_tokens"
METRIC_CACHE_WRITE_INPUT_TOKENS: Final = "gen_ai.client.inference.usage.cache_write.input_tokens"
METRIC_REASONING_OUTPUT_TOKENS: Final = "gen_ai.client.inference.usage.reasoning.output_tokens"
METRIC_INVOKE_AGENT_DURATION: Final = "gen_ai.invoke_agent.duration"

# Podium: metrics.
METRIC_RUNS: Final = "podium.runs"
"""Counter of ended runs, by outcome."""
METRIC_RUN_DURATION: Final = "podium.run.duration"
"""Histogram, s: from admission to seal."""
METRIC_RUN_FIRST_OUTPUT: Final = "podium.run.time_to_first_output"
"""Histogram, s: from admission to the first output that the client was sent, by tier."""
METRIC_RUNS_ACTIVE: Final = "podium.runs.active"
"""Runs that are being performed now."""
METRIC_RUN_COST: Final = "podium.run.cost_usd_micros"
"""Counter of money spent by runs, by tenant."""
METRIC_PLANS: Final = "podium.plans"
"""Counter of plans, by source."""
METRIC_PLAN_FALLBACKS: Final = "podium.plan.fallbacks"
"""Counter of plans that are less than what was asked for, by reason."""
METRIC_ROUNDS: Final = "podium.rounds"
"""Counter of rounds after the first, by what they did to the answer."""
METRIC_PLAN_DURATION: Final = "podium.plan.duration"
"""Histogram, s: from question to plan."""
METRIC_MODEL_RUNNING: Final = "podium.conductor.model.running"
"""Texts that the Conductor's own model is generating now."""
METRIC_MODEL_WAITING: Final = "podium.conductor.model.waiting"
"""Texts that wait for a place in its batch."""
METRIC_MODEL_CACHE: Final = "podium.conductor.model.cache_usage"
"""Used share of its memory for prompts, 0 to 1."""
METRIC_ATTEMPTS: Final = "podium.attempts"
"""Counter of ended attempts, by worker and outcome."""
METRIC_ATTEMPT_COST: Final = "podium.attempt.cost_usd_micros"
"""Counter of money spent by attempts, by worker."""
METRIC_ATTEMPTS_ACTIVE: Final = "podium.attempts.active"
"""Provider calls under way now."""
METRIC_QUEUE_WAITING: Final = "podium.worker.queue.waiting"
"""Calls that wait for a place at a worker now, by worker."""
METRIC_QUEUE_DURATION: Final = "podium.worker.queue.duration"
"""Histogram, s: the wait for a place at a worker, by worker."""
METRIC_WORKERS: Final = "podium.workers"
"""1 for each worker of the pool under the health that it has now, by worker and health."""
METRIC_REFUSALS: Final = "podium.refusals"
"""Counter of refused requests, by error.type."""
METRIC_CONFIG_RELOADS: Final = "podium.config.reloads"
"""Counter of new versions of configuration, by file and outcome."""
METRIC_TLS_EXPIRY: Final = "podium.tls.certificate.expiry"
"""Gauge, s: when the certificate ends that new connections use, in seconds since 1970."""
METRIC_LIMIT_REFUSALS: Final = "podium.limit.refusals"
"""Counter of requests that a limit refused, by tenant, scope and kind."""
METRIC_BUDGET_WARNINGS: Final = "podium.budget.warnings"
"""Counter of warnings, by tenant and share: one per share and month, beside its record."""
METRIC_AUDIT_COMMIT_DURATION: Final = "podium.audit.commit.duration"
"""Histogram, s: one commit with its checkpoint."""
METRIC_AUDIT_COMMIT_RECORDS: Final = "podium.audit.commit.records"
"""Histogram: records per commit."""
METRIC_AUDIT_REFUSED: Final = "podium.audit.refused"
"""Counter of commits that failed, and of writes that found no room to wait for one or waited in vain."""
METRIC_AUDIT_HEALTHY: Final = "podium.audit.healthy"
"""Gauge: 1 while the log can commit, 0 while its database or disk refuses; nothing is dispatched then."""
METRIC_AUDIT_TREE_SIZE: Final = "podium.audit.tree.size"
"""Leaves in the log."""
METRIC_AUDIT_RUNS_OPEN: Final = "podium.audit.runs.open"
"""Runs that are not sealed."""
METRIC_ANCHORED_SIZE: Final = "podium.audit.anchored.size"
"""Leaves under the newest checkpoint tied down outside, by kind and place; 0 until the first one."""
METRIC_ANCHOR_FAILURES: Final = "podium.audit.anchor.failures"
"""Counter of anchors that were not got, by kind, place and failure."""
METRIC_AUDIT_RESERVED: Final = "podium.audit.reserved_usd_micros"
"""Money reserved by attempts under way."""

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
