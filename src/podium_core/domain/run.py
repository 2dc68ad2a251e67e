"""A run: everything one client request causes, its limits and how it ends."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from podium_core.domain.plan import MAX_STEPS


class RunKind(StrEnum):
    """What a run is for."""

    CHAT = "chat"
    EMBED = "embed"
    CALIBRATE = "calibrate"
    TRAIN = "train"
    PROBE = "probe"


class RunOutcome(StrEnum):
    """How a run ended."""

    ANSWERED = "answered"
    REFUSED = "refused"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"


class AttemptKind(StrEnum):
    """What an attempt was made for."""

    PLAN = "plan"
    STEP = "step"
    REPAIR = "repair"
    CONTINUATION = "continuation"
    EMBED = "embed"
    PROBE = "probe"


class AttemptOutcome(StrEnum):
    """How an attempt ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Caps:
    """Hard limits on one run, enforced by the runner; money by audit too. None means not limited.

    A step goes on once `quorum` of the steps it may see have succeeded, or `straggler_wait_s` seconds after
    the first of them has, without those that are still running. None: it waits for all.
    """

    max_steps: int = MAX_STEPS
    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost_usd_micros: int | None = None
    max_duration_s: float | None = None
    max_rounds: int = 1
    max_attempts_per_step: int = 3
    quorum: int | None = None
    straggler_wait_s: float | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message as the client sent it: `fields` is the whole decoded JSON object."""

    role: str
    text: str
    fields: Mapping[str, object] = field(hash=False)

    @property
    def image_count(self) -> int:
        """How many image parts the message carries."""
        return len(self._parts("image_url"))

    @property
    def image_address_count(self) -> int:
        """How many of the images are given by an address on the web instead of their bytes."""
        images = [part.get("image_url") for part in self._parts("image_url")]
        urls = [str(image.get("url", "")) for image in images if isinstance(image, dict)]
        return sum(url[:5].lower() != "data:" for url in urls)

    @property
    def size_chars(self) -> int:
        """How long its texts, images and sounds are together."""
        payloads = [(part.get("image_url"), "url") for part in self._parts("image_url")]
        payloads += [(part.get("input_audio"), "data") for part in self._parts("input_audio")]
        values = [payload.get(name) for payload, name in payloads if isinstance(payload, dict)]
        return len(self.text) + sum(len(value) for value in values if isinstance(value, str))

    @property
    def audio_count(self) -> int:
        """How many audio parts the message carries."""
        return len(self._parts("input_audio"))

    def _parts(self, kind: str) -> list[dict[str, object]]:
        content = self.fields.get("content")
        parts = content if isinstance(content, list) else []
        return [part for part in parts if isinstance(part, dict) and part.get("type") == kind]


@dataclass(frozen=True, slots=True)
class Question:
    """What a run must answer: the conversation, whose last message is the question itself."""

    messages: tuple[Message, ...]

    def __post_init__(self) -> None:
        if not self.messages:
            raise ValueError("a question needs at least one message")

    @property
    def size_chars(self) -> int:
        """How long all messages are together."""
        return sum(message.size_chars for message in self.messages)

    @property
    def history(self) -> tuple[Message, ...]:
        """Everything before the question."""
        return self.messages[:-1]

    @property
    def last(self) -> Message:
        """The message to answer."""
        return self.messages[-1]
