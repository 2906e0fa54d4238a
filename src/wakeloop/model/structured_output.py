"""A reply in the caller's format: its value, its text."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage
from pydantic import BaseModel

from wakeloop.model.finish_reasons import refusal_text, reply_problem
from wakeloop.model.reply_watcher import UnreadableReply, require_ai_message
from wakeloop.model.storable_values import storable_fields, storage_problem
from wakeloop.text.characters import fix_surrogates, shorten
from wakeloop.text.marks import make_mark, new_id, text_of

_NAMED = 300  # characters of what was wrong


@dataclass(frozen=True, slots=True)
class StructuredReply:
    """A structured reply: its `value` as plain JSON, or the `problem` with it, and its text.

    Of a `refused` one there are words alone.
    """

    message: AIMessage
    value: Any = None
    problem: str | None = None
    cut: bool = False
    refused: bool = False


def read_structured_reply(
    result: Mapping[str, Any] | UnreadableReply,
    no_text: str,
    *,
    known: Callable[[str], bool],
    cut: bool,
    must_finish: bool = False,
) -> StructuredReply:
    """Read what a model bound to a format returns: `raw`, `parsed` and `parsing_error`, or nothing at all.

    `no_text` stands for a reply without words; `known` tells whether a message id is taken, `cut` that the
    reply broke off in a stream, `must_finish` that it is a stream which has to say how it ended.
    """
    if isinstance(result, UnreadableReply):
        return _read_unreadable(result, no_text, known)
    raw = require_ai_message(result["raw"])
    sign = reply_problem(raw, must_finish=must_finish)
    if sign == "refused":
        return _read_unreadable(UnreadableReply("", "refused", raw), no_text, known)
    cut = cut or sign == "cut"
    value = (
        None
        if result["parsing_error"] is not None or cut
        else fix_surrogates(to_plain_json(result["parsed"]))
    )
    lost = storage_problem(value, "the fields")
    if value is not None and lost is None:
        told = {"response_metadata": raw.response_metadata, "usage_metadata": raw.usage_metadata}
        told |= {name: kept for name, kept in storable_fields(raw).items() if name in told}
        return StructuredReply(
            _make_message(raw, json.dumps(value, ensure_ascii=False), known, **told), value
        )
    why = lost or describe_problem(result["parsing_error"], cut=cut)
    return StructuredReply(_make_message(raw, text_of(raw) or no_text, known), problem=why, cut=cut)


def _read_unreadable(reply: UnreadableReply, no_text: str, known: Callable[[str], bool]) -> StructuredReply:
    """Keep the words of a reply that is no result and was not to be one, or that the client did not give."""
    raw, cut = reply.message or AIMessage(""), reply.kind == "cut"
    words = "\n\n".join(part for part in (text_of(raw), refusal_text(raw)) if part)
    message = _make_message(raw, words or no_text, known)
    if reply.kind == "refused":
        return StructuredReply(message, refused=True)
    return StructuredReply(message, problem=describe_problem(None, cut=True) if cut else reply.why, cut=cut)


def _make_message(raw: AIMessage, text: str, known: Callable[[str], bool], **told: Any) -> AIMessage:
    """Return the text of a structured reply, under the reply's own id where it is new."""
    key = raw.id if raw.id and not known(raw.id) else new_id()
    return AIMessage(fix_surrogates(text), id=key, additional_kwargs=make_mark("format"), **told)


def to_plain_json(value: Any) -> Any:
    """Return a structured result as plain JSON: it goes into the checkpoint."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return json.loads(json.dumps(value, default=str))


def describe_problem(error: BaseException | None, *, cut: bool) -> str:
    """Say in one line why a structured result is none."""
    if cut:
        return "it was cut off"
    said = " ".join(str(error).split()) if error is not None else "there was no result in it"
    return shorten(said.partition(" For troubleshooting, visit")[0], _NAMED)  # langchain's line for people
