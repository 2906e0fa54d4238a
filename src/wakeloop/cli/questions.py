"""Put a run's questions to the user at the terminal."""

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
from wakeloop.display.formatting import APPROVAL_HELP, PLAN_HELP, find_plan, format_interrupt, wants_approval
from wakeloop.display.screen import Line


def make_question_handler(
    say: Callable[[Line], None], source: TextIO | None = None
) -> Callable[[Sequence[Interrupt]], dict[str, Any] | None]:
    """Make the function that answers a run's interrupts by asking the user, one line per question."""
    terminal = source or sys.stdin

    def answer_interrupts(interrupts: Sequence[Interrupt]) -> dict[str, Any] | None:
        """Return the answers by interrupt id; None if nobody can type or the input ends."""
        if terminal is None or terminal.closed or not terminal.isatty():
            return None
        answers: dict[str, Any] = {}
        for interrupt in interrupts:
            answer = None
            while answer is None:
                *shown, hint = format_question(interrupt)
                for line in shown:
                    say(line)
                discard_typed_input(terminal)  # only someone who has seen the question may answer it
                say(hint)
                entry = read_line(terminal)
                if not entry:
                    return None
                answer = resolve_answer(interrupt.value, entry.rstrip("\r\n"), say)
            answers[interrupt.id] = answer
        return answers

    return answer_interrupts


def resolve_answer(value: Any, typed: str, say: Callable[[Line], None]) -> str | None:
    """Return the typed answer, or the plan as edited in the editor; None to ask again."""
    if not wants_editor(value, typed):
        return typed
    try:
        return edit_plan(value)
    except CommandError as error:
        say(Line("error", str(error)))
        return None


def discard_typed_input(terminal: TextIO) -> None:
    """Discard keys that a terminal has received but nobody has read; leave other streams alone."""
    if not terminal.isatty():
        return
    if sys.platform == "win32":
        import msvcrt

        while msvcrt.kbhit():
            msvcrt.getwch()
    else:
        import termios

        # an object that only claims to be a terminal has no queue, and a real one may be gone
        with suppress(UnsupportedOperation, termios.error):
            termios.tcflush(terminal.fileno(), termios.TCIFLUSH)


@contextmanager
def suppress_echo(terminal: TextIO | None, *, by_key: bool = False) -> Iterator[bool]:
    """Keep typed text off the screen; it can still be read later, with `by_key` before the line ends.

    Yield whether that worked: it does not on Windows, or while another program owns the terminal.
    """
    if sys.platform == "win32" or terminal is None or terminal.closed or not terminal.isatty():
        yield False
        return
    import termios

    try:
        descriptor = terminal.fileno()
        if os.tcgetpgrp(descriptor) != os.getpgrp():  # changing it from the background would stop us
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
        with suppress(termios.error):  # the terminal may be gone
            termios.tcsetattr(descriptor, termios.TCSANOW, before)


def format_question(interrupt: Interrupt) -> list[Line]:
    """Format a question as lines; the last one says what may be typed."""
    value = interrupt.value
    if find_plan(value) is not None:
        hint = f"{PLAN_HELP}:"
    elif wants_approval(value):
        hint = f"{APPROVAL_HELP}:"
    else:
        hint = "Your answer, on one line:"
    lines = [f"question: {text}" for text in format_interrupt(value)]
    return [Line("question", text) for text in (*lines, hint)]
