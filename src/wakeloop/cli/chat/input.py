"""Chat input from a terminal or a pipe."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from select import select
from threading import Event, Thread
from typing import TextIO, get_args

from platformdirs import user_state_path
from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app_or_none
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import is_searching
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPress, KeyPressEvent
from prompt_toolkit.keys import Keys

from wakeloop.cli.chat.dot_commands import COMMANDS, FENCE, LEAVABLE, TOPICS, is_unclosed
from wakeloop.cli.launch import BYTE_ORDER_MARK
from wakeloop.cli.manage_threads import MANY_ITEMS, TodoAction
from wakeloop.cli.questions import discard_typed_input, suppress_echo
from wakeloop.cli.streams import read_line
from wakeloop.config.levels import is_thread_setting
from wakeloop.settings import ALIASES, LoopSettings

CONTINUATION = "  "  # before each further row of an entry


# -- tab completion in a chat ----------------------------------------------------------------------------


Names = Mapping[str, Sequence[str]]  # names to complete: of roles, agents, threads, items


def complete(before: str, names: Callable[[], Names]) -> list[str]:
    """Return the completions at the cursor; `before` is the line up to it."""
    if not before.startswith("."):
        return []
    *words, last = before.split(" ")
    return sorted(word for word in find_candidates(words, names) if word.startswith(last))


def find_candidates(words: Sequence[str], names: Callable[[], Names]) -> Iterable[str]:
    """Return all words that fit after these."""
    found: Iterable[str] = ()
    match words:
        case []:
            found = [f".{name}" for name in COMMANDS]
        case [".set", key]:
            found = list_values(key)
        case [".todo", TodoAction.BLOCK | TodoAction.EDIT]:
            found = names()["items"]
        case [".todo", action, *_] if action in MANY_ITEMS:
            found = names()["items"]
        case [".role" | ".agent" as command]:
            found = (*names()[f"{command[1:]}s"], "none")
        case [".session"]:
            found = names()["threads"]
        case [command]:
            found = FIRST_ARGUMENTS.get(command, ())
    return found


def list_values(given: str) -> list[str]:
    """Return the values of a setting that has only a few."""
    field = LoopSettings.model_fields.get(ALIASES.get(given, given))
    if field is None:
        return []
    if field.annotation is bool:
        return ["true", "false", "null"]
    return [*(word for word in get_args(field.annotation) if isinstance(word, str)), "null"]


KEYS = sorted(key for key in (*LoopSettings.model_fields, *ALIASES) if is_thread_setting(key))
FIRST_ARGUMENTS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys((".set", ".unset"), KEYS),
    ".clear": ("todo",),
    ".exit": LEAVABLE,
    ".info": TOPICS,
    ".todo": list(TodoAction),
}


class ChatCompleter(Completer):
    """Completer for prompt_toolkit."""

    def __init__(self, names: Callable[[], Names]) -> None:
        self.names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002 - the interface's
        """Offer words, each as a replacement for the word at the cursor."""
        before = document.text_before_cursor
        last = before.split(" ")[-1]
        return [Completion(word, -len(last)) for word in complete(before, self.names)]


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
            with suppress(KeyboardInterrupt):
                return session.prompt(prompt)

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


ChatInput = TerminalInput | PipeInput


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
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def open_history(path: Path) -> History:
    """Open the history file, readable only by its owner; use memory if it cannot be created."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        path.chmod(0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)


# -- type-ahead: keys typed during a run, sent or kept ---------------------------------------------------


POLL_SECONDS = 0.05  # between two checks for the end of the run
ENTER_KEYS = (Keys.ControlM, Keys.ControlJ)
ENTER_MARK = " ⏎ "


class TypeAhead:
    """Captures keys during a run: Enter sends a line to the run, Alt-Enter keeps it for the next prompts."""

    def __init__(self, source: Input) -> None:
        self.source = source
        self.keys: list[KeyPress] = []

    @property
    def text(self) -> str:
        """The captured keys as one line of text."""
        return keys_to_text(self.keys)

    @contextmanager
    def capture(self, send: Callable[[str], bool]) -> Iterator[None]:
        """Capture keys while this lasts, and hand those to the next prompts that `send` does not take."""
        with suppress_echo(sys.stdin, by_key=True) as possible:
            if not possible:
                yield
                return
            self.keys = get_typeahead(self.source)  # keys that the last prompt has read already
            over = Event()
            reader = Thread(target=self.read_keys, args=(over, send), name="wakeloop-keys", daemon=True)
            reader.start()
            try:
                yield
            finally:
                over.set()
                reader.join()
                store_typeahead(self.source, self.keys + self.source.flush_keys())
                self.keys = []

    def read_keys(self, over: Event, send: Callable[[str], bool]) -> None:
        """Read keys until the run is over or the terminal is gone."""
        with suppress(OSError, ValueError):  # the terminal was closed
            while not (over.is_set() or self.source.closed):
                if select([self.source.fileno()], [], [], POLL_SECONDS)[0]:
                    for key in self.source.read_keys():
                        self.take_key(key, send)

    def take_key(self, key: KeyPress, send: Callable[[str], bool]) -> None:
        """Keep a key; at Enter, send the line that it ends."""
        if key.key not in ENTER_KEYS:
            self.keys.append(key)
            return
        if self.keys and self.keys[-1].key == Keys.Escape:  # Alt-Enter
            self.keys[-1] = key
            return
        begins = len(self.keys)
        while begins and self.keys[begins - 1].key not in ENTER_KEYS:
            begins -= 1
        in_block = FENCE in keys_to_text(self.keys)
        if not in_block and send(keys_to_text(self.keys[begins:])):
            del self.keys[begins:]
        else:
            self.keys.append(key)

    def discard(self) -> bool:
        """Discard the text typed ahead; return whether there was any."""
        waits = bool(select([self.source.fileno()], [], [], 0)[0])
        dropped = bool(self.keys + get_typeahead(self.source)) or waits
        self.keys.clear()
        discard_typed_input(sys.stdin)
        return dropped


def keys_to_text(keys: Sequence[KeyPress]) -> str:
    """Return the text that keys produce; backspace deletes, Enter becomes a mark."""
    text = ""
    for one in keys:
        if one.key in ENTER_KEYS:
            text += ENTER_MARK
        elif one.key == Keys.ControlH:
            text = text.removesuffix(ENTER_MARK) if text.endswith(ENTER_MARK) else text[:-1]
        elif one.key == Keys.BracketedPaste or not isinstance(one.key, Keys):
            text += one.data
    return text
