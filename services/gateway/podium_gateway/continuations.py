"""Tool turns: a run that pauses for the client's tools, and the run that takes their results back.

The worker that asked gets its own conversation continued: what it was sent, what it said, and the results.
No other step and no Conductor sees that; later runs know of it from the client's history.
"""

import json
import secrets
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import cast

from podium_core.domain.conversation import ItemKey, ItemKind
from podium_core.domain.errors import PodiumError, invalid
from podium_core.domain.plan_prompt import FAST_TIER
from podium_core.domain.pool import Pool
from podium_core.domain.run import Message, Question
from podium_core.orchestration.events import AnswerDelta, RunEvent, RunFinished, StepEnded, StepResult
from podium_core.orchestration.ports import StepPrompt
from podium_core.orchestration.request import RunRequest
from podium_gateway.codecs.tool_call_ids import (
    KEY_BYTES,
    MAX_INDEX,
    ToolCallName,
    is_ours,
    read_tool_call_id,
    tool_call_id,
)
from podium_gateway.ports import ConversationPort, RunnerPort

_KEY_ITEM = "tool-call-ids"
_KEYS_KEPT = 1_024

_Json = dict[str, object]
RenderMessages = Callable[[StepPrompt], bytes]


@dataclass(slots=True)
class Continuations:
    """Keeps what a paused worker was sent, and finds it again from the ids of its tool calls.

    `render` returns a prompt's `messages` array exactly as it goes upstream, as JSON. `keeps_content` says
    whether a tenant's words may be kept: one whose may not gets the ids of its provider and sends its results
    as plain history, which needs nothing kept.
    """

    kept: ConversationPort
    render: RenderMessages
    ttl_s: float
    keeps_content: Callable[[str], bool] = lambda _: True
    _keys: "OrderedDict[str, bytes]" = field(default_factory=OrderedDict)

    async def resumed(self, request: RunRequest, pool: Pool) -> RunRequest:
        """Return the request of the continuation run if the question ends in results of our tool calls.

        Results of other providers' calls are plain history. Raises PodiumError (INVALID_REQUEST): an id that
        this key never got, results that are missing or belong to several runs, CONTINUATION_EXPIRED.
        """
        results = _trailing_results(request.question.messages)
        ids = [str(message.fields.get("tool_call_id", "")) for message in results]
        if not (self.keeps_content(request.tenant_id) and any(is_ours(call_id) for call_id in ids)):
            # Only a user's words can be planned around: anything else goes to one worker as it is.
            return request if not results or request.named_worker_id else replace(request, tier=FAST_TIER)
        names = await self._names(request.tenant_id, ids, len(request.question.messages) - len(results))
        paused = await self._paused(request.tenant_id, names[0].run_id)
        if paused is None or paused.worker_id not in pool.by_id:
            raise _expired()
        if paused.principal_id != request.principal_id:
            # What the worker was sent are the words of another key, which this one has no right to.
            raise _foreign(len(request.question.messages) - len(results))
        if request.named_worker_id not in (None, paused.worker_id):
            return request  # a name never means another worker: this one reads the turn as history
        by_index = dict(zip([name.index for name in names], results, strict=True))
        if len(by_index) < len(results) or by_index.keys() != paused.upstream_ids.keys():
            wanted = len(paused.upstream_ids)
            raise invalid(
                f"that turn made {wanted} tool calls: send exactly one result for each, after its message",
                reason="TOOL_RESULTS_MISSING",
                param="messages",
            )
        answers = [
            _message({**by_index[index].fields, "tool_call_id": upstream_id})
            for index, upstream_id in paused.upstream_ids.items()
        ]
        return replace(
            request,
            question=Question((*map(_message, paused.messages), *answers)),
            named_worker_id=paused.worker_id,
            continues_run_id=names[0].run_id,
            caps=replace(request.caps, max_rounds=1),
            gate=None,
        )

    async def id_of(self, tenant_id: str, run_id: str, index: int) -> str:
        """Return the id that the client sees on one call of a run."""
        return tool_call_id(await self._key(tenant_id), ToolCallName(run_id, index))

    async def pause(self, request: RunRequest, answer: StepResult, indices: Sequence[int]) -> None:
        """Keep what the worker was sent and said until the results come. Raises PodiumError."""
        if answer.prompt is None:
            return
        messages = json.loads(self.render(answer.prompt))
        ids = {
            index: str(call.get("id") or await self.id_of(request.tenant_id, request.run_id, index))
            for index, call in zip(indices, answer.tool_calls, strict=True)
        }
        said: _Json = {"role": "assistant", "content": answer.text or None, **(answer.replay or {})}
        calls = cast("Sequence[_Json]", said.get("tool_calls") or answer.tool_calls)
        said["tool_calls"] = [
            {"type": "function", **call, "id": upstream_id}
            for call, upstream_id in zip(calls, ids.values(), strict=True)
        ]
        data = {
            "principal_id": request.principal_id,
            "worker_id": answer.worker_id,
            "ids": list(ids.items()),
            "messages": [*messages, said],
        }
        await self.kept.put(
            _context_key(request.tenant_id, request.run_id),
            json.dumps(data, ensure_ascii=False).encode(errors="replace"),
            ttl_s=self.ttl_s,
            run_id=request.run_id,
        )

    async def _names(self, tenant_id: str, ids: Sequence[str], first: int) -> list[ToolCallName]:
        key = await self._key(tenant_id)
        names: list[ToolCallName] = []
        for at, call_id in enumerate(ids, start=first):
            name = read_tool_call_id(key, call_id)
            if name is None or (names and name.run_id != names[0].run_id):
                raise _foreign(at)
            names.append(name)
        return names

    async def _paused(self, tenant_id: str, run_id: str) -> "_Paused | None":
        item = await self.kept.get(_context_key(tenant_id, run_id))
        if item is None:
            return None
        data = json.loads(item.data)
        return _Paused(data["principal_id"], data["worker_id"], dict(data["ids"]), data["messages"])

    async def _key(self, tenant_id: str) -> bytes:
        """Return the tenant's signing key: whichever gateway needs it first makes it, for all of them."""
        key = self._keys.get(tenant_id)
        if key is None:
            made = secrets.token_bytes(KEY_BYTES)
            joined = await self.kept.join(
                ItemKey(tenant_id, ItemKind.SHARED_KEY, _KEY_ITEM), made, ttl_s=None
            )
            key = made if joined.holder is None else joined.holder.data
            self._keys[tenant_id] = key
            if len(self._keys) > _KEYS_KEPT:
                self._keys.popitem(last=False)
        return key


@dataclass(frozen=True, slots=True)
class _Paused:
    principal_id: str
    worker_id: str
    upstream_ids: Mapping[int, str]
    messages: Sequence[_Json]


@dataclass(frozen=True, slots=True)
class PausingRunner(RunnerPort):
    """Runs requests over another runner; what asks for tools is kept, and its calls get our ids."""

    runner: RunnerPort
    continuations: Continuations

    async def run(self, request: RunRequest, pool: Pool) -> AsyncGenerator[RunEvent, None]:
        """Yield the run's events. Raises PodiumError when a pause cannot be kept: its ids would be void."""
        # Of several answers only one can be continued, and nobody says which: their calls are history.
        is_continued = request.answer_count == 1 and self.continuations.keeps_content(request.tenant_id)
        signing = _Signing(self.continuations, request) if is_continued else None
        async with aclosing(self.runner.run(request, pool)) as events:
            async for event in events:
                if signing is None:
                    yield event
                elif isinstance(event, AnswerDelta) and event.delta.tool_calls:
                    calls = await signing.signed(event.delta.tool_calls)
                    yield replace(event, delta=replace(event.delta, tool_calls=calls))
                elif isinstance(event, StepEnded) and event.result.tool_calls:
                    yield StepEnded(await signing.result(event.result))
                elif isinstance(event, RunFinished) and event.answer is not None and event.answer.tool_calls:
                    await signing.pause(event.answer)
                    yield replace(event, answer=await signing.result(event.answer))
                else:
                    yield event


class _Signing:
    """The ids of one run's tool calls."""

    def __init__(self, continuations: Continuations, request: RunRequest) -> None:
        self._continuations = continuations
        self._request = request
        self._indices: set[int] = set()

    async def signed(self, calls: Sequence[Mapping[str, object]]) -> tuple[_Json, ...]:
        """Return deltas, or whole calls, with our ids where there were the provider's."""
        signed: list[_Json] = []
        for position, call in enumerate(calls):
            index = cast("int", call.get("index", position))
            # The first piece of a call names it, whether or not its provider gave it an id.
            is_first = index not in self._indices
            self._indices.add(index)
            signed.append({**call, "id": await self._id(index)} if is_first or call.get("id") else {**call})
        return tuple(signed)

    async def result(self, result: StepResult) -> StepResult:
        """Return a result whose calls have our ids."""
        calls = [
            {**call, "id": await self._id(index)}
            for index, call in zip(self._indices_of(result), result.tool_calls, strict=True)
        ]
        return replace(result, tool_calls=tuple(calls))

    async def pause(self, answer: StepResult) -> None:
        """Keep what the worker was sent and said."""
        await self._continuations.pause(self._request, answer, self._indices_of(answer))

    def _indices_of(self, result: StepResult) -> Sequence[int]:
        told = sorted(self._indices)
        return told if len(told) == len(result.tool_calls) else range(len(result.tool_calls))

    async def _id(self, index: int) -> str:
        if not 0 <= index <= MAX_INDEX:
            raise invalid(f"a turn may make {MAX_INDEX + 1} tool calls")
        return await self._continuations.id_of(self._request.tenant_id, self._request.run_id, index)


def _trailing_results(messages: Sequence[Message]) -> list[Message]:
    results: list[Message] = []
    for message in reversed(messages):
        if message.role != "tool":
            break
        results.append(message)
    return results[::-1]


def _message(fields: Mapping[str, object]) -> Message:
    """Return a message that was decoded before."""
    content = fields.get("content")
    parts = content if isinstance(content, list) else []
    texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return Message(str(fields["role"]), content if isinstance(content, str) else "\n".join(texts), fields)


def _context_key(tenant_id: str, run_id: str) -> ItemKey:
    return ItemKey(tenant_id, ItemKind.CONTINUATION, run_id)


def _foreign(at: int) -> PodiumError:
    return invalid(
        "results must answer the tool calls of one turn, by the ids that came with them, with the same key",
        reason="TOOL_CALL_ID_INVALID",
        param=f"messages[{at}].tool_call_id",
    )


def _expired() -> PodiumError:
    return invalid(
        "what these tool results continue is no longer kept; ask again from the last user message",
        reason="CONTINUATION_EXPIRED",
        param="messages",
    )
