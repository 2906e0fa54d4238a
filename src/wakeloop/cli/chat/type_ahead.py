"""What is typed while a run goes on: seen, and read later."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from select import select
from threading import Event, Thread

from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from wakeloop.cli.questions import discard_typed_input, suppress_echo

POLL_SECONDS = 0.05  # seconds between two looks for the end
ENTER_KEYS = (Keys.ControlM, Keys.ControlJ)
ENTER_MARK = " ⏎ "


class TypeAhead:
    """Keys that the next prompts take as if they were typed there."""

    def __init__(self, source: Input) -> None:
        self.source = source
        self.keys: list[KeyPress] = []

    @property
    def text(self) -> str:
        """What they come to, on one line."""
        return keys_to_text(self.keys)

    @contextmanager
    def capture(self) -> Iterator[None]:
        """Read keys as long as this lasts, and leave them to the prompts that follow."""
        with suppress_echo(sys.stdin, by_key=True) as possible:
            if not possible:
                yield
                return
            self.keys = get_typeahead(self.source)  # the prompt before has read them
            over = Event()
            reader = Thread(target=self.read_keys, args=(over,), name="wakeloop-keys", daemon=True)
            reader.start()
            try:
                yield
            finally:
                over.set()
                reader.join()
                store_typeahead(self.source, self.keys + self.source.flush_keys())
                self.keys = []

    def read_keys(self, over: Event) -> None:
        """Take keys until it is over, or the terminal is gone."""
        with suppress(OSError, ValueError):  # it is closed
            while not (over.is_set() or self.source.closed):
                if select([self.source.fileno()], [], [], POLL_SECONDS)[0]:
                    self.keys += self.source.read_keys()

    def discard(self) -> bool:
        """Throw away what was typed ahead; tells whether there was anything."""
        waits = bool(select([self.source.fileno()], [], [], 0)[0]) if sys.platform != "win32" else False
        dropped = bool(self.keys + get_typeahead(self.source)) or waits
        self.keys.clear()
        discard_typed_input(sys.stdin)
        return dropped


def keys_to_text(keys: Sequence[KeyPress]) -> str:
    """What keys come to: characters, without those that were taken back."""
    text = ""
    for one in keys:
        if one.key in ENTER_KEYS:
            text += ENTER_MARK
        elif one.key == Keys.ControlH:
            text = text.removesuffix(ENTER_MARK) if text.endswith(ENTER_MARK) else text[:-1]
        elif one.key == Keys.BracketedPaste or not isinstance(one.key, Keys):
            text += one.data
    return text
