"""The engine: prompt, constrained text, parsed plan, and how sure the model was of each worker."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from podium_conductor.engines.vllm.checkpoint import CheckpointDigests
from podium_conductor.engines.vllm.choices import as_chances, id_places, log_chances, tokens_before
from podium_conductor.engines.vllm.closing import close_plan
from podium_conductor.engines.vllm.model import Generation, Load, Sampling, TextModel
from podium_conductor.engines.vllm.options import PlanOptions
from podium_conductor.engines.vllm.replaceable import Replaceable
from podium_conductor.ports import EngineDescription
from podium_core.domain.errors import invalid
from podium_core.domain.plan import Access, Plan, PlanSource, Step
from podium_core.domain.plan_format import PlanFormatError, parse_plan, render_plan
from podium_core.domain.plan_grammar import plan_grammar
from podium_core.domain.plan_prompt import (
    FAST_TIER,
    MAX_QUESTION_CHARS,
    PlanPrompt,
    build_prompt,
    step_limit,
)
from podium_core.domain.usage import Usage
from podium_core.orchestration.ports import PlanQuery, PlanReply, WorkerChance

_TIERS = ("podium", FAST_TIER, "podium-max")
_LABEL = "model_id"
_LIST_OPENING = "model_id = ["
_MIN_QUESTION_CHARS = 500
_LIST_TOKENS = 64
# No bracket and no tag, so that nothing in the reasoning can pass for a list.
_REASONING_GRAMMAR = (
    'root ::= (thought)* "\\n"\nthought ::= [^\\[\\]<`\\x00-\\x09\\x0b-\\x1f\\x7f] | "<" [ =0-9]\n'
)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model with its digests: what one plan uses from beginning to end."""

    model: TextModel
    digests: CheckpointDigests

    async def close(self) -> None:
        """Free the model."""
        await self.model.close()


@dataclass(frozen=True, slots=True)
class _Asked:
    """One prompt, ready to be continued."""

    prompt: PlanPrompt
    text: str
    tokens: list[int]


@dataclass(frozen=True, slots=True)
class _Written:
    """A plan text, and where its lists came from: the tokens before them, and their own."""

    text: str
    before: list[int]
    lists: Generation
    usage: Usage


class VllmEngine:
    """Makes plans with a loaded model. One instance serves many calls at once."""

    def __init__(self, loaded: Loaded, options: PlanOptions) -> None:
        self._serving = Replaceable(loaded)
        self._options = options

    async def plan(self, query: PlanQuery, deadline_ns: int) -> PlanReply:  # noqa: ARG002 - cancelled by then
        """Return a plan; cancelling the call stops the generation.

        Raises PodiumError: PLAN_INVALID after `max_tries` texts without a plan (never when constrained),
        INVALID_REQUEST (PLAN_PROMPT_TOO_LONG) when question and pool cannot fit, UNAVAILABLE.
        """
        with self._serving.use() as loaded:
            if query.tier == FAST_TIER:
                return await self._fast(loaded, query)
            return await self._tried(loaded, query)

    def describe(self) -> EngineDescription:
        """Return what is loaded now."""
        digests = self._serving.current.digests
        return EngineDescription(
            "vllm",
            PlanSource.MODEL,
            digests.model,
            digests.tokenizer,
            digests.template,
            _TIERS,
            has_probabilities=True,
        )

    def load(self) -> Load:
        """Return what the model is doing now."""
        return self._serving.current.model.load()

    def is_stopped(self) -> bool:
        """Tell whether the model has died; only a restart brings it back."""
        return self._serving.current.model.is_stopped()

    async def switch(self, make: Callable[[], Awaitable[Loaded]]) -> None:
        """Load another checkpoint beside this one and plan with it from then on.

        Plans under way end on the model they began with. When `make` fails, nothing changes and its error
        is raised. For a while both models are in memory.
        """
        await self._serving.replace(await make())

    async def close(self) -> None:
        """Free the model."""
        await self._serving.close()

    async def _tried(self, loaded: Loaded, query: PlanQuery) -> PlanReply:
        asked = self._ask(loaded.model, query, self._options.completion_tokens)
        usage = Usage()
        attempt = 0
        while True:
            attempt += 1
            sampling = Sampling(self._options.temperature, query.seed + attempt - 1)
            written = await self._write(loaded.model, asked, query, sampling)
            usage += written.usage
            ids = asked.prompt.worker_ids
            try:
                steps = parse_plan(
                    written.text, ids, max_steps=step_limit(query.caps), round_index=query.round
                )
            except PlanFormatError:
                if self._options.constrained or attempt >= self._options.max_tries:
                    raise
                continue
            return PlanReply(
                plan=Plan(steps, PlanSource.MODEL, query.round),
                raw_text=written.text,
                usage=usage,
                model_digest=loaded.digests.model,
                chances=await self._chances(loaded.model, written, steps, ids),
                generation_count=attempt,
                seed=query.seed,
                prompt=asked.prompt if query.explain else None,
            )

    async def _fast(self, loaded: Loaded, query: PlanQuery) -> PlanReply:
        """Return one step for the worker that the model finds likeliest, without writing any text."""
        asked = self._ask(loaded.model, query, _LIST_TOKENS)
        place = loaded.model.encode(f"{asked.text}{_LIST_OPENING}")
        ids = asked.prompt.worker_ids
        chances = await log_chances(loaded.model, place, len(ids))
        best = max(range(len(ids)), key=chances.__getitem__)
        steps = () if query.round > 0 else (Step(ids[best], ""),)
        return PlanReply(
            plan=Plan(steps, PlanSource.MODEL, query.round),
            raw_text=render_plan([best] if steps else [], [""] * len(steps), [Access()] * len(steps)),
            usage=Usage(input_tokens=len(place), output_tokens=1),
            model_digest=loaded.digests.model,
            chances=(as_chances(chances, ids),) if steps else (),
            seed=query.seed,
            prompt=asked.prompt if query.explain else None,
        )

    # --- the prompt ------------------------------------------------------------------------------------

    def _ask(self, model: TextModel, query: PlanQuery, completion_tokens: int) -> _Asked:
        """Return the prompt, with as much of the question as fits beside the completion."""
        room = model.context_tokens - completion_tokens
        chars = MAX_QUESTION_CHARS
        while True:
            prompt = build_prompt(
                query.question,
                query.workers,
                query.caps,
                seed=query.seed,
                tier=query.tier,
                round_index=query.round,
                previous_plan=query.previous_plan,
                previous_answer=query.previous_answer,
                masking=self._options.masking,
                max_question_chars=chars,
                free_reasoning=self._options.reasoning_tokens > 0,
            )
            text = model.render(prompt.system, prompt.user, prompt.prefill)
            tokens = model.encode(text)
            if len(tokens) <= room:
                return _Asked(prompt, text, tokens)
            chars //= 2
            if chars < _MIN_QUESTION_CHARS:
                raise invalid(
                    "question and worker cards do not fit into the Conductor's context window",
                    reason="PLAN_PROMPT_TOO_LONG",
                )

    # --- the text --------------------------------------------------------------------------------------

    async def _write(self, model: TextModel, asked: _Asked, query: PlanQuery, sampling: Sampling) -> _Written:
        if not self._options.constrained:
            found = await model.generate(
                asked.tokens, max_tokens=self._options.completion_tokens, sampling=sampling
            )
            return _Written(found.text, asked.tokens, found, _usage(asked, found))
        reasoning = await self._reason(model, asked, sampling)
        before = asked.tokens
        if reasoning is not None:
            before = model.encode(f"{asked.text}{reasoning.text.rstrip()}\n")
        spent = 0 if reasoning is None else len(reasoning.token_ids)
        budget = min(self._options.completion_tokens - spent, model.context_tokens - len(before))
        grammar = plan_grammar(
            len(asked.prompt.worker_ids),
            step_limit(query.caps),
            round_index=query.round,
            max_subtask_chars=None,  # the budget bounds it: a limit here would slow every token down
        )
        lists = await model.generate(before, max_tokens=budget, sampling=sampling, grammar=grammar)
        text = close_plan(lists.text) if lists.cut else lists.text
        thoughts = "" if reasoning is None else f"{reasoning.text.rstrip()}\n"
        usage = _usage(asked, lists)
        if reasoning is not None:
            thought = len(reasoning.token_ids)
            usage = replace(
                usage,
                output_tokens=usage.output_tokens + thought,
                reasoning_output_tokens=thought,
                cached_input_tokens=min(reasoning.cached, len(asked.tokens)),
            )
        return _Written(f"{asked.prompt.prefill}{thoughts}{text}", before, lists, usage)

    async def _reason(self, model: TextModel, asked: _Asked, sampling: Sampling) -> Generation | None:
        if not self._options.reasoning_tokens:
            return None
        limit = min(self._options.reasoning_tokens, self._options.completion_tokens - _LIST_TOKENS)
        return await model.generate(
            asked.tokens, max_tokens=limit, sampling=sampling, grammar=_REASONING_GRAMMAR, stop=(_LABEL,)
        )

    # --- the evidence ----------------------------------------------------------------------------------

    async def _chances(
        self, model: TextModel, written: _Written, steps: Sequence[Step], ids: Sequence[str]
    ) -> tuple[tuple[WorkerChance, ...], ...]:
        """Return the chances of each step; nothing where the ids cannot be traced to tokens."""
        if not self._options.chances:
            return ()
        places = id_places(written.lists.text)
        if [ids[k] for _, k in places if k < len(ids)] != [step.worker_id for step in steps]:
            return ()
        found: list[tuple[WorkerChance, ...]] = []
        for place, _ in places:
            count = tokens_before(model, written.lists.token_ids, place)
            if count is None:
                return ()
            context = [*written.before, *written.lists.token_ids[:count]]
            found.append(as_chances(await log_chances(model, context, len(ids)), ids))
        return tuple(found)


def _usage(asked: _Asked, found: Generation) -> Usage:
    return Usage(
        input_tokens=len(asked.tokens),
        output_tokens=len(found.token_ids),
        cached_input_tokens=min(found.cached, len(asked.tokens)),
    )
