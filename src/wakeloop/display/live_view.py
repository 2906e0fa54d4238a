"""A live view in a terminal: list, running tool, text."""

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from threading import Event, RLock, Thread
from typing import Any, Self, TextIO

from rich.console import Console, Group
from rich.live import Live as Region
from rich.text import Text

from wakeloop.display import formatting
from wakeloop.display.screen import Line, Screen
from wakeloop.display.terminal_markdown import render_markdown
from wakeloop.display.terminal_output import wrap_text
from wakeloop.display.terminal_text import strip_controls
from wakeloop.text.characters import pluralize
from wakeloop.todos.items import Todo, is_open

STYLES = {
    "note": "dim",
    "way": "dim",
    "done": "cyan",
    "error": "red",
    "wake": "bold yellow",
    "nag": "yellow",
    "guard": "magenta",
    "question": "bold",
    "end": "bold",
}
ITEMS = {"in_progress": "bold cyan", "completed": "green", "cancelled": "dim", "blocked": "red"}
OUTCOMES = {"done": "✔", "error": "✘"}  # marks of a call that has ended
REPLY = "model: "
FRAMES_PER_SECOND = 8  # times that the region is drawn
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
BAR = 24  # characters of the progress bar
OTHER_ROWS = 9  # rows of the region beside list and text
TEXT_ROWS = 4
TYPED_PROMPT = "next> "  # before what is typed meanwhile
STATUS_ROWS = 2  # in a terminal too narrow for one


class LiveView:
    """A view that redraws a region at the bottom; lines that stay scroll by above it."""

    def __init__(self, screen: Screen, out: TextIO) -> None:
        self.screen = screen
        self.console = Console(file=out, highlight=False, markup=False, emoji=False)
        self.region, self.drawing = self.new_region(), RLock()

    def new_region(self) -> Region:
        """Make a region of its own for each run: a used one would rub out what was said since."""
        return Region(get_renderable=self.drawn, console=self.console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        self.region, self.over = self.new_region(), Event()
        self.region.start()
        self.drawer = Thread(target=self.redrawn, args=(self.region, self.over), daemon=True)
        self.drawer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.over.set()
        self.drawer.join()
        self.region.stop()

    def redrawn(self, region: Region, over: Event) -> None:
        """Draw the region again and again; rich's own thread may do so in the midst of a line that stays."""
        with suppress(OSError):  # the terminal is gone: who writes a line there will tell
            while not over.wait(1 / FRAMES_PER_SECOND):
                with self.drawing:
                    region.refresh()

    def feed(self, mode: str, data: Any) -> None:
        """Take one part of the stream; the list's changes and calls at work show in the region."""
        for line in self.screen.feed(mode, data):
            if line.kind not in ("item", "tool"):
                self.say(line)

    def say(self, line: Line) -> None:
        """Write a line that stays, above the region."""
        with self.drawing:
            self.write(line)

    def write(self, line: Line) -> None:
        """Write it, its words wrapped, each further row set off."""
        if line.kind == "model" and line.parts:
            for told in self.reply(line.parts[0]):
                self.console.print(told, soft_wrap=True)
        else:
            for told in self.hung(line):
                self.console.print(told, soft_wrap=True)

    def reply(self, text: str) -> Iterator[Text]:
        """The model's text, laid out, set off further than any line of the view's own."""
        room = self.console.options.update(width=max(self.console.width - len(REPLY), 10))
        for number, drawn in enumerate(self.console.render_lines(render_markdown(text), room, pad=False)):
            head = " " * len(REPLY) if number else REPLY
            told = Text.assemble(head, *((part.text, part.style or "") for part in drawn if not part.control))
            told.rstrip()
            yield told

    def hung(self, line: Line) -> Iterator[Text]:
        """A line's rows, wrapped between words, each further row set off; a call with mark and time."""
        text = line.text
        if line.parts:
            call, took, told = line.parts
            text = f"{OUTCOMES[line.kind]} {call}" + (f"  {took}" if took else "")
            text += f"\n    {told}" if told else ""
        for number, part in enumerate(text.split("\n")):
            style = "dim" if line.parts and number else STYLES.get(line.kind, "")
            yield from (Text(told, style) for told in wrap_text(part, self.console.width))

    # -- the region ------------------------------------------------------------------------------------

    def drawn(self) -> Group:
        """The region as it is now; asked several times a second, from a thread of its own."""
        return Group(*self.rows())

    def rows(self) -> Iterator[Text]:
        """Its rows: list, progress, text, running tools, counts; never more than the terminal has."""
        screen = self.screen
        yield make_row("")
        room = max(self.console.height - OTHER_ROWS - TEXT_ROWS, 3)
        todos = screen.todos
        yield from (format_item_row(todo) for todo in select_visible(todos, room))
        if len(todos) > room:
            yield make_row(f"  … {len(todos)} items in all", "dim")
        if todos:
            yield format_progress_bar(todos)
        yield from (
            make_row(line, "italic")
            for line in take_last_rows(strip_controls(screen.streamed), self.console.width)
        )
        spinner = SPINNER[int(self.console.get_time() * 8) % len(SPINNER)]
        for told in self.at_work()[:3]:
            yield make_row(f"{spinner} {told}", "cyan")
        status = f"{screen.so_far}  {screen.title}"
        told_in = wrap_text(status, max(self.console.width, 10), hang=0)
        yield from (make_row(told, "dim") for told in islice(told_in, STATUS_ROWS))
        if ahead := strip_controls(screen.ahead()).replace("\n", " "):
            room = max(self.console.width - len(TYPED_PROMPT), 1)
            yield make_row(TYPED_PROMPT + (ahead if len(ahead) <= room else f"…{ahead[1 - room :]}"))

    def at_work(self) -> list[str]:
        """What is going on: calls and how long each has run, else the reply that comes."""
        screen = self.screen
        now = screen.clock()
        told = [
            f"{formatting.format_elapsed(now - call.since)}  {call.told}"
            if call.since is not None
            else call.told
            for call in list(screen.running.values())
        ]
        name, length = screen.calling
        if name:
            return [*told, f"calling {name}, {pluralize(length, 'character')}"]
        return told or ["writing" if screen.streamed else "waiting for the model"]


def make_row(text: str, style: str = "") -> Text:
    """One row that never wraps."""
    return Text(strip_controls(text), style=style, no_wrap=True, overflow="ellipsis")


def format_item_row(todo: Todo) -> Text:
    """One item with its mark."""
    status = todo["status"]
    return make_row(
        f"  {formatting.format_item(todo, formatting.SIGNS.get(status, '?'))}", ITEMS.get(status, "")
    )


def select_visible(todos: list[Todo], room: int) -> list[Todo]:
    """As much of the list as fits, from the item before the first open one."""
    if len(todos) <= room:
        return todos
    first = next((place for place, todo in enumerate(todos) if is_open(todo)), len(todos))
    start = max(min(first - 1, len(todos) - room), 0)
    return todos[start : start + room]


def format_progress_bar(todos: list[Todo]) -> Text:
    """How much of the list is no longer open."""
    full = BAR * sum(not is_open(todo) for todo in todos) // len(todos)
    drawn = make_row("  ").append("━" * full, "green").append("━" * (BAR - full), "dim")
    return drawn.append(f" {formatting.format_progress(todos)}")


def take_last_rows(text: str, width: int) -> list[str]:
    """The end of a text, wrapped: a few rows of it."""
    lines = [line for line in text.splitlines() if line.strip()][-TEXT_ROWS:]
    return [row for line in lines for row in wrap_text(line, max(width - 2, 10), hang=0)][-TEXT_ROWS:]


def supports_live_view(out: TextIO) -> bool:
    """Whether an output can show a region: a terminal that obeys, with letters for the marks."""
    if not out.isatty() or os.environ.get("TERM", "") in ("dumb", "unknown"):
        return False
    try:
        "✔✘▸○–■━⠋…".encode(out.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
