"""Help and wrong usage that fit the terminal."""

import io
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from typer.core import TyperCommand, TyperGroup

from wakeloop.display.terminal_output import INDENT, find_width, wrap_text, write_text

MAX_COLUMNS = 78  # columns of help: longer lines are hard to read
UNBROKEN = 10_000  # columns in which nothing is broken
TERM = re.compile(r"(  \S.*?) {2,}(\S.*)")  # an option or a command, and what it is
TERM_INDENT = " " * 6  # before what is said of a term that has a line for itself


class FittedCommand(TyperCommand):
    """A command whose help fits."""

    def get_help(self, ctx: Any) -> str:
        """Its help, in the columns of the terminal."""
        return fit_help(super().get_help, ctx, sys.stdout)


class FittedGroup(TyperGroup):
    """A group of commands whose help fits."""

    def get_help(self, ctx: Any) -> str:
        """Its help, in the columns of the terminal."""
        return fit_help(super().get_help, ctx, sys.stdout)


def fit_help(made: Callable[[Any], str], context: Any, out: TextIO) -> str:
    """A text of help, broken between words where it is for a terminal."""
    if (columns := find_width(out)) is None:
        return made(context)
    context.terminal_width = UNBROKEN
    width = min(columns, MAX_COLUMNS)
    return "\n".join(row for line in made(context).split("\n") for row in wrap_help_line(line, width))


def wrap_help_line(line: str, width: int) -> Iterator[str]:
    """A line of help as rows: what is said of a term hangs behind it, or below where there is no room."""
    found = TERM.fullmatch(line)
    text = found[2] if found else line.lstrip()
    begins = len(line) - len(text)
    if begins <= width // 2:
        yield from wrap_text(line, width, hang=begins - 2 if found else 0 if begins else INDENT)
    else:
        yield from [found[1]] if found else []
        yield from wrap_text(TERM_INDENT + text, width, hang=0)


def print_usage_error(error: Any) -> None:
    """Say what was typed wrong."""
    if context := getattr(error, "ctx", None):
        context.terminal_width = UNBROKEN
    told = io.StringIO()
    error.show(told)
    write_text(told.getvalue().rstrip("\n"), sys.stderr)
