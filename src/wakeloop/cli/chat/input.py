"""Chat input from a terminal or a pipe."""

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Protocol, TextIO

from platformdirs import user_state_path
from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app_or_none
from prompt_toolkit.data_structures import Size
from prompt_toolkit.filters import is_searching
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from wakeloop.cli.chat.completion import ChatCompleter, Names
from wakeloop.cli.chat.parsing import is_unclosed
from wakeloop.cli.chat.type_ahead import TypeAhead
from wakeloop.cli.launch import BYTE_ORDER_MARK
from wakeloop.cli.terminal_input import read_line
from wakeloop.display.terminal_output import count_columns, write_text

CONTINUATION = "  "  # before each further row of an entry


class ChatInput(Protocol):
    """Source of entries."""

    is_person: bool

    def read_entry(self, prompt: str, *, answer: bool = False, toolbar: str = "") -> str:
        """Return an entry of one or more lines. Raises `EOFError` at the end. `toolbar` is shown below it."""

    def capture_ahead(self, send: Callable[[str], bool]) -> AbstractContextManager[None]:
        """Give lines typed during a run to `send`, and keep what it does not take for the next entries."""

    def typed_ahead(self) -> str:
        """Return the text typed ahead so far."""

    def discard_ahead(self) -> bool:
        """Discard the text typed ahead; return whether there was any."""


class TerminalInput:
    """Input of a person: with history, completion and multi-line entries."""

    is_person = True

    def __init__(self, names: Callable[[], Names]) -> None:
        where = user_state_path("wakeloop", appauthor=False) / "chat-history"
        self.messages, self.answers = (
            PromptSession[str](
                history=kept,
                completer=ChatCompleter(names),
                complete_while_typing=False,
                multiline=True,
                key_bindings=key_bindings(),
                prompt_continuation=CONTINUATION,
                enable_suspend=True,
            )
            for kept in (open_history(where), InMemoryHistory())  # answers do not belong in the history
        )
        self.typed = TypeAhead(self.messages.app.input)

    def read_entry(self, prompt: str, *, answer: bool = False, toolbar: str = "") -> str:
        """Read an entry; Ctrl-C clears it."""
        session = self.answers if answer else self.messages
        session.bottom_toolbar = toolbar or None
        while True:
            session.app.erase_when_done = False
            try:
                typed = session.prompt(prompt)
            except KeyboardInterrupt:
                continue
            if session.app.erase_when_done:
                write_text(prompt + typed, sys.stdout, whole=True)
            return typed

    def capture_ahead(self, send: Callable[[str], bool]) -> AbstractContextManager[None]:
        """Capture keys for the run and for the next entry."""
        return self.typed.capture(send)

    def typed_ahead(self) -> str:
        """Return the captured text."""
        return self.typed.text

    def discard_ahead(self) -> bool:
        """Discard captured keys, including keys that an earlier prompt has read."""
        return self.typed.discard()


class PipeInput:
    """Input from a pipe or a file."""

    is_person = False

    def __init__(self, source: TextIO | None = None) -> None:
        self.source, self.begun = source or sys.stdin, False

    def read_entry(self, prompt: str, *, answer: bool = False, toolbar: str = "") -> str:  # noqa: ARG002 - not shown
        """Read a line, or all lines up to the closing fence."""
        typed = read_line(self.source)
        if not self.begun:
            self.begun, typed = True, typed.removeprefix(BYTE_ORDER_MARK)
        while is_unclosed(typed) and (line := read_line(self.source)):
            typed += line
        if not typed:
            raise EOFError
        return typed

    def capture_ahead(self, send: Callable[[str], bool]) -> AbstractContextManager[None]:  # noqa: ARG002 - nobody types
        """Do nothing: the lines wait in the pipe."""
        return nullcontext()

    def typed_ahead(self) -> str:
        """Return nothing."""
        return ""

    def discard_ahead(self) -> bool:
        """Keep all lines: a script was written with their order in mind."""
        return False


def interrupt_prompt(error: BaseException) -> bool:
    """End the open prompt with an error and restore the terminal; return False if none is open."""
    app = get_app_or_none()
    if app is None or not app.is_running or app.loop is None:
        return False
    app.loop.call_soon_threadsafe(partial(app.exit, exception=error))
    return True


def key_bindings() -> KeyBindings:
    """Bind Enter to send a complete entry, and Alt-Enter to start a new line."""
    keys = KeyBindings()

    @keys.add("enter", filter=~is_searching)
    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_unclosed(buffer.text):
            buffer.insert_text("\n")
        else:
            event.app.erase_when_done = overflows_screen(buffer.text, event.app.output.get_size())
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def overflows_screen(text: str, size: Size) -> bool:
    """Whether text is too tall for the screen; prompt_toolkit would then draw it twice at its end."""
    room = max(size.columns - len(CONTINUATION), 1)
    return sum(1 + count_columns(line) // room for line in text.expandtabs().split("\n")) >= size.rows - 1


def open_history(path: Path) -> History:
    """Open the history file, readable only by its owner; use memory if it cannot be created."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        path.chmod(0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)
