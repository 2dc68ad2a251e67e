"""How sure was the model of each worker? The probability of every whole worker id at each choice.

After a plan is written, its tokens up to a worker id are given to the model again, without the grammar. The
raw probability of worker k is that of the tokens of "k" and then a delimiter (`,` or `]`, alone or with the
line end it may be fused with), so that 1 and 12 never share a figure: it is summed over the delimiters and
multiplied along the tokens. Ids that share first tokens share those look-ups, and the prefix cache makes each
look-up one token's work.
"""

import asyncio
import math
import re
from collections.abc import Sequence

from podium_conductor.engines.vllm.model import TextModel
from podium_core.orchestration.ports import WorkerChance

_DELIMITERS = (",", ", ", "]", "]\n", "],", "]\n\n", ",\n")
_NEGLIGIBLE = math.log(5e-7)
_PPM = 1_000_000
_LIST = re.compile(r"model_id\s{0,4}=\s{0,4}\[([^\]\n]{0,200})\]")
_OPENING = re.compile(r"[\s\"']{0,8}(\d{1,9})")


def id_places(text: str) -> list[tuple[int, int]]:
    """Return where each id of the last `model_id` list begins in `text`, and the id; empty without a list."""
    found = None
    for found in _LIST.finditer(text):  # noqa: B007 - the last one counts
        pass
    if found is None:
        return []
    places: list[tuple[int, int]] = []
    start = found.start(1)
    for entry in found.group(1).split(","):
        digits = _OPENING.match(entry)
        if digits is not None:
            places.append((start + digits.start(1), int(digits.group(1))))
        start += len(entry) + 1
    return places


def tokens_before(model: TextModel, token_ids: Sequence[int], place: int) -> int | None:
    """Return how many of the tokens make the first `place` characters; None when a token straddles it."""
    for count in range(len(token_ids) + 1):
        length = len(model.decode(token_ids[:count]))
        if length >= place:
            return count if length == place else None
    return None


async def log_chances(model: TextModel, prompt: Sequence[int], worker_count: int) -> list[float]:
    """Return for each worker the natural log of its raw probability after `prompt`."""
    delimiters = _single_tokens(model)
    spelled = [tuple(_spelling(model, ordinal)) for ordinal in range(worker_count)]
    reached: dict[tuple[int, ...], float] = {(): 0.0}
    totals = [-math.inf] * worker_count
    front: list[tuple[int, ...]] = [()]
    while front:
        asked = [_wanted(node, spelled, delimiters) for node in front]
        answers = await _all(model, prompt, front, asked)
        following: list[tuple[int, ...]] = []
        for node, answer in zip(front, answers, strict=True):
            if node in spelled:
                ends = [answer[token] for token in delimiters]
                totals[spelled.index(node)] = reached[node] + _log_sum(ends)
            for token in {word[len(node)] for word in spelled if _goes_on(word, node)}:
                reached[(*node, token)] = reached[node] + answer[token]
                following.append((*node, token))
        best = max((reached[node] for node in following), default=0.0)
        front = [node for node in following if reached[node] > best + _NEGLIGIBLE]
    return totals


def as_chances(log_raw: Sequence[float], worker_ids: Sequence[str]) -> tuple[WorkerChance, ...]:
    """Return raw and renormalised probabilities in millionths, in the order of `worker_ids`."""
    whole = _log_sum(log_raw)
    return tuple(
        WorkerChance(worker_id, _ppm(value), _ppm(value - whole) if whole > -math.inf else 0)
        for worker_id, value in zip(worker_ids, log_raw, strict=True)
    )


async def _all(
    model: TextModel,
    prompt: Sequence[int],
    nodes: Sequence[tuple[int, ...]],
    asked: Sequence[Sequence[int]],
) -> list[dict[int, float]]:
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_ask(model, [*prompt, *node], tokens))
            for node, tokens in zip(nodes, asked, strict=True)
        ]
    return [task.result() for task in tasks]


async def _ask(model: TextModel, prompt: Sequence[int], tokens: Sequence[int]) -> dict[int, float]:
    return dict(await model.log_probabilities(prompt, tokens))


def _wanted(
    node: tuple[int, ...], spelled: Sequence[tuple[int, ...]], delimiters: Sequence[int]
) -> list[int]:
    wanted = {word[len(node)] for word in spelled if _goes_on(word, node)}
    return sorted(wanted | set(delimiters)) if node in spelled else sorted(wanted)


def _goes_on(word: tuple[int, ...], node: tuple[int, ...]) -> bool:
    return len(word) > len(node) and word[: len(node)] == node


def _single_tokens(model: TextModel) -> list[int]:
    """Return the tokens that are one delimiter; as encoded after a digit, where each really stands."""
    before = model.encode("[1")
    tokens: set[int] = set()
    for delimiter in _DELIMITERS:
        encoded = model.encode(f"[1{delimiter}")
        if len(encoded) == len(before) + 1 and encoded[: len(before)] == before:
            tokens.add(encoded[-1])
    return sorted(tokens)


def _spelling(model: TextModel, ordinal: int) -> list[int]:
    """Return the tokens of an id as it stands in a list."""
    opening, whole = model.encode("["), model.encode(f"[{ordinal}")
    return whole[len(opening) :]


def _log_sum(values: Sequence[float]) -> float:
    top = max(values, default=-math.inf)
    return top if top == -math.inf else top + math.log(sum(math.exp(value - top) for value in values))


def _ppm(log_value: float) -> int:
    return min(_PPM, round(math.exp(min(0.0, log_value)) * _PPM))
