"""Arguments of a manual edit: strings, ids, mappings."""

from collections.abc import Iterable, Mapping
from typing import Any

from wakeloop.errors import EditError
from wakeloop.text.characters import shorten


def read_texts(given: Any, name: str) -> tuple[str, ...]:
    """Return strings from a string or several, or from todos, of which it takes the contents."""
    return tuple(_read_each(given, name, str, "content", "a string or strings, as in add=['buy milk']"))


def read_ids(given: Any, name: str) -> tuple[int | str, ...]:
    """Return ids from an id or several, or from todos, of which it takes the ids."""
    return tuple(_read_each(given, name, (int, str), "id", f"an id or ids, as in {name}=[1, 2]"))


def read_texts_by_id(given: Any, name: str, what: str) -> dict[int | str, str]:
    """Return a mapping of ids to strings. Raises `EditError` for anything else."""
    if given is None:
        return {}
    if isinstance(given, Mapping) and all(isinstance(text, str) for text in given.values()):
        return dict(given)
    raise _refuse(name, f"a mapping of ids, as in {name}={{1: 'the {what}'}}", given)


def _read_each(given: Any, name: str, kinds: Any, key: str, expected: str) -> Iterable[Any]:
    if given is None:
        return
    if isinstance(given, str | int | Mapping):
        given = [given]
    elif not isinstance(given, Iterable):
        raise _refuse(name, expected, given)
    for one in given:
        value = one.get(key) if isinstance(one, Mapping) else one
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise _refuse(name, expected, one)
        yield value


def check_goal_and_clear(clear: object, goal: object) -> None:
    """Refuse a goal that is not a string, and a `clear` that is not a bool."""
    if not isinstance(clear, bool):
        raise _refuse("clear", "True or False", clear)
    if goal is not None and not isinstance(goal, str):
        raise _refuse("goal", "a string", goal)


def _refuse(name: str, expected: str, given: object) -> EditError:
    return EditError(f"Nothing was changed: `{name}` must be {expected}, got {shorten(repr(given))}.")
