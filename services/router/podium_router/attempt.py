"""One permitted attempt while it runs: its output on the way to the caller, its times, its account."""

from dataclasses import dataclass

from podium_core.domain.clock import Clock
from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.run import AttemptOutcome
from podium_core.domain.usage import Usage, UsageSource, failure_facts
from podium_router.answer import Answer
from podium_router.body import Body, max_input_tokens
from podium_router.calls import AttemptEnd, Call, Content, Credentials, Delta
from podium_router.catalog import Route
from podium_router.outbox import Completed, Outbox
from podium_router.usage import estimated_usage, is_possible

_NS_PER_US = 1_000
_JSON = "application/json"
_TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call with everything it needs to be asked for and made."""

    call: Call
    route: Route
    credentials: Credentials
    body: Body
    max_output_tokens: int
    max_cost_usd_micros: int

    @property
    def tokens_at_most(self) -> int:
        """What the call will likely use at most: messages at the usual size of a token, and all output."""
        return estimated_usage(self.body.messages_bytes, 0, 0).input_tokens + self.max_output_tokens


class Attempt:
    """Collects what the attempt's end must say. It is the sink of the provider's deltas."""

    def __init__(self, prepared: Prepared, outbox: Outbox, clock: Clock) -> None:
        self.call = prepared.call
        self.route = prepared.route
        self.max_output_tokens = prepared.max_output_tokens
        self._credentials = prepared.credentials
        self.body = prepared.body
        self.answer = Answer()
        self.error: PodiumError | None = None
        self.outcome = AttemptOutcome.FAILED
        self.first_delta_us = 0
        self._max_cost_usd_micros = prepared.max_cost_usd_micros
        self._tokens_at_most = prepared.tokens_at_most
        self._outbox = outbox
        self._clock = clock
        self._started_ns = clock.monotonic_ns()
        self._latency_us: int | None = None
        self._usage: Usage | None = None

    def put(self, delta: Delta) -> None:
        """Pass output on to the caller."""
        if not self.first_delta_us:
            self.first_delta_us = self._elapsed_us()
        self._outbox.put(delta)

    @property
    def has_room(self) -> bool:
        """Whether the caller keeps up."""
        return self._outbox.has_room

    async def room(self) -> None:
        """Wait until the caller has caught up."""
        await self._outbox.room()

    def settle(self, outcome: AttemptOutcome, error: PodiumError | None = None) -> None:
        """Note how it ended, and when."""
        self.outcome = outcome
        self.error = error
        self._latency_us = self._elapsed_us()
        if error is not None:  # the caller accounts for it as the log does
            error.metadata.update(failure_facts(self.usage, self.cost_usd_micros))

    @property
    def latency_us(self) -> int:
        """Time from the permit to the end."""
        return self._elapsed_us() if self._latency_us is None else self._latency_us

    @property
    def usage(self) -> Usage:
        """What the attempt used, as far as anybody knows."""
        if self._usage is None:
            self._usage = self._find_usage()
        return self._usage

    @property
    def used_tokens(self) -> int:
        """What counts against the worker's tokens per minute: the reserved number when nobody knows."""
        usage = self.usage
        return self._tokens_at_most if usage.source is UsageSource.UNKNOWN else usage.total_tokens

    @property
    def cost_usd_micros(self) -> int:
        """What it cost: the reserved maximum when nobody knows what it used, and never more than that.

        Budgets are promises about what was permitted: no number of a provider's may break them.
        """
        usage = self.usage
        most = self._max_cost_usd_micros
        price = self.route.worker.price
        if price is None or usage.source is UsageSource.UNKNOWN:
            return most
        cost = price.cost_usd_micros(
            usage.input_tokens,
            usage.output_tokens,
            usage.cached_input_tokens,
            usage.cache_write_input_tokens,
        )
        return min(cost, most)

    @property
    def response_id(self) -> str:
        """The provider's own id of its answer."""
        return self._without_key(self.answer.response_id)

    @property
    def served_model(self) -> str:
        """The model that the provider says has answered."""
        return self._without_key(self.answer.served_model)

    def end(self) -> AttemptEnd:
        """Return the record of the end."""
        call = self.call
        return AttemptEnd(
            attempt_id=call.attempt_id,
            run_id=call.run_id,
            outcome=self.outcome,
            usage=self.usage,
            cost_usd_micros=self.cost_usd_micros,
            latency_us=self.latency_us,
            dispatched=self.answer.dispatched,
            finish_reason=self.answer.finish_reason,
            error_reason="" if self.error is None else self.error.reason,
            provider_response_id=self.response_id,
            served_model=self.served_model,
            contents=self._contents(),
        )

    def completed(self) -> Completed:
        """Return the caller's last event."""
        answer = self.answer
        message = Delta() if self.call.stream else _whole(answer)
        return Completed(
            finish_reason=answer.finish_reason,
            usage=self.usage,
            cost_usd_micros=self.cost_usd_micros,
            latency_us=self.latency_us,
            first_delta_us=self.first_delta_us,
            provider_response_id=self.response_id,
            served_model=self.served_model,
            message=message,
            replay_message=answer.replay.message_json(answer.text, answer.tool_calls),
            vectors=answer.vectors,
        )

    def _find_usage(self) -> Usage:
        answer = self.answer
        if not answer.dispatched:
            return Usage(source=UsageSource.ESTIMATED)
        if answer.usage is not None and self._is_possible(answer.usage):
            return answer.usage
        error = self.error
        if error is not None and "status" in error.metadata:  # answered with a refusal: nothing was generated
            return Usage(source=UsageSource.ESTIMATED)
        if answer.is_empty and self.outcome is not AttemptOutcome.COMPLETED:
            return Usage(source=UsageSource.UNKNOWN)
        return estimated_usage(self.body.messages_bytes, answer.output_bytes, answer.reasoning_bytes)

    def _is_possible(self, usage: Usage) -> bool:
        takes_images = "image" in self.route.worker.card.modalities
        return is_possible(
            usage,
            input_tokens=max_input_tokens(self.body, takes_images=takes_images),
            output_tokens=max(self.max_output_tokens, self.answer.output_bytes),
        )

    def _contents(self) -> tuple[Content, ...]:
        answer = self.answer
        attempt_id = self.call.attempt_id
        contents: list[Content] = []
        if answer.tool_calls:
            contents.append(Content(f"{attempt_id}/output", "output", _JSON, answer.message_json()))
        elif words := answer.text or answer.refusal:
            contents.append(Content(f"{attempt_id}/output", "output", _TEXT, words.encode()))
        if answer.reasoning:
            contents.append(Content(f"{attempt_id}/reasoning", "reasoning", _TEXT, answer.reasoning.encode()))
        return tuple(contents)

    def _without_key(self, text: str) -> str:
        return "" if self._credentials.is_within(text) else text

    def _elapsed_us(self) -> int:
        return (self._clock.monotonic_ns() - self._started_ns) // _NS_PER_US


def outcome_of(error: PodiumError) -> AttemptOutcome:
    """Return the outcome that an error means."""
    return AttemptOutcome.TIMED_OUT if error.code is Code.DEADLINE else AttemptOutcome.FAILED


def _whole(answer: Answer) -> Delta:
    calls = tuple({"index": index, **call} for index, call in enumerate(answer.tool_calls))
    return Delta(answer.text, answer.reasoning, calls, answer.refusal, answer.logprobs)
