"""What the library is told of a call: our own fields, and of the client's only those that OpenAI's chat has.

The library takes its orders (addresses, keys, retries, mock answers) from the same arguments as a request's
parameters, so a field that is not known here never reaches it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from podium_core.domain.errors import PodiumError, invalid
from podium_router.ports import ProviderRequest

_ALWAYS: Final = frozenset(
    {"model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens"}
)
_PARAMETERS: Final = frozenset(
    {
        "audio",
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "modalities",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "reasoning_effort",
        "response_format",
        "safety_identifier",
        "seed",
        "service_tier",
        "stop",
        "temperature",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
    }
)
_EMBEDDING: Final = frozenset({"model", "input", "encoding_format", "dimensions"})
_PREFIXES: Final = {
    "anthropic": "anthropic/",
    "gemini": "gemini/",
    "vertex": "gemini/",
    "bedrock": "bedrock/converse/",
    "litellm": "",
}
_TAKES_SEVERAL: Final = "cohere."
"""Of Bedrock's models that make vectors, those of this maker alone take more than one input a call."""
_ADDRESSES: Final = ("http://", "https://", "gs://", "s3://", "file://")
_NEVER_S: Final = 86_400.0


def library_arguments(request: ProviderRequest, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of one call. Raises PodiumError (INVALID_REQUEST) naming an unknown field."""
    known = _EMBEDDING if request.is_embedding else _PARAMETERS | _ALWAYS
    for name in fields:
        if name not in known:
            raise _unsupported(name)
    if request.is_embedding:
        _check_inputs(request, fields["input"])
    prefix = _PREFIXES[request.kind]
    arguments = {
        **fields,
        "model": (prefix.replace("converse/", "") if request.is_embedding else prefix) + request.model,
        "timeout": _NEVER_S,  # time is the router's business
        "num_retries": 0,
        "max_retries": 0,
        "no-log": True,
        "thought_signature_in_tool_call_id": False,
    }
    arguments.pop("encoding_format", None)  # numbers, which every provider knows
    address = str(request.url)
    if address:
        arguments["api_base"] = address
    credentials = request.credentials
    if credentials.key is not None:
        arguments["api_key"] = credentials.key.reveal()
    if request.kind == "bedrock":
        arguments["aws_region_name"] = request.region
    if credentials.aws_access_key_id is not None and credentials.aws_secret_access_key is not None:
        arguments["aws_access_key_id"] = credentials.aws_access_key_id.reveal()
        arguments["aws_secret_access_key"] = credentials.aws_secret_access_key.reveal()
    if credentials.aws_session_token is not None:
        arguments["aws_session_token"] = credentials.aws_session_token.reveal()
    return arguments


def check_request(library: Any, arguments: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
    """Raise PodiumError (INVALID_REQUEST) for what the provider cannot be asked, or would make us fetch."""
    provider, _, model = str(arguments["model"]).partition("/")
    model = model.removeprefix("converse/")
    supported = library.get_supported_openai_params(model=model, custom_llm_provider=provider) or ()
    for name in fields:
        if name not in _ALWAYS and name not in supported and name != "n":
            raise _unsupported(name)
    for address in _addresses(fields["messages"]):
        if address.startswith(_ADDRESSES):
            raise invalid(
                "the worker's provider is not sent addresses of images or files; send the content itself as a"
                " data: URL",
                reason="ADDRESS_UNSUPPORTED",
                param="messages",
            )


def _check_inputs(request: ProviderRequest, inputs: Any) -> None:
    """Refuse what the library would cut into several requests: an attempt is one, and the log permits one."""
    if request.kind == "bedrock" and len(inputs) > 1 and _TAKES_SEVERAL not in request.model:
        raise invalid(
            "the worker's model takes one input a call: send the inputs one by one",
            reason="INPUTS_UNSUPPORTED",
            param="input",
        )
    if not all(isinstance(item, str) for item in inputs):
        raise invalid(
            "the worker's provider takes texts, not token numbers", reason="INPUTS_UNSUPPORTED", param="input"
        )


def _unsupported(name: str) -> PodiumError:
    return invalid(
        f"the worker's provider has nothing like {name}; leave it out or choose another worker",
        reason="PARAMETER_UNSUPPORTED",
        param=name,
    )


def _addresses(messages: Any) -> Iterator[str]:
    """Give every text inside content parts that are not text: one of them may be an address."""
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and part.get("type") not in ("text", "refusal"):
                yield from _texts(part, depth=4)


def _texts(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value.strip().lower()[:16]
    elif depth and isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item, depth - 1)
