"""What a server said in a body that its client threw away.

A client that cannot make a reply of a body raises its own sentence and drops the body, with the server's
words in it ("model is loading"). They are still in the frame that raised.
"""

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from langchain_core.messages import AIMessage
from pydantic import BaseModel

_WORDS = (
    *("message", "detail", "error", "msg", "error_message", "error_msg", "status_msg", "reason"),
    *("errors", "base_resp", "title"),
)
_DEEPEST = 4


def find_server_message(trace: TracebackType | None) -> str:
    """Return the words of the body that an exception was raised about; "" where there are none."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    for value in trace.tb_frame.f_locals.values() if trace is not None else ():
        first = value[0] if isinstance(value, list) and value else value
        if isinstance(first, BaseModel | Mapping) and (words := _find_message(first)):
            return words
    return ""


def find_unparsed_text(trace: TracebackType | None) -> AIMessage | None:
    """Return what openai's parser could make no format of: its text as far as it was read, and how it ended.

    None where it was not this parser that raised.
    """
    text: str | None = None
    told: dict[str, Any] = {}
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
        if frame.f_globals.get("__name__", "").startswith("openai.lib."):
            held = frame.f_locals
            streamed = getattr(getattr(held.get("choice_snapshot"), "message", None), "content", None)
            text = next(
                (t for t in (streamed, held.get("content"), held.get("text")) if isinstance(t, str)), text
            )
            if (why := getattr(held.get("response"), "incomplete_details", None)) is not None:
                told["incomplete_details"] = {"reason": getattr(why, "reason", None)}
    return None if text is None else AIMessage(text, response_metadata=told)


def _find_message(body: Any, room: int = _DEEPEST) -> str:
    """Return the first text under a key that errors have, however deep it lies."""
    if isinstance(body, str):
        return " ".join(body.split())
    if isinstance(body, list):
        return next((words for part in body[:room] if (words := _find_message(part, room - 1))), "")
    if isinstance(body, BaseModel):  # what the client has no name for, too; one that was not made has none
        body = {**vars(body), **(getattr(body, "__pydantic_extra__", None) or {})}
    if not isinstance(body, Mapping) or not room:
        return ""
    return next((words for key in _WORDS if (words := _find_message(body.get(key), room - 1))), "")
