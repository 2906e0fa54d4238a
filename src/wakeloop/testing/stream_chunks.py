"""Splits a reply into chunks that add up to it."""

import json
from collections.abc import Iterator
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, message_chunk_to_message
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk

_MOST_TEXTS = 4


class _SingleChunk(ChatGenerationChunk):
    """The only chunk of a stream. Adding an empty list must not parse its calls again."""

    def __add__(self, other: ChatGenerationChunk | list[ChatGenerationChunk]) -> ChatGenerationChunk:
        return super().__add__(other) if other else self


def split_reply(message: AIMessage) -> list[ChatGenerationChunk]:
    """Return chunks that add up to `message`, metadata, usage and malformed calls included.

    If the sum would differ, the reply comes as one chunk: LangChain's lenient parser makes cut arguments
    look complete, and loses names and content blocks.
    """
    chunks = list(_chunks_of(message))
    if message_chunk_to_message(chunks[0] + chunks[1:]) == message:
        return [ChatGenerationChunk(message=chunk) for chunk in chunks]
    fields = {name: value for name, value in dict(message).items() if name != "type"}
    return [_SingleChunk(message=AIMessageChunk(**fields, chunk_position="last"))]


def _chunks_of(message: AIMessage) -> Iterator[AIMessageChunk]:
    if isinstance(message.content, str):
        for text in _split_text(message.content):
            yield AIMessageChunk(content=text, id=message.id)
    made: list[tuple[str | None, str | None, str | None]] = []
    for call in message.tool_calls:
        made.append((call["name"], json.dumps(call["args"], default=repr), call["id"]))
    for broken in message.invalid_tool_calls:
        made.append((broken["name"], broken["args"], broken["id"]))
    for index, (name, args, key) in enumerate(made):
        middle = len(args or "") // 2
        yield _call_chunk(message, name=name, args=args and args[:middle], id=key, index=index)
        yield _call_chunk(message, name=None, args=args and args[middle:], id=None, index=index)
    yield AIMessageChunk(
        content="" if isinstance(message.content, str) else message.content,
        id=message.id,
        additional_kwargs=message.additional_kwargs,
        response_metadata=message.response_metadata,
        usage_metadata=message.usage_metadata,
        chunk_position="last",
    )


def _call_chunk(message: AIMessage, **part: Any) -> AIMessageChunk:
    return AIMessageChunk(content="", id=message.id, tool_call_chunks=[tool_call_chunk(**part)])


def _split_text(text: str) -> Iterator[str]:
    size = -(-len(text) // _MOST_TEXTS) or 1
    for start in range(0, len(text), size):
        yield text[start : start + size]
