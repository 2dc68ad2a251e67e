"""Images in a plan: who is shown them, and what the others read in their place (docs/adr/0012)."""

from collections.abc import Set as AbstractSet
from dataclasses import replace

from podium_core.domain.plan import Plan
from podium_core.domain.pool import Worker
from podium_core.domain.run import Message, Question
from podium_core.orchestration.eligible import IMAGE_URLS

IMAGE_OMITTED = "[image omitted: this worker cannot see]"


def sees(worker: Worker, question: Question) -> bool:
    """Return whether the worker can be sent every image of the question; yes where there is none."""
    if not any(message.image_count for message in question.messages):
        return True
    needs_addresses = any(message.image_address_count for message in question.messages)
    card = worker.card
    return "image" in card.modalities and (not needs_addresses or IMAGE_URLS in card.features)


def as_seen_by(worker: Worker, question: Question) -> Question:
    """Return the question as the worker is sent it: one that cannot see reads a note for each image."""
    if sees(worker, question):
        return question
    return Question(tuple(_without_images(message) for message in question.messages))


def looks(plan: Plan, seeing: AbstractSet[str]) -> bool:
    """Return whether the images reach the answer, given the ids of the workers that see.

    They do when the answering step's worker sees, or when that step may read, through others or not, a step
    whose worker does, or the previous round's answer, for which the same held.
    """
    informed: list[bool] = []
    for step in plan.steps:
        access = step.access
        informed.append(
            step.worker_id in seeing or access.previous_round or any(informed[s] for s in access.steps)
        )
    return not informed or informed[-1]


def _without_images(message: Message) -> Message:
    count = message.image_count
    if not count:
        return message
    text = "\n".join([message.text, *[IMAGE_OMITTED] * count] if message.text else [IMAGE_OMITTED] * count)
    content = message.fields.get("content")
    parts = content if isinstance(content, list) else []
    others = [p for p in parts if not (isinstance(p, dict) and p.get("type") in ("text", "image_url"))]
    told: object = [{"type": "text", "text": text}, *others] if others else text
    return replace(message, text=text, fields={**message.fields, "content": told})
