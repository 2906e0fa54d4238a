"""Values that checkpoints can store and requests can carry."""

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
        if not value:
            continue
        stored = make_storable(value)
        if stored != value:
            changed[name] = stored
    if raw.usage_metadata is not None and not _is_count(raw.usage_metadata):
        changed["usage_metadata"] = None
    return changed


def make_storable(value: Any, room: int = DEEPEST) -> Any:
    """Return plain JSON that a checkpoint can store; anything else is returned unchanged.

    Integers of more than 64 bits become strings, values below the depth limit are left out, and lone
    surrogates are replaced.

    >>> make_storable({"n": 2**70})
    {'n': '0x400000000000000000'}
    """
    if isinstance(value, dict):
        if not room:
            return {}
        return {fix_surrogates(key): make_storable(part, room - 1) for key, part in value.items()}
    if isinstance(value, list):
        if not room:
            return []
        return [make_storable(part, room - 1) for part in value]
    if isinstance(value, int) and _is_too_large(value):
        return shorten(hex(value), _LONGEST_NUMBER)  # str() refuses numbers of more than 4,300 digits
    return fix_surrogates(value)


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
        if not value or (isinstance(value, dict | list) and is_plain_json(value)):
            continue
        sendable = _make_json(value, is_content=name == "content")
        if sendable is not value:
            update[name] = sendable
    return message.model_copy(update=update) if update else message


def _make_json(value: Any, *, is_content: bool) -> Any:
    """Return a value as JSON, and the same object if nothing has to change."""
    if isinstance(value, str):
        return fix_surrogates(value)
    if isinstance(value, dict):
        new = {_make_json_key(key): _make_json(part, is_content=is_content) for key, part in value.items()}
        same = all(map(is_, new, value)) and all(map(is_, new.values(), value.values()))
        return value if same and len(new) == len(value) else new
    if isinstance(value, list | tuple | set | frozenset):
        parts = [_make_json(part, is_content=is_content) for part in value]
        same = isinstance(value, list | tuple) and all(map(is_, parts, value))
        return value if same else parts
    if isinstance(value, int | None) or (isinstance(value, float) and isfinite(value)):
        return value
    if is_content and (isinstance(value, bytes) or hasattr(value, "model_dump")):
        return value  # clients write these their own way
    return str(value)


def _make_json_key(key: Any) -> Any:
    if isinstance(key, str):
        return fix_surrogates(key)
    return key if isinstance(key, int | float | None) else str(key)


def _is_too_large(number: int) -> bool:
    return not -GREATEST <= number < GREATEST


def _is_count(usage: Any) -> bool:
    if isinstance(usage, dict):
        return all(map(_is_count, usage.values()))
    return isinstance(usage, int) and not _is_too_large(usage)
