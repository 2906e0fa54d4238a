"""What providers and tools tell beside a text, made storable."""

from math import isfinite
from operator import is_
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from wakeloop.text.characters import fix_surrogates, shorten

GREATEST = 2**63  # the numbers that a checkpoint can hold
DEEPEST = 64  # lists and objects inside each other; a checkpoint holds some 250
_LONGEST = 100  # characters of what stands for a value that cannot be kept
_BESIDE = ("response_metadata", "additional_kwargs")
_SENT = ("content", "name", "tool_calls", "invalid_tool_calls", "tool_call_id")


def storable_fields(raw: AIMessage) -> dict[str, Any]:
    """Return the fields of a reply that have to be stored otherwise than they came; `{}` for nearly all.

    A number of more than 64 bits becomes a text, what lies too deep is left out, half a pair of characters is
    replaced. Usage that is no count of tokens is dropped whole: sums are made of it.
    """
    changed = {
        name: kept for name in _BESIDE if (kept := make_storable(getattr(raw, name))) != getattr(raw, name)
    }
    if raw.usage_metadata is not None and not _is_count(raw.usage_metadata):
        changed["usage_metadata"] = None
    return changed


def make_storable(value: Any, room: int = DEEPEST) -> Any:
    """Return a value of plain JSON as a checkpoint takes it; what is no JSON is left as it is."""
    if isinstance(value, dict):
        return {fix_surrogates(k): make_storable(v, room - 1) for k, v in value.items()} if room else {}
    if isinstance(value, list):
        return [make_storable(part, room - 1) for part in value] if room else []
    if isinstance(value, int) and not -GREATEST <= value < GREATEST:
        return shorten(hex(value), _LONGEST)  # str() refuses numbers of more than 4,300 digits
    return fix_surrogates(value) if isinstance(value, str) else value


def storage_problem(value: object, where: str, room: int = DEEPEST) -> str | None:
    """Say why no checkpoint or request takes a value, or return None: numbers and depth are limited."""
    if isinstance(value, dict | list):
        if not room:
            return f"{where} are nested more than {DEEPEST} deep; send them flat"
        parts = value.values() if isinstance(value, dict) else value
        return next(
            (why for part in parts if (why := storage_problem(part, where, room - 1)) is not None), None
        )
    if isinstance(value, int) and not -GREATEST <= value < GREATEST:
        return f"a number in {where} is too large; send it as a text"
    if isinstance(value, float) and not isfinite(value):
        return f"{value} in {where} is no number of JSON; send it as a text"
    return None


def make_sendable(message: BaseMessage) -> BaseMessage:
    """Return a message of which JSON and UTF-8 can be made: itself, most often.

    What is no JSON is sent as a text; in a content bytes and models are left to the client.
    """
    parts = ((name, getattr(message, name, None)) for name in _SENT)
    update = {
        name: new
        for name, value in parts
        if value and (new := _make_json(value, own=name == "content")) is not value
    }
    return message.model_copy(update=update) if update else message


def _make_json(value: Any, *, own: bool) -> Any:
    """Return a value as JSON has it: itself, most often; `own` tells that a client has a way of its own."""
    if isinstance(value, str):
        return fix_surrogates(value)
    if isinstance(value, dict):
        told = {_make_json_key(key): _make_json(part, own=own) for key, part in value.items()}
        pairs = zip((*told, *told.values()), (*value, *value.values()), strict=False)
        return value if all(new is old for new, old in pairs) else told
    if isinstance(value, list | tuple | set | frozenset):
        parts = [_make_json(part, own=own) for part in value]
        same = isinstance(value, list | tuple) and all(map(is_, parts, value))
        return value if same else parts
    if isinstance(value, int | None) or (isinstance(value, float) and isfinite(value)):
        return value
    return value if own and (isinstance(value, bytes) or hasattr(value, "model_dump")) else str(value)


def _make_json_key(key: Any) -> Any:
    return (
        fix_surrogates(key)
        if isinstance(key, str)
        else key
        if isinstance(key, int | float | None)
        else str(key)
    )


def _is_count(usage: Any) -> bool:
    if isinstance(usage, dict):
        return all(_is_count(part) for part in usage.values())
    return isinstance(usage, int) and -GREATEST <= usage < GREATEST
