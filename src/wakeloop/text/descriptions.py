"""Tool descriptions that survive `python -OO`."""

from collections.abc import Callable
from typing import TypeVar

Described = TypeVar("Described")


def describe(text: str) -> Callable[[Described], Described]:
    """Set `text` as the docstring of a tool, which LangChain sends to the model as its description.

    A docstring written the usual way is dropped by `python -OO`.

    >>> @describe("Add two numbers.")
    ... def add(a: int, b: int) -> int:
    ...     return a + b
    >>> add.__doc__
    'Add two numbers.'
    """

    def set_docstring(tool: Described) -> Described:
        tool.__doc__ = text
        return tool

    return set_docstring
