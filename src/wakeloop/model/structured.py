"""A reply in the caller's format: its value, its text."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage
from pydantic import BaseModel

from wakeloop.model.reply import is_cut
from wakeloop.model.storable import beside
from wakeloop.text.characters import shorten
from wakeloop.text.marks import mark, new_id, text_of

_NAMED = 300  # characters of what was wrong


@dataclass(frozen=True, slots=True)
class Formatted:
    """A structured reply: its `value` as plain JSON, or the `problem` with it, and its text."""

    message: AIMessage
    value: Any = None
    problem: str | None = None
    cut: bool = False


def formatted(result: Mapping[str, Any], no_text: str, *, cut: bool) -> Formatted:
    """Read what a model bound to a format returns: `raw`, `parsed` and `parsing_error`.

    `no_text` stands for an unfit reply without words; `cut` tells that it broke off in a stream.
    """
    raw, cut = result["raw"], cut or is_cut(result["raw"])
    if result["parsing_error"] is None and result["parsed"] is not None and not cut:
        value = plain(result["parsed"])
        told = {"response_metadata": raw.response_metadata, "usage_metadata": raw.usage_metadata}
        told |= {name: kept for name, kept in beside(raw).items() if name in told}
        return Formatted(_told(raw, json.dumps(value, ensure_ascii=False), **told), value)
    why = problem(result["parsing_error"], cut=cut)
    return Formatted(_told(raw, text_of(raw) or no_text), problem=why, cut=cut)


def _told(raw: AIMessage, text: str, **told: Any) -> AIMessage:
    """Return the text of a structured reply under the reply's own id."""
    return AIMessage(text, id=raw.id or new_id(), additional_kwargs=mark("format"), **told)


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
