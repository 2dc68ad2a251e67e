"""A run's conversation as the bytes that audit holds, and prompts rendered as references to them.

Audit gets the long texts once, when the run opens. Every prompt then names them as parts and brings only
what is new, and all segments joined are exact JSON: the `messages` array that goes upstream.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from podium_core.domain.run import Message, Question
from podium_core.orchestration.ports import PromptPiece, StepPrompt
from podium_gateway.adapters.json_text import escaped, json_bytes, long_json_bytes, message_bytes

HISTORY = "history"
QUESTION = "question"


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of the `messages` array. `part_id` names content that audit holds; empty: the piece is new."""

    part_id: str
    data: bytes


@dataclass(frozen=True, slots=True)
class HeldContents:
    """What audit holds of a run's conversation. Empty bytes: nothing is held under that part id.

    `history` is the JSON of all earlier messages joined by commas. `question` is the last message's text,
    escaped as inside a JSON string, or that message's whole JSON when its content is an array of parts.
    """

    source: Question
    history: bytes
    question: bytes

    @classmethod
    def of(cls, question: Question) -> "HeldContents":
        """Render a question's contents."""
        content = question.last.fields.get("content")
        last = escaped(content) if isinstance(content, str) else message_bytes(question.last)
        return cls(question, b",".join(map(message_bytes, question.history)), last)

    @property
    def parts(self) -> tuple[tuple[str, bytes], ...]:
        """(Part id, data) of everything that is to be held."""
        return tuple(part for part in ((HISTORY, self.history), (QUESTION, self.question)) if part[1])


class ContentShelf:
    """The held contents of every live run, from its opening to its seal."""

    def __init__(self) -> None:
        self._held: dict[str, HeldContents] = {}

    def put(self, run_id: str, held: HeldContents) -> None:
        """Note that audit holds these."""
        self._held[run_id] = held

    def get(self, run_id: str) -> HeldContents | None:
        """Return what audit holds for the run."""
        return self._held.get(run_id)

    def drop(self, run_id: str) -> None:
        """Forget a run."""
        self._held.pop(run_id, None)


def render(prompt: StepPrompt, held: HeldContents | None) -> list[Segment]:
    """Return the segments of one prompt's `messages` array."""
    writer = _Writer()
    writer.new(b"[")
    if prompt.history:
        if held is not None and prompt.history == held.source.history:
            writer.held(HISTORY, held.history)
        else:
            writer.new(b",".join(map(message_bytes, prompt.history)))
        writer.new(b",")
    _question(prompt, held if held is not None and held.source.last == prompt.question else None, writer)
    for turn in prompt.turns:
        writer.new(b"," + message_bytes(turn))
    writer.new(b"]")
    return writer.segments()


def rendered(prompt: StepPrompt) -> bytes:
    """Return one prompt's `messages` array exactly as it goes upstream."""
    return b"".join(segment.data for segment in render(prompt, None))


class _Writer:
    """Collects segments; neighbouring new bytes become one."""

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self._new: list[bytes] = []

    def new(self, data: bytes) -> None:
        self._new.append(data)

    def held(self, part_id: str, data: bytes) -> None:
        if not data:
            return
        self._flush()
        self._segments.append(Segment(part_id, data))

    def segments(self) -> list[Segment]:
        self._flush()
        return self._segments

    def _flush(self) -> None:
        if self._new:
            self._segments.append(Segment("", b"".join(self._new)))
            self._new.clear()


def _question(prompt: StepPrompt, held: HeldContents | None, writer: _Writer) -> None:
    fields = prompt.question.fields
    content = fields.get("content")
    if isinstance(content, str):
        others = {name: value for name, value in fields.items() if name not in ("role", "content")}
        writer.new(b'{"role":%b,"content":"' % json_bytes(prompt.question.role))
        for piece in prompt.pieces or (PromptPiece(content, is_question=True),):
            if held is not None and piece.is_question and piece.text == content:
                writer.held(QUESTION, held.question)
            else:
                writer.new(escaped(piece.text))
        writer.new(b'"' + (b"," + json_bytes(others)[1:] if others else b"}"))
    elif prompt.pieces:
        writer.new(long_json_bytes(_with_text(prompt.question, prompt.pieces)))
    elif held is not None:
        writer.held(QUESTION, held.question)
    else:
        writer.new(message_bytes(prompt.question))


def _with_text(message: Message, pieces: Sequence[PromptPiece]) -> dict[str, object]:
    """Return the message with the pieces for its text; its other parts stay where they are."""
    text_part = {"type": "text", "text": "".join(piece.text for piece in pieces)}
    content = message.fields.get("content")
    parts: list[object] = []
    placed = False
    for part in content if isinstance(content, list) else []:
        if not (isinstance(part, dict) and part.get("type") == "text"):
            parts.append(part)
        elif not placed:
            parts.append(text_part)
            placed = True
    return {**message.fields, "content": parts if placed else [text_part, *parts]}
