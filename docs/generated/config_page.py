"""docs/config.md: every setting of every service, and the two files with all their fields."""

from pydantic_settings import BaseSettings

from docs.generated.markdown import table
from podium_audit.settings import AuditSettings
from podium_audit.witness.settings import WitnessSettings
from podium_cli.settings import CliSettings
from podium_conductor.settings import ConductorSettings
from podium_core.runtime.settings_base import ProcessSettings, ServiceSettings
from podium_gateway.settings import GatewaySettings
from podium_router.settings import RouterSettings

SERVICES: tuple[type[ProcessSettings], ...] = (
    GatewaySettings,
    ConductorSettings,
    RouterSettings,
    AuditSettings,
    WitnessSettings,
)

TENANTS_EXAMPLE = """\
tenants:
  - id: research                     # letters, digits, dots, dashes, underscores
    budget_usd_per_month: "25.00"    # optional; a UTC calendar month, reserved before each call
    warn_at_percent: [80]            # of its and its keys' budgets: a record a month, and in every answer
    limits:                          # optional; of all its keys together, over every gateway
      requests_per_minute: 600       # in any 60 seconds
      tokens_per_minute: 400000      # everything billed: all steps, planning and retries
      concurrent_runs: 20
    workers:                         # optional; by default every worker of the pool
      only: [my-model, demo-text]    # leave out to allow all
      except: []
    providers: {except: [bedrock]}   # optional; the same by protocol family
    regions: {only: [eu]}            # optional; the same by region; a worker without one is kept out
    content: sealed                  # or commitments: the log proves what was said and stores none of it
    retention: {content_days: 30}    # optional; docs/retention.md
    caps:                            # optional; the tightest of request, tenant and server holds
      max_steps: 5
      max_calls: 20
      max_tokens: 200000
      max_usd: "0.50"
      max_seconds: 300
      max_rounds: 1
    keys:
      - id: alice                    # shows in the log; `podium keys create alice` writes this entry
        sha256: 0000000000000000000000000000000000000000000000000000000000000000
        roles: [client]              # ask, read own runs; others: docs/retention.md
        expires: 2027-01-01          # optional; the first day, or UTC time, at which it no longer works
        budget_usd_per_month: "5.00" # optional; of this key, within the tenant's
        workers: {only: [my-model]}  # optional, as above; the lists of tenant and key both hold
        previous:                    # what `podium keys rotate` leaves for a while
          - sha256: 1111111111111111111111111111111111111111111111111111111111111111
            until: "2026-12-31T12:00:00Z"
        limits:                      # optional; of this key, within those of the tenant
          requests_per_minute: 60
"""

POOL_EXAMPLE = """\
workers:
  - id: my-model                     # the model name worker/my-model asks for it alone
    provider: openai-compatible      # any of those below
    model: name-at-the-provider
    base_url: https://provider.example/v1
    key: {env: MY_PROVIDER_KEY}      # or {file: /run/secrets/key}; never the key itself; optional
    region: eu                       # optional; recorded with every attempt
    demo: false                      # true marks it as demo wherever it shows
    price:                           # optional; without it, left out wherever cost is capped
      input_usd_per_mtok: "0.25"
      cached_input_usd_per_mtok: "0.03"   # optional; read from the provider's cache, settled apart
      cache_write_input_usd_per_mtok: "0.31"   # optional; written to it (Anthropic's dearest that you use)
      output_usd_per_mtok: "2.00"
    limits:                          # optional
      max_concurrency: 64
      requests_per_minute: 600       # beside it, per router; left out: not limited
      tokens_per_minute: 200000      # likewise: reserved as estimated, settled as used
      timeout_s: 120                 # a whole call
      connect_timeout_s: 5           # these three: left out, the router's settings hold
      first_token_timeout_s: 120     # streamed: until the first output
      idle_timeout_s: 120            # streamed: each gap after that
      hedge_after_s: 8               # off when left out: a second call races one that says nothing so long
    # hedge_learned: true            # instead: as long as 19 of 20 of its recent answers took
      context_tokens: 128000         # 0: unknown
      max_output_tokens: 4096        # always sent to the provider
    modalities: [text, image, audio] # default: text
    features:                        # what it takes besides; a request that needs another leaves it out
      - tools
      - json_schema
      - logprobs
      - logit_bias
      - prediction
      - service_tier
      - verbosity
      - prompt_cache_key             # this and the next are hints: not told to workers without them
      - safety_identifier
      - developer                    # the role; told as system without it
      - max_completion_tokens        # that name for the token limit
      - image_urls                   # it fetches images by their address; Podium never does
    reasoning_efforts: [low, high]   # the names it takes; any other becomes the nearest
    card:                            # what was measured; plans are made from it
      output_tokens_per_second: 80
      skills:
        - {name: arithmetic, accuracy: "0.98", n: 200, measured_on: 2026-11-30}
  - id: claude
    provider: anthropic              # likewise openai and gemini: their addresses are known
    model: claude-sonnet-4-5
    key: {file: /run/secrets/anthropic}
  - id: our-azure
    provider: azure
    model: name-of-the-deployment
    base_url: https://RESOURCE.openai.azure.com
    api_version: "2024-10-21"        # optional; left out: the version-free /openai/v1
    key: {file: /run/secrets/azure}
  - id: gemini-at-google-cloud
    provider: vertex                 # Gemini's models at Vertex AI
    model: gemini-2.5-flash
    project: our-project
    region: europe-west4             # its location; or global
    key: {file: /run/secrets/token}  # an access token; whoever renews it, hourly, replaces the file
  - id: claude-at-aws
    provider: bedrock
    model: eu.anthropic.claude-sonnet-4-5-20250929-v1:0
    region: eu-central-1
    aws:                             # or key: a Bedrock API key
      access_key_id: {file: /run/secrets/aws-id}
      secret_access_key: {file: /run/secrets/aws-secret}
      session_token: {file: /run/secrets/aws-token}   # optional
  - id: command
    provider: litellm                # others, by the prefix of the model
    model: cohere_chat/command-a-03-2025
    key: {env: COHERE_API_KEY}
"""

PLANS_EXAMPLE = """\
plans:
  - name: draft-and-check            # the model plan/draft-and-check, which GET /v1/models lists
    description: Two models, one answer
    steps:                           # 1 to 5; independent steps run at once; the last one answers
      - worker: my-model
        subtask: Draft an answer.    # leave out to pass the question on unchanged
      - worker: demo-text
        subtask: Check the draft and write the final answer.
        sees: [0]                    # earlier steps, counted from 0, or all; default: none
        fallback: my-model           # optional; by default a plan has none
"""

PINS_EXAMPLE = """\
pins:
  - date: 2026-11-30                 # the model podium@2026-11-30; `podium pin` writes this entry
    pool_digest: "0000000000000000000000000000000000000000000000000000000000000000"
    model_digest: "0000000000000000000000000000000000000000000000000000000000000000"
"""

_HEAD = """\
# Configuration

Generated from code by `make docs`.

Services read their settings from environment variables, and from nothing else. A variable with a service's
prefix that is no setting makes it refuse to start, as does any value that makes no sense. `podium-gateway
--help` lists the settings, `podium-gateway --check-config` tells whether it could start. Secrets are never
settings: they are files, or variables that `pool.yaml` names.

"""
_TENANTS = """
## tenants.yaml

Who may call. Gateway and audit take up a change within seconds; a broken file is reported with its line, and
the last good one stays in force. Whoever a list keeps out shows in the record under the list's rule id, such
as `tenant.regions.only` or `key.workers.except`.

"""
_POOL = """
## pool.yaml

The workers. The router takes up a change within seconds, as above. Amounts and shares are decimal numbers,
read exactly.

"""
_PLANS = """
## plans.yaml

Plans of your own, named to the gateway as `PODIUM_GATEWAY_PLANS_FILE`. One is performed exactly as written,
by the same rules and with the same record as any run, and without a call of the Conductor. Where one of its
workers may not do the run it is refused with the rules that say so: a name never means another plan.

"""
_PINS = """
## pins.yaml

What `podium@<date>` stands for, named to the gateway as `PODIUM_GATEWAY_PINS_FILE`. Once the pool or the
Conductor's model is another one, the name gets 404 `pinned_pool_gone` or `pinned_model_gone`: nothing else
answers in its place.

"""


def render() -> str:
    """Return the page."""
    shared = list(ServiceSettings.model_fields)
    prefixes = ", ".join(f"`{cls.model_config['env_prefix']}`" for cls in SERVICES)
    text = f"{_HEAD}## Every service\n\nEach under its own prefix: {prefixes}.\n\n"
    text += _settings(ServiceSettings, shared, prefix="PODIUM_<SERVICE>_")
    for cls in SERVICES:
        prefix = str(cls.model_config["env_prefix"])
        own = [name for name in cls.model_fields if name not in shared]
        text += f"\n## {prefix.split('_')[1].capitalize()}\n\n{_settings(cls, own, prefix=prefix)}"
    text += "\n## The `podium` command\n\n"
    text += _settings(CliSettings, list(CliSettings.model_fields), prefix="PODIUM_")
    text += "\nThe demo provider takes options instead: `podium-demo-provider --help`.\n"
    files = (
        (_TENANTS, TENANTS_EXAMPLE),
        (_POOL, POOL_EXAMPLE),
        (_PLANS, PLANS_EXAMPLE),
        (_PINS, PINS_EXAMPLE),
    )
    return text + "".join(f"{about}```yaml\n{example}```\n" for about, example in files)


def _settings(cls: type[BaseSettings], names: list[str], *, prefix: str) -> str:
    rows = []
    for name in names:
        field = cls.model_fields[name]
        assert field.description, f"{cls.__name__}.{name} has no docstring"
        default = field.get_default(call_default_factory=True, validated_data={})
        state = "required" if field.is_required() else _shown(default)
        rows.append((f"`{prefix}{name.upper()}`", state, field.description))
    return table(("variable", "default", "meaning"), rows)


def _shown(default: object) -> str:
    text = str(default)
    return f"`{text}`" if text not in ("", "None", "()", "**********") else "empty"
