"""A chat completions request, decoded: strict where a mistake would cost money or hide itself."""

from podium_core.domain.run import Question
from podium_gateway.codecs.client_request import ClientRequest, check_last_role, decode_model, worker_of
from podium_gateway.codecs.fields import refuse
from podium_gateway.codecs.openai_messages import decode_messages
from podium_gateway.codecs.openai_parameters import decode_parameters
from podium_gateway.codecs.openai_podium import decode_wishes
from podium_gateway.codecs.strict_json import parse_object


def decode_chat_request(body: bytes) -> ClientRequest:
    """Return what the client asks for.

    Raises PodiumError: INVALID_REQUEST naming the field and what to change, NOT_FOUND for an unknown model.
    """
    fields = parse_object(body)
    model = decode_model(fields.get("model"))
    worker_id = worker_of(model)
    if fields.get("messages") is None:
        raise refuse("messages", "is missing", reason="MISSING_FIELD")
    question = Question(decode_messages(fields["messages"]))
    check_last_role(question, worker_id)
    parameters = decode_parameters(fields)
    wishes = decode_wishes(fields.get("podium"))
    if wishes.dry_run and parameters.stream:
        raise refuse("podium.dry_run", "a dry run has nothing to stream; send stream: false")
    if wishes.dry_run and parameters.is_stored:
        raise refuse("podium.dry_run", "a dry run has nothing to store; send store: false")
    if wishes.events and not parameters.stream:
        raise refuse("podium.events", "step events need stream: true")
    return ClientRequest(model, worker_id, question, parameters, wishes)
