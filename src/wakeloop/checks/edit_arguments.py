"""What an edit by hand is given, as it is guessed."""

from collections.abc import Iterable, Mapping
from typing import Any

from wakeloop.errors import EditError
from wakeloop.text.characters import shorten


def read_texts(given: Any, name: str) -> tuple[str, ...]:
    """Return texts of items: one text is one item, an item counts for its text. Raises `EditError`."""
    return tuple(_each(given, name, str, "content", "a text or texts, as in add=['buy milk']"))


def read_ids(given: Any, name: str) -> tuple[int | str, ...]:
    """Return ids: one id is one, an item counts for its id. Raises `EditError`."""
    return tuple(_each(given, name, (int, str), "id", f"an id or ids, as in {name}=[1, 2]"))


def read_texts_by_id(given: Any, name: str, what: str) -> dict[int | str, str]:
    """Return texts by id. Raises `EditError` for anything but a mapping of id to text."""
    if given is None:
        return {}
    if isinstance(given, Mapping) and all(isinstance(text, str) for text in given.values()):
        return dict(given)
    raise EditError(
        f"Nothing was changed: {name} maps an id to its {what}, as in {name}={{1: 'the {what}'}}, and is "
        f"{shorten(repr(given))}."
    )


def _each(given: Any, name: str, kinds: Any, key: str, due: str) -> Iterable[Any]:
    if given is None:
        return
    alone = isinstance(given, str | int | Mapping)
    if not alone and not isinstance(given, Iterable):
        raise EditError(f"Nothing was changed: {name} takes {due}, not {shorten(repr(given))}.")
    for one in [given] if alone else given:
        value = one.get(key) if isinstance(one, Mapping) else one
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise EditError(f"Nothing was changed: {name} takes {due}, not {shorten(repr(one))}.")
        yield value


def check_goal_and_clear(clear: object, goal: object) -> None:
    """Refuse a goal that is no text, and a `clear` that is no truth value. Raises `EditError`."""
    if not isinstance(clear, bool):
        raise EditError(f"Nothing was changed: clear takes True or False, not {shorten(repr(clear))}.")
    if goal is not None and not isinstance(goal, str):
        raise EditError(f"Nothing was changed: goal takes a text, not {shorten(repr(goal))}.")
