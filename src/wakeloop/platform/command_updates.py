"""Updates of commands in each form that LangGraph takes."""

from typing import Any, get_type_hints


def read_update(update: Any) -> dict[str, Any]:
    """Return the update of a `Command` as a dict. It may be a mapping, pairs, or an object with fields.

    Of an object, LangGraph writes the fields with a type that are not None.

    >>> read_update([("colour", "red")])
    {'colour': 'red'}
    """
    if update is None:
        return {}
    hints = {} if isinstance(update, dict | list | tuple) else get_type_hints(type(update))
    if not hints:
        return dict(update)
    fields = {key: getattr(update, key, None) for key in hints}
    return {key: value for key, value in fields.items() if value is not None}
