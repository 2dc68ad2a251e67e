"""The plain types of one attempt: what is asked for, what is said to the log, what comes back."""

from dataclasses import dataclass

from podium_core.domain.run import AttemptKind, AttemptOutcome
from podium_core.domain.usage import Usage


class ApiKey:
    """A provider key that does not show itself when printed, logged or formatted."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the key itself, for the one header it belongs in."""
        return self._value

    def is_within(self, text: str) -> bool:
        """Say whether `text` holds the key."""
        return self._value in text

    def __repr__(self) -> str:
        return "ApiKey(***)"


@dataclass(frozen=True, slots=True)
class CallTimeouts:
    """Seconds: for a connection, for a stream's first output, for a gap within a stream, for all of it.

    A call that is not streamed has neither first output nor gaps: only connection and total bound it.
    """

    connect_s: float = 5.0
    first_token_s: float = 120.0
    idle_s: float = 120.0
    total_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a worker is called with: one key, or what AWS signatures need; None where there is none."""

    key: ApiKey | None = None
    aws_access_key_id: ApiKey | None = None
    aws_secret_access_key: ApiKey | None = None
    aws_session_token: ApiKey | None = None

    def is_within(self, text: str) -> bool:
        """Say whether `text` holds any of them."""
        keys = (self.key, self.aws_access_key_id, self.aws_secret_access_key, self.aws_session_token)
        return any(key.is_within(text) for key in keys if key is not None)


@dataclass(frozen=True, slots=True)
class Piece:
    """Some bytes of a body: content that the log already holds (`part_id`), or new bytes (empty id)."""

    part_id: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Call:
    """One attempt to make, as the caller asked for it. See `podium.router.v1.CompleteRequest`."""

    attempt_id: str
    run_id: str
    tenant_id: str
    kind: AttemptKind
    round: int
    step_index: int
    worker_id: str
    pool_digest: str
    messages: tuple[Piece, ...]
    parameters_json: bytes
    max_output_tokens: int
    stream: bool
    seen_steps: tuple[int, ...] = ()
    sees_previous_round: bool = False

    @property
    def is_embedding(self) -> bool:
        """Whether vectors are asked for. Then `messages` is the one piece of `input`."""
        return self.kind is AttemptKind.EMBED


@dataclass(frozen=True, slots=True)
class AttemptBegin:
    """What the log must know, and agree to, before the provider is called."""

    call: Call
    dispatch_id: str
    provider: str
    provider_model: str
    region: str
    endpoint_host: str
    body: tuple[Piece, ...]
    body_sha256: bytes
    max_cost_usd_micros: int
    price_digest: str


@dataclass(frozen=True, slots=True)
class Content:
    """One piece of content for the log to seal."""

    part_id: str
    name: str
    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """How an attempt ended. `dispatched` says whether the request may have reached the provider."""

    attempt_id: str
    run_id: str
    outcome: AttemptOutcome
    usage: Usage
    cost_usd_micros: int
    latency_us: int
    dispatched: bool
    finish_reason: str = ""
    error_reason: str = ""
    provider_response_id: str = ""
    served_model: str = ""
    contents: tuple[Content, ...] = ()


@dataclass(frozen=True, slots=True)
class Delta:
    """Output since the last delta. `tool_calls` are OpenAI tool call deltas, each with its index.

    `refusal` is the text of a model that declines; `logprobs` are OpenAI's entries, one for each token.
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[dict[str, object], ...] = ()
    refusal: str = ""
    logprobs: tuple[dict[str, object], ...] = ()
