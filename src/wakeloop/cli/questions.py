"""Asks the person what a tool asks, in the terminal."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import UnsupportedOperation
from typing import Any, TextIO

from langgraph.types import Interrupt

from wakeloop.cli.failures import CommandError
from wakeloop.cli.plan_editor import edit_plan, wants_editor
from wakeloop.cli.terminal_input import read_line
from wakeloop.display.screen import Line
from wakeloop.display.words import APPROVAL, PLANNED, plan_in, question, wants_approval


def make_question_handler(
    say: Callable[[Line], None], source: TextIO | None = None
) -> Callable[..., dict[str, Any] | None]:
    """Make the function that `execute` asks with: it reads a line an interrupt, where somebody can type."""
    typed = source or sys.stdin

    def ask(interrupts: Sequence[Interrupt]) -> dict[str, Any] | None:
        """Return the answers by id; None where nobody is there, or the input ends."""
        if typed is None or typed.closed or not typed.isatty():
            return None
        answers: dict[str, Any] = {}
        for interrupt in interrupts:
            answer = None
            while answer is None:
                *shown, hint = format_question(interrupt)
                for line in shown:
                    say(line)
                discard_typed_input(typed)  # an answer is typed by who has seen the question
                say(hint)
                entry = read_line(typed)
                if not entry:
                    return None
                answer = resolve_answer(interrupt.value, entry.rstrip("\r\n"), say)
            answers[interrupt.id] = answer
        return answers

    return ask


def resolve_answer(value: Any, typed: str, say: Callable[[Line], None]) -> str | None:
    """Return the answer that is meant: what was typed, or what an editor leaves; None asks again."""
    if not wants_editor(value, typed):
        return typed
    try:
        return edit_plan(value)
    except CommandError as error:
        say(Line("error", str(error)))
        return None


def discard_typed_input(terminal: TextIO) -> None:
    """Throw away what was typed into a terminal and not read yet; what is none is left as it is."""
    if not terminal.isatty():
        return
    if sys.platform == "win32":
        import msvcrt

        while msvcrt.kbhit():
            msvcrt.getwch()
    else:
        import termios

        with suppress(UnsupportedOperation, termios.error):  # a stand-in has no queue, one that is gone none
            termios.tcflush(terminal.fileno(), termios.TCIFLUSH)


@contextmanager
def suppress_echo(terminal: TextIO | None, *, by_key: bool = False) -> Iterator[bool]:
    """Keep what is typed meanwhile off the screen; it stays to be read, `by_key` before its line is ended.

    Yields whether it is kept off: a terminal of another kind, or one that another program has, is left alone.
    """
    if sys.platform == "win32" or terminal is None or terminal.closed or not terminal.isatty():
        yield False
        return
    import termios

    try:
        descriptor = terminal.fileno()
        if os.tcgetpgrp(descriptor) != os.getpgrp():  # in the background: a change would stop the process
            yield False
            return
        before, mode = termios.tcgetattr(descriptor), termios.tcgetattr(descriptor)
    except (OSError, termios.error):
        yield False
        return
    mode[3] &= ~termios.ECHO
    if by_key:
        mode[0] &= ~termios.ICRNL  # as the prompt reads keys
        mode[3] &= ~termios.ICANON
    termios.tcsetattr(descriptor, termios.TCSANOW, mode)
    try:
        yield True
    finally:
        with suppress(termios.error):  # it is gone
            termios.tcsetattr(descriptor, termios.TCSANOW, before)


def format_question(interrupt: Interrupt) -> list[Line]:
    """A question as lines, and what may be typed."""
    hint = f"{APPROVAL}:" if wants_approval(interrupt.value) else "Your answer, on one line:"
    if plan_in(interrupt.value) is not None:
        hint = f"{PLANNED}:"
    return [Line("question", f"question: {text}") for text in question(interrupt.value)] + [
        Line("question", hint)
    ]
