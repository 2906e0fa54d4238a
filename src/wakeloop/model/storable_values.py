"""Values that checkpoints can store and requests can carry."""

from collections.abc import Callable
from math import isfinite
from operator import is_
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from wakeloop.text.characters import fix_surrogates, is_plain_json, shorten

GREATEST = 2**63  # a checkpoint holds integers of 64 bits
DEEPEST = 64  # nested lists and objects; a checkpoint holds about 250 levels
_LONGEST_NUMBER = 100  # characters of a number that is stored as a string
_METADATA = ("response_metadata", "additional_kwargs")
_SENT_FIELDS = ("content", "name", "tool_calls", "invalid_tool_calls", "tool_call_id")


def storable_fields(raw: AIMessage) -> dict[str, Any]:
    """Return the fields of a reply that must change before it is stored; `{}` for nearly all replies.

    Usage that is not a count of tokens is dropped as a whole, because sums are made of it.
    """
    changed: dict[str, Any] = {}
    for name in _METADATA:
        value = getattr(raw, name)
        stored = make_storable(value) if value else value
        if stored is not value:
            changed[name] = stored
    if raw.usage_metadata is not None and not _is_count(raw.usage_metadata):
        changed["usage_metadata"] = None
    return changed


def _shorten_large(value: Any) -> Any:
    """Return an integer of more than 64 bits as a string, and anything else as it is."""
    if isinstance(value, int) and _is_too_large(value):
        return shorten(hex(value), _LONGEST_NUMBER)  # str() refuses numbers of more than 4,300 digits
    return value


def make_storable(value: Any, room: int = DEEPEST, change: Callable[[Any], Any] = _shorten_large) -> Any:
    """Return plain JSON that a checkpoint can store: the same object if nothing has to change.

    Integers of more than 64 bits become strings, values below the depth limit are left out, and lone
    surrogates are replaced. `change` is applied to what is not a string, a list or an object.

    >>> make_storable({"n": 2**70})
    {'n': '0x400000000000000000'}
    """
    if isinstance(value, str):
        return fix_surrogates(value)
    if isinstance(value, dict):
        new = {}
        for key, part in value.items() if room else ():
            new[_change_key(key, change)] = make_storable(part, room - 1, change)
        same = all(map(is_, new, value)) and all(map(is_, new.values(), value.values()))
        return value if same and len(new) == len(value) else new
    if isinstance(value, list):
        parts = [make_storable(part, room - 1, change) for part in (value if room else ())]
        return value if len(parts) == len(value) and all(map(is_, parts, value)) else parts
    return change(value)


def _change_key(key: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(key, str):
        return fix_surrogates(key)
    if isinstance(key, tuple | frozenset):  # a checkpoint holds it, and JSON does not
        return key if change is _shorten_large else str(key)
    return change(key)


def storage_problem(value: object, where: str, room: int = DEEPEST) -> str | None:
    """Say why a value cannot be stored or sent, or return None; `where` names it in the sentence.

    >>> storage_problem(float("nan"), "the arguments")
    'nan in the arguments is not valid JSON; send it as a string'
    """
    if isinstance(value, dict | list):
        if not room:
            return f"{where} are nested more than {DEEPEST} levels deep; send them flat"
        for part in value.values() if isinstance(value, dict) else value:
            if type(part) is str:
                continue  # most parts are, and any string can be stored
            problem = storage_problem(part, where, room - 1)
            if problem is not None:
                return problem
    if isinstance(value, int) and _is_too_large(value):
        return f"a number in {where} is too large; send it as a string"
    if isinstance(value, float) and not isfinite(value):
        return f"{value} in {where} is not valid JSON; send it as a string"
    return None


def make_sendable(message: BaseMessage) -> BaseMessage:
    """Return a message that can be written as JSON and UTF-8: most often the same object.

    Other values become strings. In the content, bytes and models are left to the client.
    """
    values = [*map(vars(message).get, _SENT_FIELDS)]
    if is_plain_json(values):
        return message
    update = {}
    for name, value in zip(_SENT_FIELDS, values, strict=True):
        change = _make_content_sendable if name == "content" else _make_sendable
        sendable = make_storable(value, change=change)
        if sendable is not value:
            update[name] = sendable
    return message.model_copy(update=update) if update else message


def _make_sendable(value: Any) -> Any:
    if isinstance(value, tuple | set | frozenset):
        parts = list(value)
        new = make_storable(parts, change=_make_sendable)
        return value if new is parts and isinstance(value, tuple) else new
    is_json = isinstance(value, int | None) or (isinstance(value, float) and isfinite(value))
    return value if is_json else str(value)


def _make_content_sendable(value: Any) -> Any:
    """Return a value of a message's content; bytes and models are written by clients, in their own way."""
    is_theirs = isinstance(value, bytes) or hasattr(value, "model_dump")
    return value if is_theirs else _make_sendable(value)


def _is_too_large(number: int) -> bool:
    return not -GREATEST <= number < GREATEST


def _is_count(usage: Any) -> bool:
    if isinstance(usage, dict):
        return all(map(_is_count, usage.values()))
    return isinstance(usage, int) and not _is_too_large(usage)
