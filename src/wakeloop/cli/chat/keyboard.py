"""Where lines come from: a person at a terminal, or a pipe."""

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

from wakeloop.cli.chat.ahead import Ahead
from wakeloop.cli.chat.completion import Names, Offers
from wakeloop.cli.chat.lines import open_ended
from wakeloop.cli.start import MARK
from wakeloop.cli.typed import typed_line
from wakeloop.display.width import cells, tell

AFTER = "  "  # before each further row of an entry


class Keyboard(Protocol):
    """What is typed, entry by entry."""

    person: bool

    def entry(self, prompt: str, *, answer: bool = False, beside: str = "") -> str:
        """Return one entry, a line or several; raises `EOFError` at the end. `beside` stands below it."""

    def kept(self) -> AbstractContextManager[None]:
        """Keep what a person types meanwhile for the next entries."""

    def ahead(self) -> str:
        """What was typed so far, to be shown."""

    def forget(self) -> bool:
        """Throw away what a person has typed ahead; tells whether there was anything."""


class Terminal:
    """A person: history, completion, several lines."""

    person = True

    def __init__(self, names: Callable[[], Names]) -> None:
        where = user_state_path("wakeloop", appauthor=False) / "chat-history"
        self.texts, self.answers = (
            PromptSession[str](
                history=kept,
                completer=Offers(names),
                complete_while_typing=False,
                multiline=True,
                key_bindings=bindings(),
                prompt_continuation=AFTER,
                enable_suspend=True,
            )
            for kept in (history(where), InMemoryHistory())  # what was answered is nobody's history
        )
        self.typed = Ahead(self.texts.app.input)

    def entry(self, prompt: str, *, answer: bool = False, beside: str = "") -> str:
        """Read one entry; Ctrl-C clears it."""
        session = self.answers if answer else self.texts
        session.bottom_toolbar = beside or None
        while True:
            session.app.erase_when_done = False
            try:
                typed = session.prompt(prompt)
            except KeyboardInterrupt:
                continue
            if session.app.erase_when_done:
                tell(prompt + typed, sys.stdout, whole=True)
            return typed

    def kept(self) -> AbstractContextManager[None]:
        """Keep what is typed meanwhile."""
        return self.typed.kept()

    def ahead(self) -> str:
        """What was typed so far."""
        return self.typed.text

    def forget(self) -> bool:
        """Throw away what was typed ahead, also keys that a former prompt has read."""
        return self.typed.forget()


class Pipe:
    """Lines of a pipe or a file."""

    person = False

    def __init__(self, source: TextIO | None = None) -> None:
        self.source, self.begun = source or sys.stdin, False

    def entry(self, prompt: str, *, answer: bool = False, beside: str = "") -> str:  # noqa: ARG002 - unseen
        """Read a line, or all lines up to the closing marks."""
        typed = typed_line(self.source)
        if not self.begun:
            self.begun, typed = True, typed.removeprefix(MARK)
        while open_ended(typed) and (line := typed_line(self.source)):
            typed += line
        if not typed:
            raise EOFError
        return typed

    def kept(self) -> AbstractContextManager[None]:
        """Leave them where they are."""
        return nullcontext()

    def ahead(self) -> str:
        """Nothing to be shown."""
        return ""

    def forget(self) -> bool:
        """Keep all lines: nobody has typed them, and who wrote them knows their order."""
        return False


def interrupted(error: BaseException) -> bool:
    """End a prompt with an error, the terminal put back; False where there is none."""
    app = get_app_or_none()
    if app is None or not app.is_running or app.loop is None:
        return False
    app.loop.call_soon_threadsafe(partial(app.exit, exception=error))
    return True


def bindings() -> KeyBindings:
    """Enter sends what is complete, Alt-Enter begins a new line."""
    keys = KeyBindings()

    @keys.add("enter", filter=~is_searching)
    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if open_ended(buffer.text):
            buffer.insert_text("\n")
        else:
            event.app.erase_when_done = is_taller(buffer.text, event.app.output.get_size())
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def is_taller(text: str, size: Size) -> bool:
    """Whether a text has no room on the screen: prompt_toolkit draws what it shows of it twice at its end."""
    room = max(size.columns - len(AFTER), 1)
    return sum(1 + cells(line) // room for line in text.expandtabs().split("\n")) >= size.rows - 1


def history(path: Path) -> History:
    """What was typed before, in a file for its owner alone; in memory where no file can be kept."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        path.chmod(0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)
