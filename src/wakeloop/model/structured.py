"""A reply in the caller's format: its value, its text."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage
from pydantic import BaseModel

from wakeloop.model.broken_stream import Unread, an_assistants
from wakeloop.model.signs import refusal_in, sign_of
from wakeloop.model.storable import beside, unstorable
from wakeloop.text.characters import shorten, whole
from wakeloop.text.marks import mark, new_id, text_of

_NAMED = 300  # characters of what was wrong


@dataclass(frozen=True, slots=True)
class Formatted:
    """A structured reply: its `value` as plain JSON, or the `problem` with it, and its text.

    Of a `refused` one there are words alone.
    """

    message: AIMessage
    value: Any = None
    problem: str | None = None
    cut: bool = False
    refused: bool = False


def formatted(
    result: Mapping[str, Any] | Unread,
    no_text: str,
    *,
    known: Callable[[str], bool],
    cut: bool,
    must_finish: bool = False,
) -> Formatted:
    """Read what a model bound to a format returns: `raw`, `parsed` and `parsing_error`, or nothing at all.

    `no_text` stands for a reply without words; `known` tells whether a message id is taken, `cut` that the
    reply broke off in a stream, `must_finish` that it is a stream which has to say how it ended.
    """
    if isinstance(result, Unread):
        return _unread(result, no_text, known)
    raw = an_assistants(result["raw"])
    sign = sign_of(raw, must_finish=must_finish)
    if sign == "refused":
        return _unread(Unread("", "refused", raw), no_text, known)
    cut = cut or sign == "cut"
    value = None if result["parsing_error"] is not None or cut else whole(plain(result["parsed"]))
    lost = unstorable(value, "the fields")
    if value is not None and lost is None:
        told = {"response_metadata": raw.response_metadata, "usage_metadata": raw.usage_metadata}
        told |= {name: kept for name, kept in beside(raw).items() if name in told}
        return Formatted(_told(raw, json.dumps(value, ensure_ascii=False), known, **told), value)
    why = lost or problem(result["parsing_error"], cut=cut)
    return Formatted(_told(raw, text_of(raw) or no_text, known), problem=why, cut=cut)


def _unread(reply: Unread, no_text: str, known: Callable[[str], bool]) -> Formatted:
    """Keep the words of a reply that is no result and was not to be one, or that the client did not give."""
    raw, cut = reply.message or AIMessage(""), reply.how == "cut"
    words = "\n\n".join(part for part in (text_of(raw), refusal_in(raw)) if part)
    message = _told(raw, words or no_text, known)
    if reply.how == "refused":
        return Formatted(message, refused=True)
    return Formatted(message, problem=problem(None, cut=True) if cut else reply.why, cut=cut)


def _told(raw: AIMessage, text: str, known: Callable[[str], bool], **told: Any) -> AIMessage:
    """Return the text of a structured reply, under the reply's own id where it is new."""
    key = raw.id if raw.id and not known(raw.id) else new_id()
    return AIMessage(whole(text), id=key, additional_kwargs=mark("format"), **told)


def plain(value: Any) -> Any:
    """Return a structured result as plain JSON: it goes into the checkpoint."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return json.loads(json.dumps(value, default=str))


def problem(error: BaseException | None, *, cut: bool) -> str:
    """Say in one line why a structured result is none."""
    if cut:
        return "it was cut off"
    said = " ".join(str(error).split()) if error is not None else "there was no result in it"
    return shorten(said.partition(" For troubleshooting, visit")[0], _NAMED)  # langchain's line for people
