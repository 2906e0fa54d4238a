"""Live view for a terminal: list, calls, text."""

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from threading import Event, RLock, Thread
from typing import Any, Self, TextIO

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.live import Live as Region
from rich.markdown import Heading, Markdown
from rich.text import Text

from wakeloop.display import formatting
from wakeloop.display.screen import Line, Screen
from wakeloop.display.terminal_output import strip_controls, wrap_text
from wakeloop.text.characters import pluralize
from wakeloop.todos.items import Todo, is_open

MAX_CHARACTERS = 100_000  # longer messages are shown as they are


class LeftHeading(Heading):
    """A left-aligned heading; rich centres them."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Render the heading."""
        self.text.justify = "left"
        yield self.text


class TerminalMarkdown(Markdown):
    """Markdown with left-aligned headings."""

    elements = {**Markdown.elements, "heading_open": LeftHeading}  # noqa: RUF012 - as the class that it is of


def render_markdown(text: str) -> RenderableType:
    """Render Markdown with nothing hidden: HTML tags stay text, and links show their addresses.

    Entities stay as written, since one for a control code would be obeyed.
    """
    if len(text) > MAX_CHARACTERS:
        return Text(text)
    page = TerminalMarkdown("", code_theme="ansi_dark", hyperlinks=False)
    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable("entity")
    page.markup, page.parsed = text, parser.parse(text)
    for token in page.parsed:
        for part in token.children or ():
            if part.type == "softbreak":
                part.type = "hardbreak"  # models mean their line breaks
    return page


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
    "good": "bold",
}
ITEMS = {"in_progress": "bold cyan", "completed": "green", "cancelled": "dim", "blocked": "red"}
OUTCOMES = {"done": "✔", "error": "✘"}
REPLY = "model: "
FRAMES_PER_SECOND = 8
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
BAR = 24  # characters of the progress bar
OTHER_ROWS = 9  # rows of the region that are neither list nor text
TEXT_ROWS = 4
TYPED_PROMPT = "next> "  # before what a person types during a run
STATUS_ROWS = 2  # at most, in a narrow terminal


class LiveView:
    """A view that redraws a region at the bottom, with the lines that stay scrolling above it."""

    def __init__(self, screen: Screen, out: TextIO) -> None:
        self.screen = screen
        self.console = Console(file=out, highlight=False, markup=False, emoji=False)
        self.region, self.drawing = self.new_region(), RLock()

    def new_region(self) -> Region:
        """Make a new region for each run; a used one would erase lines written since."""
        return Region(get_renderable=self.render, console=self.console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        self.region, self.over = self.new_region(), Event()
        self.region.start()
        self.drawer = Thread(target=self.redraw_until, args=(self.region, self.over), daemon=True)
        self.drawer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.over.set()
        self.drawer.join()
        self.region.stop()

    def redraw_until(self, region: Region, over: Event) -> None:
        """Redraw the region until the run is over. Rich's own thread would draw in the middle of a line."""
        with suppress(OSError):  # the terminal is gone; writing a line raises it
            while not over.wait(1 / FRAMES_PER_SECOND):
                with self.drawing:
                    region.refresh()

    def feed(self, mode: str, data: Any) -> None:
        """Show one part of the stream; the region shows changes of the list and running calls."""
        for line in self.screen.feed(mode, data):
            if line.kind not in ("item", "tool"):
                self.say(line)

    def say(self, line: Line) -> None:
        """Write a line that stays, above the region."""
        with self.drawing:
            self.write(line)

    def write(self, line: Line) -> None:
        """Write the rows of a line."""
        rows = self.wrap_line(line)
        if line.kind == "model" and line.parts:
            rows = self.wrap_reply(line.parts[0])
        for row in rows:
            self.console.print(row, soft_wrap=True)

    def wrap_reply(self, text: str) -> Iterator[Text]:
        """Yield the rows of a model's text, as Markdown, indented further than lines of the view itself."""
        room = self.console.options.update(width=max(self.console.width - len(REPLY), 10))
        head = REPLY
        for drawn in self.console.render_lines(render_markdown(text), room, pad=False):
            row = Text(head)
            head = " " * len(REPLY)
            for part in drawn:
                if not part.control:
                    row.append(part.text, part.style)
            row.rstrip()
            yield row

    def wrap_line(self, line: Line) -> Iterator[Text]:
        """Yield the rows of a line, wrapped between words; a call with its mark and time."""
        text = line.text
        if line.parts:
            call, took, result = line.parts
            text = f"{OUTCOMES[line.kind]} {call}"
            if took:
                text += f"  {took}"
            if result:
                text += f"\n    {result}"
        for number, part in enumerate(text.split("\n")):
            style = "dim" if line.parts and number else STYLES.get(line.kind, "")
            for row in wrap_text(part, self.console.width):
                yield Text(row, style)

    # -- the region ------------------------------------------------------------------------------------

    def render(self) -> Group:
        """Render the region as it is now; called several times a second, from another thread."""
        return Group(*self.rows())

    def rows(self) -> Iterator[Text]:
        """Yield list, progress, text, running calls and counts; never more rows than the terminal has."""
        screen, width = self.screen, self.console.width
        yield make_row("")
        room = max(self.console.height - OTHER_ROWS - TEXT_ROWS, 3)
        todos = screen.todos
        for todo in select_visible(todos, room):
            yield format_item_row(todo)
        if len(todos) > room:
            yield make_row(f"  … {len(todos)} items in all", "dim")
        if todos:
            yield format_progress_bar(todos)
        for row in take_last_rows(strip_controls(screen.streamed), width):
            yield make_row(row, "italic")
        spinner = SPINNER[int(self.console.get_time() * 8) % len(SPINNER)]
        for activity in self.list_activities()[:3]:
            yield make_row(f"{spinner} {activity}", "cyan")
        status = wrap_text(f"{screen.progress_summary}  {screen.title}", max(width, 10), hang=0)
        for row in islice(status, STATUS_ROWS):
            yield make_row(row, "dim")
        if typed := strip_controls(screen.typed()).replace("\n", " "):
            room = max(width - len(TYPED_PROMPT), 1)
            if len(typed) > room:
                typed = f"…{typed[1 - room :]}"  # the end, where the cursor is
            yield make_row(TYPED_PROMPT + typed)

    def list_activities(self) -> list[str]:
        """Return the running calls with their times, else what the model is doing."""
        screen = self.screen
        now = screen.clock()
        activities = []
        for call in list(screen.running.values()):  # a copy: the stream's thread changes it
            activity = call.text
            if call.since is not None:
                activity = f"{formatting.format_elapsed(now - call.since)}  {activity}"
            activities.append(activity)
        name, length = screen.calling
        if name:
            activities.append(f"calling {name}, {pluralize(length, 'character')}")
        return activities or ["writing" if screen.streamed else "waiting for the model"]


def make_row(text: str, style: str = "") -> Text:
    """Make a row that never wraps."""
    return Text(strip_controls(text), style=style, no_wrap=True, overflow="ellipsis")


def format_item_row(todo: Todo) -> Text:
    """Format an item with its mark."""
    status = todo["status"]
    return make_row(
        f"  {formatting.format_item(todo, formatting.SIGNS.get(status, '?'))}", ITEMS.get(status, "")
    )


def select_visible(todos: list[Todo], room: int) -> list[Todo]:
    """Return as many items as fit, starting with the one before the first open item."""
    if len(todos) <= room:
        return todos
    first = next((place for place, todo in enumerate(todos) if is_open(todo)), len(todos))
    start = max(min(first - 1, len(todos) - room), 0)
    return todos[start : start + room]


def format_progress_bar(todos: list[Todo]) -> Text:
    """Draw a bar with the share of items that are done with, and count them."""
    full = BAR * sum(not is_open(todo) for todo in todos) // len(todos)
    drawn = make_row("  ").append("━" * full, "green").append("━" * (BAR - full), "dim")
    return drawn.append(f" {formatting.format_progress(todos)}")


def take_last_rows(text: str, width: int) -> list[str]:
    """Return the last rows of the wrapped text."""
    rows: list[str] = []
    lines = [line for line in text.splitlines() if line.strip()]
    for line in lines[-TEXT_ROWS:]:
        rows += wrap_text(line, max(width - 2, 10), hang=0)
    return rows[-TEXT_ROWS:]


def supports_live_view(out: TextIO) -> bool:
    """Tell whether an output is a terminal that can move its cursor and show the marks."""
    if not out.isatty() or os.environ.get("TERM", "") in ("dumb", "unknown"):
        return False
    try:
        "✔✘▸○–■━⠋…".encode(out.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
