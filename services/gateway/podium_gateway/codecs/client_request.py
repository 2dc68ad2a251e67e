"""What a client asks for, whichever protocol it speaks: messages and parameters in Chat Completions' words.

Workers are spoken to in those words, so every front decodes into them and renders from them.
"""

from dataclasses import dataclass

from podium_core.domain.run import Question, RunKind
from podium_gateway.codecs.fields import as_string, refuse
from podium_gateway.codecs.model_names import ModelName, model_name
from podium_gateway.codecs.openai_parameters import Parameters
from podium_gateway.codecs.openai_podium import Wishes

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
    def name(self) -> ModelName:
        """What the model's name asks for."""
        return model_name(self.model)

    @property
    def tier(self) -> str:
        """How the run is planned: a tier's name, or `worker` or `plan` where no plan is made."""
        return self.name.tier


def decode_model(value: object) -> str:
    """Return the model's name; raise PodiumError (INVALID_REQUEST) when it is none."""
    if value is None:
        raise refuse("model", "is missing", reason="MISSING_FIELD")
    return as_string(value, "model", at_most=_MAX_MODEL, may_be_empty=False)


def worker_of(model: str) -> str | None:
    """Return the worker that a model name asks for, None for other models; raise NOT_FOUND for neither."""
    return model_name(model).worker_id


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
