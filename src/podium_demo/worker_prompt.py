"""Reads what a worker is sent: plain chat messages, or one of Podium's tagged worker prompts.

The tag is random per prompt and occurs in no text inside it, so boundaries are found by exact search.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_OVERALL = re.compile(r'<overall_task tag="([0-9A-Za-z_-]{4,64})">\n')
_ASSIGNED = "Your assigned subtask: "
_WHOLE_TASK = "Answer the overall task."
_NO_RESPONSE = "(no response)"


@dataclass(frozen=True, slots=True)
class Task:
    """What is asked now, and the earlier results that `it` and `the results` may mean, oldest first."""

    instruction: str
    results: tuple[str, ...] = ()


def read_task(messages: Sequence[tuple[str, str]]) -> Task:
    """Return the task that (role, text) messages set; the last user message sets it.

    Earlier results are the responses the prompt shows; without any, the assistant's last message.
    """
    last = max((i for i, (role, _) in enumerate(messages) if role == "user"), default=len(messages) - 1)
    spoken = [text for role, text in messages[:last] if role == "assistant" and text.strip()]
    tagged = _tagged(messages[last][1])
    if tagged is None:
        return Task(messages[last][1], tuple(spoken[-1:]))
    return Task(tagged.instruction, tagged.results or tuple(spoken[-1:]))


def _tagged(text: str) -> Task | None:
    opening = _OVERALL.search(text)
    if opening is None:
        return None
    tag = opening.group(1)
    closing = f'\n</overall_task tag="{tag}">'
    end = text.find(closing, opening.end())
    if end < 0:
        return None
    question, position = text[opening.end() : end], end + len(closing)
    block = re.compile(
        rf'\s*<(subtask|response|previous_answer) tag="{re.escape(tag)}"( step="[0-9]+")?>\n'
        rf'(.*?)\n</\1 tag="{re.escape(tag)}"(?: step="[0-9]+")?>',
        re.DOTALL,
    )
    results: list[str] = []
    while match := block.match(text, position):
        if match.group(1) != "subtask" and match.group(3) != _NO_RESPONSE:
            results.append(match.group(3))
        position = match.end()
    rest = text[position:].strip()
    if not rest.startswith(_ASSIGNED):
        return None
    subtask = rest.removeprefix(_ASSIGNED).strip()
    return Task(question if subtask == _WHOLE_TASK else subtask, tuple(results))
