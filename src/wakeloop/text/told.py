"""What a model is told of a tool, kept where docstrings go."""

from collections.abc import Callable
from typing import TypeVar

Told = TypeVar("Told")


def told(text: str) -> Callable[[Told], Told]:
    """Set the docstring of a tool: `python -OO` drops the ones that are written as such."""

    def tell(tool: Told) -> Told:
        tool.__doc__ = text
        return tool

    return tell
