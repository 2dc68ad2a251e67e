"""What a client asks for, whichever protocol it speaks: messages and parameters in Chat Completions' words.

Workers are spoken to in those words, so every front decodes into them and renders from them.
"""

from dataclasses import dataclass

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.plan_prompt import FAST_TIER, MAX_TIER, TIER
from podium_core.domain.run import Question, RunKind
from podium_gateway.codecs.fields import as_string, refuse
from podium_gateway.codecs.openai_parameters import Parameters
from podium_gateway.codecs.openai_podium import Wishes
from podium_gateway.codecs.strict_json import shown

TIERS = (TIER, FAST_TIER, MAX_TIER)
WORKER_PREFIX = "worker/"
_MAX_MODEL = 256


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """One decoded request. `worker_id` is set when the model names a worker: no plan is made then."""

    model: str
    worker_id: str | None
    question: Question
    parameters: Parameters
    wishes: Wishes
    kind: RunKind = RunKind.CHAT

    @property
    def tier(self) -> str:
        """The tier's name; `worker` for a named worker."""
        return self.model if self.worker_id is None else WORKER_PREFIX.rstrip("/")


def decode_model(value: object) -> str:
    """Return the model's name; raise PodiumError (INVALID_REQUEST) when it is none."""
    if value is None:
        raise refuse("model", "is missing", reason="MISSING_FIELD")
    return as_string(value, "model", at_most=_MAX_MODEL, may_be_empty=False)


def worker_of(model: str) -> str | None:
    """Return the worker that a model name asks for, None for a tier; raise NOT_FOUND for other names."""
    if model in TIERS:
        return None
    if model.startswith(WORKER_PREFIX) and len(model) > len(WORKER_PREFIX):
        return model.removeprefix(WORKER_PREFIX)
    raise model_not_found(model)


def check_last_role(question: Question, worker_id: str | None, path: str | None = None) -> None:
    """Refuse a conversation that ends with neither a user nor a tool, unless a named worker is asked.

    A plan rewrites the last message around each subtask, which only a user's words allow. Tool results go
    to one worker as they are, and so does everything to a named worker: its provider may judge their order.
    """
    if worker_id is None and question.last.role not in ("tool", "user"):
        raise refuse(
            path or f"messages[{len(question.messages) - 1}].role",
            f"the last message must be a user's or a tool's, not {question.last.role}'s; or ask worker/<id>",
        )


def model_not_found(model: str) -> PodiumError:
    """Return the error for a model name that this gateway does not serve."""
    return PodiumError(
        Code.NOT_FOUND,
        f"the model {shown(model)} does not exist here; GET /v1/models lists those that do",
        reason="MODEL_NOT_FOUND",
        param="model",
    )
