"""Parts of error messages: types and nearest names."""

from collections.abc import Iterable
from difflib import get_close_matches


def describe_type(given: object) -> str:
    """Name the type of a value with its article.

    >>> describe_type(5), describe_type("x"), describe_type(None)
    ('an int', 'a str', 'None')
    """
    if given is None:
        return "None"
    if isinstance(given, type):
        return f"the class {given.__name__}"
    name = type(given).__name__
    article = "an" if name[0].lower() in "aeiou" else "a"
    return f"{article} {name}"


def nearest(name: object, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name that is spelled most like this one, or None if none is close.

    A first word that they share, as in `max_items` and `max_cost`, would make all of them look alike.

    >>> nearest("lokki", ["lesson", "loki"]), nearest("max_costs", ["max_items", "max_cost"])
    ('loki', 'max_cost')
    """
    first, mark, rest = str(name).partition("_")
    shared = [one.removeprefix(first + mark) for one in known if mark and one.startswith(first + mark)]
    if not shared:
        first, mark, rest = "", "", str(name)
    matches = get_close_matches(rest, shared or list(known), n=1, cutoff=cutoff)
    return first + mark + matches[0] if matches else None


def suggest(name: object, known: Iterable[str], meant: str | None = None) -> str:
    """Return the question after an unknown name, or the list of all names if none is close.

    `meant` is the right name if it is known already.

    >>> suggest("lokki", ["lesson", "loki"])
    "Did you mean 'loki'?"
    >>> suggest("zzz", ["lesson", "loki"])
    'Available: lesson, loki.'
    """
    names = list(known)
    near = meant or nearest(name, names)
    return f"Did you mean {near!r}?" if near else f"Available: {', '.join(names)}."
