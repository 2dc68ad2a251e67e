"""docs/telemetry.md: every span, attribute and metric name, with its meaning."""

from pathlib import Path

from docs.generated.docstrings import meanings
from docs.generated.markdown import table
from podium_core.runtime import attributes

_HEAD = """\
# Telemetry

Generated from code by `make docs`. Set `PODIUM_<SERVICE>_OTLP_ENDPOINT` for traces and metrics over OTLP/gRPC
and `PODIUM_<SERVICE>_OPS_LISTEN` for a Prometheus endpoint beside `/livez` and `/readyz`. Both are off by
default; `podium up` switches the Prometheus endpoints on.

Names follow the OpenTelemetry GenAI conventions v0.1.0 where they have a word; Podium's own facts are
`podium.*`. Spans carry no content, no exception text and no identities. They may be lost, the log may not:
never bill or prove by spans.

The spans of a run, across all services:

```
invoke_workflow                 one run (gateway)
├── policy                      who may work
├── plan                        the Conductor's answer
└── invoke_agent                one step
    └── chat                    one provider call (router)
```

"""
_GROUPS = (("SPAN_", "Spans"), ("METRIC_", "Metrics"), ("OPERATION_", "Values of `gen_ai.operation.name`"))
_SECTIONS = ("Spans", "Attributes", "Values of `gen_ai.operation.name`", "Metrics")

STANDARD_MEANINGS = {
    "SPAN_RUN": "One run, from admission to seal. The tier follows the name.",
    "SPAN_POLICY": "Deciding which workers may take part.",
    "SPAN_PLAN": "One answer of the Conductor.",
    "SPAN_STEP": "One step, all its attempts included. The worker follows the name.",
    "SPAN_CHAT": "One provider call, permit included. The model follows the name.",
    "OPERATION_NAME": "What a span does, see below.",
    "PROVIDER_NAME": "Protocol family of the provider.",
    "AGENT_NAME": "The worker that performs a step; on a run, the tier.",
    "REQUEST_MODEL": "The model that was asked for.",
    "REQUEST_MAX_TOKENS": "Output limit sent to the provider, tokens.",
    "REQUEST_STREAM": "Whether the call streams.",
    "RESPONSE_ID": "The provider's id of its answer.",
    "RESPONSE_MODEL": "The model that the provider says has answered.",
    "RESPONSE_FINISH_REASONS": "Why output ended; `error` when it was cut off.",
    "RESPONSE_TIME_TO_FIRST_CHUNK": "Seconds until the first output.",
    "USAGE_INPUT_TOKENS": "Tokens read, cached ones included.",
    "USAGE_OUTPUT_TOKENS": "Tokens written, reasoning included.",
    "USAGE_CACHE_READ_INPUT_TOKENS": "Of the tokens read, those from a cache.",
    "USAGE_CACHE_WRITE_INPUT_TOKENS": "Of the tokens read, those written to a cache.",
    "USAGE_REASONING_OUTPUT_TOKENS": "Of the tokens written, those spent on reasoning.",
    "OPERATION_INVOKE_WORKFLOW": "A run.",
    "OPERATION_PLAN": "A plan.",
    "OPERATION_INVOKE_AGENT": "A step.",
    "OPERATION_CHAT": "A provider call.",
    "ERROR_TYPE": "The reason of the failure, see [errors](errors.md).",
    "SERVER_ADDRESS": "Host that was called.",
    "SERVER_PORT": "Port that was called.",
    "HTTP_RESPONSE_STATUS_CODE": "The provider's HTTP status.",
    "METRIC_INFERENCE_DURATION": "Histogram, s: provider calls from dispatch to end.",
    "METRIC_TIME_TO_FIRST_CHUNK": "Histogram, s: until the first output of a provider call.",
    "METRIC_INPUT_TOKENS": "Counter: tokens read.",
    "METRIC_OUTPUT_TOKENS": "Counter: tokens written.",
    "METRIC_CACHE_READ_INPUT_TOKENS": "Counter: of the tokens read, those from a cache.",
    "METRIC_CACHE_WRITE_INPUT_TOKENS": "Counter: of the tokens read, those written to a cache.",
    "METRIC_REASONING_OUTPUT_TOKENS": "Counter: of the tokens written, those spent on reasoning.",
    "METRIC_INVOKE_AGENT_DURATION": "Histogram, s: steps, all their attempts included, by worker.",
}


def render() -> str:
    """Return the page; KeyError names a constant that has no meaning yet."""
    meaning_of = STANDARD_MEANINGS | meanings(Path(attributes.__file__))
    names = {n: v for n, v in vars(attributes).items() if n.isupper() and isinstance(v, str)}
    rows: dict[str, list[tuple[str, str]]] = {title: [] for title in _SECTIONS}
    for name, value in names.items():
        title = next(
            (t for prefix, t in _GROUPS if name.startswith(prefix) and name != "OPERATION_NAME"), "Attributes"
        )
        rows[title].append((f"`{value}`", meaning_of[name]))
    sections = [f"## {title}\n\n{table(('name', 'meaning'), sorted(rows[title]))}" for title in _SECTIONS]
    return _HEAD + "\n".join(sections)
