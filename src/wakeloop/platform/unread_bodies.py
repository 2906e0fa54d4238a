"""What a server said in a body that its client threw away.

A client that cannot make a reply of a body raises its own sentence and drops the body, with the server's
words in it ("model is loading"). They are still in the frame that raised.
"""

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from langchain_core.messages import AIMessage
from pydantic import BaseModel

_WORDS = ("message", "detail", "error", "msg", "error_message", "reason")
_DEEPEST = 4


def words_in(trace: TracebackType | None) -> str:
    """Return the words of the body that an exception was raised about; "" where there are none."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    for value in trace.tb_frame.f_locals.values() if trace is not None else ():
        if isinstance(value, BaseModel):  # what the client has no name for; one that was not made has none
            value = getattr(value, "__pydantic_extra__", None)  # noqa: PLW2901
        if isinstance(value, Mapping) and (words := _words(value)):
            return words
    return ""


def parsed_in(trace: TracebackType | None) -> AIMessage | None:
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


def _words(body: Mapping[Any, Any], room: int = _DEEPEST) -> str:
    for key in _WORDS:
        said = body.get(key)
        if isinstance(said, str) and said.strip():
            return " ".join(said.split())
        if isinstance(said, Mapping) and room and (words := _words(said, room - 1)):
            return words
    return ""
