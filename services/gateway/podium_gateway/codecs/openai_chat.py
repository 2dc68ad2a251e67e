"""A chat completions request, decoded: strict where a mistake would cost money or hide itself."""

from collections.abc import Mapping
from dataclasses import dataclass

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan_prompt import FAST_TIER, MAX_TIER, TIER
from podium_core.domain.run import Question
from podium_gateway.codecs.fields import as_string, refuse
from podium_gateway.codecs.openai_messages import decode_messages
from podium_gateway.codecs.openai_parameters import Parameters, decode_parameters
from podium_gateway.codecs.openai_podium import Wishes, decode_wishes
from podium_gateway.codecs.strict_json import parse_object, shown

TIERS = (TIER, FAST_TIER, MAX_TIER)
WORKER_PREFIX = "worker/"
_MAX_MODEL = 256


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One decoded request. `worker_id` is set when the model names a worker: no plan is made then."""

    model: str
    worker_id: str | None
    question: Question
    parameters: Parameters
    wishes: Wishes

    @property
    def tier(self) -> str:
        """The tier's name; `worker` for a named worker."""
        return self.model if self.worker_id is None else WORKER_PREFIX.rstrip("/")


def decode_chat_request(body: bytes) -> ChatRequest:
    """Return what the client asks for.

    Raises PodiumError: INVALID_REQUEST naming the field and what to change, NOT_FOUND for an unknown model.
    """
    fields = parse_object(body)
    model = _model(fields)
    worker_id = worker_of(model)
    question = Question(decode_messages(_required(fields, "messages")))
    _check_last_role(question, worker_id)
    parameters = decode_parameters(fields)
    wishes = decode_wishes(fields.get("podium"))
    if wishes.dry_run and parameters.stream:
        raise refuse("podium.dry_run", "a dry run has nothing to stream; send stream: false")
    if wishes.events and not parameters.stream:
        raise refuse("podium.events", "step events need stream: true")
    return ChatRequest(model, worker_id, question, parameters, wishes)


def worker_of(model: str) -> str | None:
    """Return the worker that a model name asks for, None for a tier; raise NOT_FOUND for other names."""
    if model in TIERS:
        return None
    if model.startswith(WORKER_PREFIX) and len(model) > len(WORKER_PREFIX):
        return model.removeprefix(WORKER_PREFIX)
    raise model_not_found(model)


def model_not_found(model: str) -> PodiumError:
    """Return the error for a model name that this gateway does not serve."""
    return PodiumError(
        Code.NOT_FOUND,
        f"the model {shown(model)} does not exist here; GET /v1/models lists those that do",
        reason="MODEL_NOT_FOUND",
        param="model",
    )


def _model(fields: Mapping[str, object]) -> str:
    value = _required(fields, "model")
    return as_string(value, "model", at_most=_MAX_MODEL, may_be_empty=False)


def _required(fields: Mapping[str, object], name: str) -> object:
    if fields.get(name) is None:
        raise refuse(name, "is missing", reason="MISSING_FIELD")
    return fields[name]


def _check_last_role(question: Question, worker_id: str | None) -> None:
    # A plan rewrites the last message around each subtask, which only a user's words allow. A named
    # worker gets the messages as they are, so its provider may judge their order.
    if worker_id is None and question.last.role != "user":
        last = f"messages[{len(question.messages) - 1}].role"
        raise refuse(
            last, f"the last message must be the user's, not {question.last.role}'s; or ask one worker/<id>"
        )
