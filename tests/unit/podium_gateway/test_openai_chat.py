"""Chat requests: what is taken over, and how everything else is refused by name."""

import json
from typing import Any

import pytest

from podium_core.domain.errors import Code, PodiumError
from podium_core.domain.policy import WorkerFilter
from podium_gateway.codecs.client_request import ClientRequest
from podium_gateway.codecs.openai_chat import decode_chat_request

USER = {"role": "user", "content": "hello"}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


def _decode(**fields: Any) -> ClientRequest:
    return decode_chat_request(json.dumps({"model": "podium", "messages": [USER], **fields}).encode())


def _refusal(**fields: Any) -> PodiumError:
    with pytest.raises(PodiumError) as caught:
        _decode(**fields)
    return caught.value


def test_a_plain_request() -> None:
    chat = _decode()
    assert (chat.model, chat.worker_id) == ("podium", None)
    assert chat.question.last.text == "hello"
    assert chat.parameters.passed == {}
    assert not chat.parameters.stream


def test_a_worker_is_named_by_its_model_name() -> None:
    assert _decode(model="worker/alpha").worker_id == "alpha"


@pytest.mark.parametrize("model", ["gpt-4o", "worker/", "podium-ultra", "plan/"])
def test_unknown_models_do_not_exist(model: str) -> None:
    error = _refusal(model=model)
    assert (error.code, error.reason, error.param) == (Code.NOT_FOUND, "MODEL_NOT_FOUND", "model")


def test_honoured_parameters_are_passed_on_and_the_rest_is_acted_on() -> None:
    passed = {
        "temperature": 0.2,
        "top_p": 1,
        "stop": ["a", "b"],
        "seed": -3,
        "presence_penalty": 0.5,
        "frequency_penalty": -0.5,
        "tools": [TOOL],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
        "logprobs": True,
        "top_logprobs": 3,
        "logit_bias": {"50256": -100},
        "prediction": {"type": "content", "content": [{"type": "text", "text": "as before"}]},
        "prompt_cache_key": "k",
        "reasoning_effort": "xhigh",
        "safety_identifier": "s",
        "service_tier": "flex",
        "user": "u-1",
        "verbosity": "low",
    }
    chat = _decode(
        **passed,
        max_completion_tokens=7,
        metadata={"team": "x"},
        stream=True,
        stream_options={"include_usage": True},
        n=1,
    )
    assert chat.parameters.passed == passed
    assert chat.parameters.max_output_tokens == 7
    assert chat.parameters.include_usage
    assert chat.parameters.metadata == {"team": "x"}


def test_values_that_ask_for_nothing_are_not_refused_and_not_sent() -> None:
    harmless = {
        "logprobs": False,
        "top_logprobs": 0,
        "store": False,
        "service_tier": "auto",
        "modalities": ["text"],
        "logit_bias": {},
        "response_format": {"type": "text"},
        "tools": [],
        "stop": [],
        "temperature": None,
        "reasoning_effort": None,
        "whatever_it_is": None,
    }
    assert _decode(**harmless).parameters.passed == {}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": 2.5}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"top_p": -0.1}, "top_p"),
        ({"presence_penalty": 3}, "presence_penalty"),
        ({"seed": 1.5}, "seed"),
        ({"stop": 3}, "stop"),
        ({"stop": ""}, "stop"),
        ({"stop": list("abcde")}, "stop"),
        ({"stop": ["a", 1]}, "stop[1]"),
        ({"n": 17}, "n"),
        ({"stream": "yes"}, "stream"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 5, "max_completion_tokens": 6}, "max_tokens"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"stream": True, "stream_options": {"usage": True}}, "stream_options.usage"),
        (
            {"stream": True, "stream_options": {"include_obfuscation": True}},
            "stream_options.include_obfuscation",
        ),
        ({"user": 7}, "user"),
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"metadata": {str(i): "x" for i in range(17)}}, "metadata"),
        ({"tools": [{"type": "custom"}]}, "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [{"type": "function", "function": {"name": ""}}]}, "tools[0].function.name"),
        ({"tool_choice": "auto"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": "some"}, "tool_choice"),
        ({"parallel_tool_calls": True}, "parallel_tool_calls"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        ({"logprobs": "yes"}, "logprobs"),
        ({"store": "yes"}, "store"),
        ({"store": True, "podium": {"dry_run": True}}, "podium.dry_run"),
        ({"service_tier": "best"}, "service_tier"),
        ({"reasoning_effort": "extreme"}, "reasoning_effort"),
        ({"functions": []}, "functions"),
        ({"logit_bias": {"1": 200}}, "logit_bias.1"),
        ({"top_logprobs": False}, "top_logprobs"),
        ({"top_logprobs": 21}, "top_logprobs"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"verbosity": "chatty"}, "verbosity"),
        ({"prediction": "same"}, "prediction"),
        ({"prediction": {"type": "content"}}, "prediction.content"),
        ({"prompt_cache_key": 3}, "prompt_cache_key"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"audio": {"voice": "x"}}, "audio"),
        ({"base_url": "http://10.0.0.1"}, "base_url"),
        ({"api_base": "http://10.0.0.1"}, "api_base"),
        ({"api_key": "sk-x"}, "api_key"),
        ({"best_of": 2}, "best_of"),
        ({"model": 3}, "model"),
        ({"model": None}, "model"),
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "hello"}, "messages"),
    ],
)
def test_bad_fields_are_named(fields: dict[str, Any], param: str) -> None:
    error = _refusal(**fields)
    assert error.code is Code.INVALID_REQUEST
    assert error.param == param
    assert param in error.message


@pytest.mark.parametrize(
    ("fields", "instead"),
    [
        ({"functions": [{"name": "f"}]}, "use tools"),
        ({"function_call": "auto"}, "use tool_choice"),
    ],
)
def test_a_refused_parameter_says_what_to_use_instead(fields: dict[str, Any], instead: str) -> None:
    error = _refusal(**fields)
    assert error.reason == "UNSUPPORTED_PARAMETER"
    assert instead in error.message


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("hello", "messages[0]"),
        ({"content": "x"}, "messages[0].role"),
        ({"role": "boss", "content": "x"}, "messages[0].role"),
        ({"role": "user"}, "messages[0].content"),
        ({"role": "user", "content": 3}, "messages[0].content"),
        ({"role": "user", "content": []}, "messages[0].content"),
        ({"role": "user", "content": ["x"]}, "messages[0].content[0]"),
        ({"role": "user", "content": [{"type": "file"}]}, "messages[0].content[0].type"),
        ({"role": "user", "content": [{"type": "input_audio"}]}, "messages[0].content[0].input_audio"),
        (
            {
                "role": "user",
                "content": [{"type": "input_audio", "input_audio": {"data": "AA==", "format": "ogg"}}],
            },
            "messages[0].content[0].input_audio.format",
        ),
        *[
            (
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]},
                "messages[0].content[0].image_url.url",
            )
            for url in (
                "file:///etc/passwd",
                "gs://b/o",
                "data:text/html,x",
                "//x/y",
                "https://" + "x" * 9_000,
            )
        ],
        ({"role": "user", "content": [{"type": "text"}]}, "messages[0].content[0].text"),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": "x"}]},
            "messages[0].content[0].image_url",
        ),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": ""}}]},
            "messages[0].content[0].image_url.url",
        ),
        (
            {"role": "system", "content": [{"type": "image_url", "image_url": {"url": "x"}}]},
            "messages[0].content[0].type",
        ),
        ({"role": "tool", "content": "x"}, "messages[0].tool_call_id"),
        ({"role": "assistant", "content": None}, "messages[0].content"),
        ({"role": "assistant", "tool_calls": [{"id": "a"}]}, "messages[0].tool_calls[0].function"),
        ({"role": "user", "content": "x", "tool_calls": [{}]}, "messages[0].tool_calls"),
        ({"role": "user", "content": "x", "name": 3}, "messages[0].name"),
    ],
)
def test_bad_messages_are_named(message: object, param: str) -> None:
    error = _refusal(messages=[message, USER])
    assert (error.code, error.param) == (Code.INVALID_REQUEST, param)


def test_a_conversation_stays_as_the_client_wrote_it() -> None:
    messages = [
        {"role": "developer", "content": "be brief"},
        {"role": "system", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "42", "odd": {"kept": [1, 2.5]}},
        {
            "role": "user",
            "name": "ann",
            "content": [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
            ],
        },
    ]
    question = _decode(messages=messages).question
    assert [dict(m.fields) for m in question.messages] == messages
    assert [m.text for m in question.messages] == ["be brief", "a\nb", "", "42", "see"]
    assert question.last.image_count == 1


def test_a_plan_needs_the_users_words_last_but_a_named_worker_does_not() -> None:
    messages = [USER, {"role": "assistant", "content": "hm"}]
    assert _refusal(messages=messages).param == "messages[1].role"
    assert _decode(model="worker/alpha", messages=messages).question.last.text == "hm"


def test_wishes_are_decoded_exactly() -> None:
    wishes = _decode(
        stream=True,
        podium={
            "workers": {"only": ["a", "b"], "except": ["b"]},
            "max_usd": 0.1,
            "max_calls": 3,
            "max_tokens": 1000,
            "max_seconds": 2.5,
            "max_steps": 2,
            "rounds": 1,
            "events": True,
        },
    ).wishes
    assert wishes.workers == WorkerFilter(frozenset({"a", "b"}), frozenset({"b"}))
    assert wishes.max_cost_usd_micros == 100_000
    assert (wishes.max_calls, wishes.max_tokens, wishes.max_duration_s) == (3, 1000, 2.5)
    assert (wishes.max_steps, wishes.rounds, wishes.events, wishes.dry_run) == (2, 1, True, False)


@pytest.mark.parametrize(
    ("text", "micros"), [("0.000001", 1), ("25", 25_000_000), (0, 0), (1e-6, 1), ("1e2", 100_000_000)]
)
def test_money_is_exact(text: object, micros: int) -> None:
    assert _decode(podium={"max_usd": text}).wishes.max_cost_usd_micros == micros


@pytest.mark.parametrize(
    ("podium", "param"),
    [
        ([], "podium"),
        ({"max_dollars": 1}, "podium.max_dollars"),
        ({"max_usd": "much"}, "podium.max_usd"),
        ({"max_usd": -1}, "podium.max_usd"),
        ({"max_usd": "NaN"}, "podium.max_usd"),
        ({"max_usd": "sNaN"}, "podium.max_usd"),
        ({"max_usd": "1e400000000"}, "podium.max_usd"),
        ({"max_usd": "0.0000001"}, "podium.max_usd"),
        ({"max_usd": True}, "podium.max_usd"),
        ({"max_calls": 0}, "podium.max_calls"),
        ({"max_steps": 6}, "podium.max_steps"),
        ({"max_seconds": 0}, "podium.max_seconds"),
        ({"rounds": 0}, "podium.rounds"),
        ({"workers": ["a"]}, "podium.workers"),
        ({"workers": {"without": []}}, "podium.workers.without"),
        ({"workers": {"only": []}}, "podium.workers.only"),
        ({"workers": {"except": [1]}}, "podium.workers.except[0]"),
        ({"events": True}, "podium.events"),
        ({"dry_run": 1}, "podium.dry_run"),
    ],
)
def test_bad_wishes_are_named(podium: object, param: str) -> None:
    error = _refusal(podium=podium)
    assert (error.code, error.param) == (Code.INVALID_REQUEST, param)


def test_a_dry_run_cannot_stream() -> None:
    assert _refusal(stream=True, podium={"dry_run": True}).param == "podium.dry_run"
