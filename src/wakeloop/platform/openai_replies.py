"""Repairs what langchain-openai loses of chat completions."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage

# methods of `BaseChatOpenAI`
_READ_CHUNK = "_convert_chunk_to_generation_chunk"
_READ_WHOLE = "_create_chat_result"
_WRITE_REQUEST = "_get_request_payload"
REASONING_FIELDS = ("reasoning_content", "reasoning")
"""The names under which servers send the model's thoughts. Some servers require them back."""


def repair_replies(chat: object) -> None:
    """Let a client of langchain-openai keep the refusals of streams, and take arguments that are an object.

    A refusal's pieces are joined under `refusal`, as a whole one is. Arguments become the string that OpenAI
    sends. Other clients stay as they are.
    """
    _replace_method(chat, _READ_CHUNK, _read_chunk)
    _replace_method(chat, _READ_WHOLE, _read_whole)


def send_reasoning_back(chat: object) -> None:
    """Let a client of langchain-openai store the model's thoughts, and send them with the history.

    Some servers refuse a history without them. They are sent under the name under which they came.
    """
    _replace_method(chat, _READ_CHUNK, _keep_chunk_reasoning)
    _replace_method(chat, _READ_WHOLE, _keep_whole_reasoning)
    _replace_method(chat, _WRITE_REQUEST, partial(_write_reasoning, chat))


@dataclass(frozen=True)
class _Replaced:
    """A method of a client with our reading around it."""

    around: Callable[..., Any]
    method: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.around(self.method, *args, **kwargs)


def _replace_method(chat: object, name: str, around: Callable[..., Any]) -> None:
    """Put a function around a method of this client, once."""
    method = getattr(chat, name, None)
    if method is None:
        return
    inner = method
    while isinstance(inner, _Replaced):
        if inner.around is around:
            return
        inner = inner.method
    chat.__dict__[name] = _Replaced(around, method)


def _read_chunk(method: Callable[..., Any], chunk: Any, *args: Any, **kwargs: Any) -> Any:
    refusals = []
    for delta in _find_messages(chunk, "delta"):
        _write_out_arguments(delta, empty="")  # more pieces may follow
        refusals.append(_read(delta, "refusal"))
    converted = method(chunk, *args, **kwargs)
    if refusals and isinstance(refusals[0], str) and refusals[0] and converted is not None:
        converted.message.additional_kwargs["refusal"] = refusals[0]
    return converted


def _read_whole(method: Callable[..., Any], response: Any, *args: Any, **kwargs: Any) -> Any:
    for message in _find_messages(response, "message"):
        _write_out_arguments(message, empty="{}")
    return method(response, *args, **kwargs)


def _keep_chunk_reasoning(method: Callable[..., Any], chunk: Any, *args: Any, **kwargs: Any) -> Any:
    converted = method(chunk, *args, **kwargs)
    if converted is not None:
        _keep_reasoning(converted.message, next(_find_messages(chunk, "delta"), None))
    return converted


def _keep_whole_reasoning(method: Callable[..., Any], response: Any, *args: Any, **kwargs: Any) -> Any:
    result = method(response, *args, **kwargs)
    _keep_reasoning(result.generations[0].message, next(_find_messages(response, "message"), None))
    return result


def _keep_reasoning(message: Any, sent: Any) -> None:
    for name in REASONING_FIELDS:
        thoughts = _read(sent, name)
        if isinstance(thoughts, str) and thoughts:
            message.additional_kwargs[name] = thoughts


def _write_reasoning(chat: Any, method: Callable[..., Any], given: Any, **kwargs: Any) -> Any:
    payload = method(given, **kwargs)
    messages = chat._convert_input(given).to_messages()  # noqa: SLF001 - the client converts its input so, too
    written = payload.get("messages", ())  # the Responses API has `input` instead
    if len(written) == len(messages):
        for message, sent in zip(messages, written, strict=True):
            if isinstance(message, AIMessage):
                kept = message.additional_kwargs
                sent.update({name: kept[name] for name in REASONING_FIELDS if name in kept})
    return payload


def _write_out_arguments(message: Any, empty: str) -> None:
    """Write arguments that arrived as an object as the string that OpenAI sends."""
    calls = _read(message, "tool_calls")
    functions = [_read(call, "function") for call in calls] if isinstance(calls, list) else []
    for function in [*functions, _read(message, "function_call")]:
        arguments = _read(function, "arguments")
        if isinstance(arguments, Mapping):
            text = json.dumps(arguments, ensure_ascii=False) if arguments else empty
            if isinstance(function, dict):
                function["arguments"] = text
            else:
                function.arguments = text


def _find_messages(body: Any, key: str) -> Iterator[Any]:
    """Yield the messages of a chat completion, or the pieces of messages in a chunk of it."""
    choices = _read(body, "choices")
    for choice in choices if isinstance(choices, list) else ():
        yield _read(choice, key)


def _read(part: Any, key: str) -> Any:
    """Return a field of what a server sent, as a mapping or as an object of its client; None without it."""
    return part.get(key) if isinstance(part, Mapping) else getattr(part, key, None)
