"""Finds the server's message in a body its client dropped.

A client that cannot make a reply of a body raises its own sentence and drops the body, with the server's
message in it ("model is loading"). The body is still in the frame that raised.
"""

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from langchain_core.messages import AIMessage
from pydantic import BaseModel

_MESSAGE_KEYS = (
    *("message", "detail", "error", "msg", "error_message", "error_msg", "status_msg", "reason"),
    *("errors", "base_resp", "title"),
)
_DEEPEST = 4


def find_body_message(body: Any, room: int = _DEEPEST) -> str:
    """Return the first string under a key that errors use, at most `room` levels deep."""
    if isinstance(body, str):
        return " ".join(body.split())
    if not room:
        return ""
    parts: list[Any] = []
    if isinstance(body, list):
        parts = body[:room]
    elif isinstance(body, BaseModel):
        # also the fields that the client does not declare; a model made without validation has none
        body = {**vars(body), **(getattr(body, "__pydantic_extra__", None) or {})}
    if isinstance(body, Mapping):
        parts = [body.get(key) for key in _MESSAGE_KEYS]
    for part in parts:
        message = find_body_message(part, room - 1)
        if message:
            return message
    return ""


def find_server_message(trace: TracebackType | None) -> str:
    """Return the message in the body that an exception was raised about, or ""."""
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    for value in trace.tb_frame.f_locals.values():
        first = value[0] if isinstance(value, list) and value else value
        if isinstance(first, BaseModel | Mapping):
            message = find_body_message(first)
            if message:
                return message
    return ""


def find_unparsed_text(trace: TracebackType | None) -> AIMessage | None:
    """Return the text that openai's parser could not parse, as far as it was read, and how it ended.

    Returns None if the exception is not from that parser.
    """
    text: str | None = None
    metadata: dict[str, Any] = {}
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
        if not frame.f_globals.get("__name__", "").startswith("openai.lib."):
            continue
        names = frame.f_locals
        streamed = getattr(getattr(names.get("choice_snapshot"), "message", None), "content", None)
        for candidate in (streamed, names.get("content"), names.get("text")):
            if isinstance(candidate, str):
                text = candidate
                break
        details = getattr(names.get("response"), "incomplete_details", None)
        if details is not None:
            metadata["incomplete_details"] = {"reason": getattr(details, "reason", None)}
    return None if text is None else AIMessage(text, response_metadata=metadata)
