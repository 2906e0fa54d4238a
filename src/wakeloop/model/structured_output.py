"""Replies in the format that the caller asked for."""

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

_LONGEST_PROBLEM = 300  # characters


@dataclass(frozen=True, slots=True)
class StructuredReply:
    """A reply in a format: its text, and its `value` as plain JSON or the `problem` with it.

    A `refused` reply has only its text.
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
    """Read the result of a model bound to a format: `raw`, `parsed` and `parsing_error`.

    `no_text` replaces an empty text, `known` says whether a message id is taken, `cut` that the stream broke
    off, and `must_finish` that the reply is a stream which has to say how it ended.
    """
    if isinstance(result, UnreadableReply):
        return _read_unreadable(result, no_text, known)
    raw = require_ai_message(result["raw"])
    reported = reply_problem(raw, must_finish=must_finish)
    if reported == "refused":
        return _read_unreadable(UnreadableReply("", "refused", raw), no_text, known)
    cut = cut or reported == "cut"
    value = None
    if result["parsing_error"] is None and not cut:
        parsed = result["parsed"]
        is_model = isinstance(parsed, BaseModel)
        plain = parsed.model_dump(mode="json") if is_model else json.loads(json.dumps(parsed, default=str))
        value = fix_surrogates(plain)
    unstorable = storage_problem(value, "the fields")
    if value is None or unstorable is not None:
        problem = unstorable or describe_problem(result["parsing_error"], cut=cut)
        return StructuredReply(_make_message(raw, text_of(raw) or no_text, known), problem=problem, cut=cut)
    fields = {"response_metadata": raw.response_metadata, "usage_metadata": raw.usage_metadata}
    for name, stored in storable_fields(raw).items():
        if name in fields:
            fields[name] = stored
    text = json.dumps(value, ensure_ascii=False)
    return StructuredReply(_make_message(raw, text, known, **fields), value)


def _read_unreadable(reply: UnreadableReply, no_text: str, known: Callable[[str], bool]) -> StructuredReply:
    """Keep the text of a reply that is not a result, or that the client did not return."""
    raw, cut = reply.message or AIMessage(""), reply.kind == "cut"
    text = "\n\n".join(filter(None, (text_of(raw), refusal_text(raw))))
    message = _make_message(raw, text or no_text, known)
    if reply.kind == "refused":
        return StructuredReply(message, refused=True)
    problem = describe_problem(None, cut=True) if cut else reply.why
    return StructuredReply(message, problem=problem, cut=cut)


def _make_message(raw: AIMessage, text: str, known: Callable[[str], bool], **fields: Any) -> AIMessage:
    """Return the text of a structured reply as a message, under the reply's own id if that is new."""
    key = raw.id if raw.id and not known(raw.id) else new_id()
    return AIMessage(fix_surrogates(text), id=key, additional_kwargs=make_mark("format"), **fields)


def describe_problem(error: BaseException | None, *, cut: bool) -> str:
    """Say in one line why a structured result is missing."""
    if cut:
        return "it was cut off"
    text = " ".join(str(error).split()) if error is not None else "it contained no result"
    return shorten(text.partition(" For troubleshooting, visit")[0], _LONGEST_PROBLEM)  # a hint for people
