"""The whole document: every route, what it takes, what it answers, and every way it may refuse."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version

from podium_gateway.codecs.listing import MAX_LISTED, ORDERS
from podium_gateway.errors import HTTP_TABLE, ROW_OF_REASON
from podium_gateway.openapi.chat import CHAT_SHAPES
from podium_gateway.openapi.messages import MESSAGE_SHAPES
from podium_gateway.openapi.others import OTHER_SHAPES
from podium_gateway.openapi.responses import RESPONSE_SHAPES
from podium_gateway.openapi.shapes import (
    ANY_OBJECT,
    Shape,
    answer,
    choice,
    component,
    constant,
    integer,
    or_null,
    text,
)
from podium_gateway.own_usage import GROUPS, MAX_DAYS, PARAMETERS, SCOPES

_Object = dict[str, object]

_JSON = "application/json"
_EVENTS = "text/event-stream"
_TAKES_A_BODY = frozenset({"post"})
# Only a request with a body can be too large, repeat a key, or ask a provider for something.
_ONLY_WITH_A_BODY = frozenset({409, 413, 499, 502})
_WRONG_METHOD = 405
_UNREADY = 503


@dataclass(frozen=True, slots=True)
class _Operation:
    """One method of one URL. `takes` and `gives` name shapes; `streams` where `stream: true` is known."""

    method: str
    path: str
    name: str
    summary: str
    gives: str
    takes: str = ""
    streams: bool = False
    repeatable: bool = False
    parameters: tuple[_Object, ...] = ()
    is_health: bool = False


def api_document(max_body_bytes: int) -> _Object:
    """Return the document in OpenAPI 3.1; it is the same for every caller and holds nothing of any tenant."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Podium",
            "version": version("podium"),
            "description": (
                "OpenAI's Chat Completions, Responses and Embeddings and Anthropic's Messages, answered by a"
                f" team of workers. Bodies hold at most {max_body_bytes} bytes. What Podium cannot honour it"
                " refuses by name; null means that a field is not given."
            ),
        },
        "security": [{"bearer": []}, {"apiKey": []}],
        "paths": _paths(),
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "apiKey": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
            "schemas": {
                **CHAT_SHAPES,
                **RESPONSE_SHAPES,
                **MESSAGE_SHAPES,
                **OTHER_SHAPES,
                **_error_shapes(),
                "Document": ANY_OBJECT,
                "Event": answer(
                    {"data": text(), "event": text()},
                    sometimes=("data", "event"),
                    about="Each server-sent event, when stream is true",
                ),
            },
        },
    }


def _in_path(name: str) -> _Object:
    return {"name": name, "in": "path", "required": True, "schema": text(may_be_empty=False)}


def _in_query(name: str, shape: Shape, about: str) -> _Object:
    return {"name": name, "in": "query", "schema": shape, "description": about}


_IDEMPOTENCY: _Object = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": text(may_be_empty=False, at_most=255),
    "description": "The same key with the same body gets the same answer, and one run is paid for",
}
_DAY: Shape = {"type": "string", "format": "date"}
_USAGE_QUERY: Mapping[str, tuple[Shape, str]] = {
    "from": (_DAY, "The first UTC day; the first of the month unless given"),
    "to": (_DAY, f"The last UTC day, less than {MAX_DAYS} days later; today unless given"),
    "scope": (choice(*SCOPES), "tenant needs the role auditor"),
    "group_by": (text(), f"Different ones of {', '.join(GROUPS)}, with commas between"),
}
_RESUME = (
    _in_query("stream", choice("true", "false"), "true streams the events instead"),
    _in_query("starting_after", integer(0, 10**9 - 1), "The sequence number of the last event that was read"),
)
_RESPONSE = "/v1/responses/{id}"
_COMPLETION = "/v1/chat/completions/{id}"
_PART = (
    _in_query("after", text(at_most=256), "The id that the part of the list before ended with"),
    _in_query("limit", integer(1, MAX_LISTED), "At most so many; 20 unless given"),
    _in_query("order", choice(*ORDERS), "By time"),
)
_MODEL_ONLY = _in_query(
    "model", text(at_most=256), "Only of this model; metadata[<name>]=<value> selects too"
)

_OPERATIONS = (
    _Operation(
        "post",
        "/v1/chat/completions",
        "createChatCompletion",
        "Answer a conversation",
        "ChatCompletion",
        "ChatCompletionRequest",
        streams=True,
        repeatable=True,
    ),
    _Operation(
        "get",
        "/v1/chat/completions",
        "listChatCompletions",
        "List what this key has stored, oldest first",
        "ChatCompletionList",
        parameters=(*_PART, _MODEL_ONLY),
    ),
    _Operation(
        "get",
        _COMPLETION,
        "getChatCompletion",
        "Read a stored completion",
        "ChatCompletion",
        parameters=(_in_path("id"),),
    ),
    _Operation(
        "post",
        _COMPLETION,
        "updateChatCompletion",
        "Replace a stored completion's metadata",
        "ChatCompletion",
        "ChatCompletionChange",
        parameters=(_in_path("id"),),
    ),
    _Operation(
        "delete",
        _COMPLETION,
        "deleteChatCompletion",
        "Delete a stored completion for good",
        "DeletedChatCompletion",
        parameters=(_in_path("id"),),
    ),
    _Operation(
        "get",
        f"{_COMPLETION}/messages",
        "listChatCompletionMessages",
        "List the messages that a stored completion answers",
        "ChatMessageList",
        parameters=(_in_path("id"), *_PART),
    ),
    _Operation(
        "post",
        "/v1/responses",
        "createResponse",
        "Answer, keep and continue, in the background if wanted",
        "Response",
        "ResponseRequest",
        streams=True,
        repeatable=True,
    ),
    _Operation(
        "get",
        _RESPONSE,
        "getResponse",
        "Read a stored response, or resume its stream",
        "Response",
        streams=True,
        parameters=(_in_path("id"), *_RESUME),
    ),
    _Operation(
        "delete",
        _RESPONSE,
        "deleteResponse",
        "Delete a stored response for good",
        "DeletedResponse",
        parameters=(_in_path("id"),),
    ),
    _Operation(
        "post",
        f"{_RESPONSE}/cancel",
        "cancelResponse",
        "Cancel a background response",
        "Response",
        parameters=(_in_path("id"),),
    ),
    _Operation(
        "get",
        f"{_RESPONSE}/input_items",
        "listResponseInput",
        "List what a response was asked, the last item first",
        "ResponseItemList",
        parameters=(_in_path("id"), *_PART),
    ),
    _Operation(
        "post",
        "/v1/messages",
        "createMessage",
        "Answer a conversation, in Anthropic's words",
        "Message",
        "MessageRequest",
        streams=True,
        repeatable=True,
    ),
    _Operation(
        "post",
        "/v1/messages/count_tokens",
        "countMessageTokens",
        "Estimate the tokens of a conversation",
        "TokenCount",
        "CountRequest",
    ),
    _Operation(
        "post",
        "/v1/embeddings",
        "createEmbeddings",
        "Make vectors of texts",
        "EmbeddingList",
        "EmbeddingRequest",
        repeatable=True,
    ),
    _Operation("get", "/v1/models", "listModels", "List what this key may name", "ModelList"),
    _Operation(
        "get",
        "/v1/models/{model}",
        "getModel",
        "Describe one model",
        "Model",
        parameters=(_in_path("model"),),
    ),
    _Operation(
        "post",
        "/v1/podium/runs/{run_id}/grade",
        "gradeRun",
        "Grade a run that has ended",
        "Grade",
        "GradeRequest",
        parameters=(_in_path("run_id"),),
    ),
    _Operation(
        "get",
        "/v1/podium/usage",
        "getUsage",
        "What this key, or its tenant, has used, and the money left",
        "Usage",
        parameters=tuple(_in_query(name, *_USAGE_QUERY[name]) for name in PARAMETERS),
    ),
    _Operation("get", "/openapi.json", "getDescription", "This description, for any valid key", "Document"),
    _Operation("get", "/healthz", "getLiveness", "Whether the process lives", "Health", is_health=True),
    _Operation("get", "/readyz", "getReadiness", "Whether requests can be served", "Health", is_health=True),
)


def _paths() -> _Object:
    paths: dict[str, _Object] = {}
    for operation in _OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _described(operation)
    return dict(paths)


def _described(operation: _Operation) -> _Object:
    content: _Object = {_JSON: {"schema": component(operation.gives)}}
    answered: _Object = {"description": "The answer", "content": content}
    told: _Object = {"operationId": operation.name, "summary": operation.summary}
    if operation.is_health:
        unready = {**answered, "description": "Not now; the body says what stands in the way"}
        return {**told, "security": [], "responses": {"200": answered, str(_UNREADY): unready}}
    if operation.streams:
        content[_EVENTS] = {"schema": component("Event")}
    parameters = [*operation.parameters, *([_IDEMPOTENCY] if operation.repeatable else [])]
    if parameters:
        told["parameters"] = parameters
    if operation.takes:
        body = {_JSON: {"schema": component(operation.takes)}}
        told["requestBody"] = {"required": True, "content": body}
    return {**told, "responses": {"200": answered, **_refusals(operation)}}


def _refusals(operation: _Operation) -> _Object:
    shape = component("AnthropicError" if operation.path.startswith("/v1/messages") else "Error")
    return {
        str(status): {"description": ", ".join(words), "content": {_JSON: {"schema": shape}}}
        for status, words in sorted(_words_of_status().items())
        if operation.method in _TAKES_A_BODY or status not in _ONLY_WITH_A_BODY
    }


def _words_of_status() -> dict[int, list[str]]:
    """Return the codes, and the reasons unlike their codes, by the status that tells them."""
    found: dict[int, list[str]] = {}
    for word, row in (*((code.value, row) for code, row in HTTP_TABLE.items()), *ROW_OF_REASON.items()):
        if row.status != _WRONG_METHOD:
            found.setdefault(row.status, []).append(word)
    return found


def _error_shapes() -> dict[str, Shape]:
    kinds = sorted({row.type for row in (*HTTP_TABLE.values(), *ROW_OF_REASON.values())})
    told: dict[str, Shape] = {
        "message": text(about="What to change"),
        "code": text(about="The reason, in lower case"),
        "param": or_null(text(about="The field to blame")),
    }
    return {
        "Error": answer(
            {"error": answer({**told, "type": choice(*kinds)}), "podium": component("PodiumRun")},
            sometimes=("podium",),
        ),
        "AnthropicError": answer(
            {
                "type": constant("error"),
                "error": answer({**told, "type": text()}),
                "request_id": or_null(text()),
                "podium": component("PodiumRun"),
            },
            sometimes=("podium",),
        ),
    }
