"""Repairs what langchain-openai loses of replies."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage

# methods of `BaseChatOpenAI`
_READ_CHUNK = "_convert_chunk_to_generation_chunk"
_READ_WHOLE = "_create_chat_result"
_WRITE_REQUEST = "_get_request_payload"
# of the clients of `openai` in it: takes every body and every event of a stream, as parsed JSON
_READ_BODY = "_process_response_data"
_CLIENTS = ("root_client", "root_async_client")
DETAILS = "reasoning_details"
REASONING_FIELDS = ("reasoning_content", "reasoning", DETAILS)
"""The names under which servers send the model's thoughts. Some servers require them back."""
_JSON = json.JSONDecoder(strict=False)
_JOINED = ("text", "summary")  # fields of a detail that a stream cuts into pieces


def repair_replies(chat: object) -> None:
    """Let a client of langchain-openai keep the refusals of streams, and take arguments that are an object.

    A refusal's pieces are joined under `refusal`, as a whole one is. Arguments become the string that OpenAI
    sends. Other clients stay as they are.
    """
    _replace_method(chat, _READ_CHUNK, _keep_refusal)
    for name in _CLIENTS:
        _replace_method(getattr(chat, name, None), _READ_BODY, _read_body)


def send_reasoning_back(chat: object) -> None:
    """Let a client of langchain-openai store the model's thoughts, and send them with the history.

    Some servers refuse a history without them. They are sent under the name under which they came.
    """
    _replace_method(chat, _READ_CHUNK, _keep_chunk_reasoning)
    _replace_method(chat, _READ_WHOLE, _keep_whole_reasoning)
    _replace_method(chat, _WRITE_REQUEST, _write_reasoning, chat)


def _replace_method(chat: object, name: str, around: Callable[..., Any], *more: Any) -> None:
    """Put a function around a method of this client, once: it is called with `more` and the method first."""
    method = inner = getattr(chat, name, None)
    while isinstance(inner, partial):
        if inner.func is around:
            return
        inner = inner.args[-1]
    if method is not None:
        chat.__dict__[name] = partial(around, *more, method)


def _keep_refusal(method: Callable[..., Any], chunk: Any, *args: Any, **kwargs: Any) -> Any:
    converted = method(chunk, *args, **kwargs)
    refusal = _read(next(_find_messages(chunk, "delta"), None), "refusal")
    if isinstance(refusal, str) and refusal and converted is not None:
        converted.message.additional_kwargs["refusal"] = refusal
    return converted


def _read_body(method: Callable[..., Any], *args: Any, data: Any, **kwargs: Any) -> Any:
    """Write arguments that arrived as an object as the string that OpenAI sends."""
    for part, key, empty in _find_arguments(data):
        arguments = part.get(key) if isinstance(part, dict) else None
        # encoded twice, and whole: a piece of a stream may look like anything
        if isinstance(arguments, str) and empty and arguments.lstrip().startswith('"'):
            arguments = read_wrapped_arguments(arguments)
        if isinstance(arguments, dict):
            part[key] = json.dumps(arguments, ensure_ascii=False) if arguments else empty
    return method(*args, data=data, **kwargs)


def read_wrapped_arguments(text: str) -> dict[str, Any] | None:
    """Return the arguments that were encoded twice, or sent whole with every piece of a stream; else None.

    >>> read_wrapped_arguments('{}{"path": "a"}{"path": "a"}'), read_wrapped_arguments('"{}"')
    ({'path': 'a'}, {})
    """
    text, place = text.strip(), 0
    meant: dict[str, Any] = {}
    try:
        while place < len(text):
            value, place = _JSON.raw_decode(text, place)
            if isinstance(value, str):
                value = _JSON.decode(value)
            if not isinstance(value, dict) or (value and meant and value != meant):
                return None
            meant = value or meant
    except (ValueError, RecursionError):
        return None
    return meant if text else None


def _find_arguments(body: Any) -> Iterator[tuple[Any, str, str]]:
    """Yield where arguments are, and what to write for none: in a stream, more pieces may follow."""
    for kind, empty in (("message", "{}"), ("delta", "")):
        for message in _find_messages(body, kind):
            calls = _read(message, "tool_calls")
            for call in calls if isinstance(calls, list) else ():
                yield _read(call, "function"), "arguments", empty
            yield _read(message, "function_call"), "arguments", empty
    # the Responses API: an event of a stream, a whole response
    yield _read(body, "item"), "arguments", ""
    if _read(body, "type") == "response.function_call_arguments.delta":
        yield body, "delta", ""
    for response in (body, _read(body, "response")):
        items = _read(response, "output")
        for item in items if isinstance(items, list) else ():
            yield item, "arguments", "{}"


def _keep_chunk_reasoning(method: Callable[..., Any], chunk: Any, *args: Any, **kwargs: Any) -> Any:
    converted = method(chunk, *args, **kwargs)
    if converted is not None:
        kept = _keep_reasoning(converted.message, next(_find_messages(chunk, "delta"), None))
        for piece in kept.get(DETAILS, ()):
            # langchain joins pieces of one index, names too, and OpenRouter gives each of them index 0
            piece.pop("index", None)
    return converted


def _keep_whole_reasoning(method: Callable[..., Any], response: Any, *args: Any, **kwargs: Any) -> Any:
    result = method(response, *args, **kwargs)
    if result.generations:  # a reply without choices is the client's to refuse
        _keep_reasoning(result.generations[0].message, next(_find_messages(response, "message"), None))
    return result


def _keep_reasoning(message: Any, sent: Any) -> dict[str, Any]:
    """Put the thoughts that were sent into the message, and return its `additional_kwargs`."""
    kept: dict[str, Any] = message.additional_kwargs
    for name in REASONING_FIELDS:
        thoughts = _read(sent, name)
        if name == DETAILS and isinstance(thoughts, list):
            kept[name] = [dict(part) for part in thoughts if isinstance(part, Mapping)]
        elif isinstance(thoughts, str) and thoughts:
            kept[name] = thoughts
    return kept


def join_reasoning(message: AIMessage) -> AIMessage:
    """Return a reply with the pieces of each thought joined, in which a stream brought its details.

    Parts in a row are pieces of one thought if they have the same type and text each; a signature ends it.
    """
    details = message.additional_kwargs.get(DETAILS)
    if not (isinstance(details, list) and all(isinstance(part, dict) for part in details)):
        return message
    joined: list[dict[str, Any]] = []
    for part in details:
        last = joined[-1] if joined else {}
        shared = [key for key in _JOINED if isinstance(last.get(key), str) and isinstance(part.get(key), str)]
        same = all(last.get(key) == part.get(key) for key in ("type", "index"))
        if shared and same and not last.get("signature"):
            told = {key: value for key, value in part.items() if value is not None}
            joined[-1] = {**last, **told, shared[0]: last[shared[0]] + part[shared[0]]}
        else:
            joined.append(part)
    return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, DETAILS: joined}})


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


def _find_messages(body: Any, key: str) -> Iterator[Any]:
    """Yield the messages of a chat completion, or the pieces of messages in a chunk of it."""
    choices = _read(body, "choices")
    for choice in choices if isinstance(choices, list) else ():
        yield _read(choice, key)


def _read(part: Any, key: str) -> Any:
    """Return a field of what a server sent, as a mapping or as an object of its client; None without it."""
    return part.get(key) if isinstance(part, Mapping) else getattr(part, key, None)
