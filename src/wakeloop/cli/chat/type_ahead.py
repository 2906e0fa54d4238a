"""Type-ahead: keys typed during a run, sent or kept."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from select import select
from threading import Event, Thread

from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from wakeloop.cli.chat.parsing import FENCE
from wakeloop.cli.questions import discard_typed_input, suppress_echo

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
