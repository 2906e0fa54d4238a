"""The command in a terminal of 80 columns: played, and drawn as an SVG."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from itertools import groupby
from threading import Event
from typing import Any

import pyte
from chat_server import Reply, Server
from emulator import Emulator
from pictures import timeless
from processes import Shell
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

FORM = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<style>
.{unique_id}-matrix {{ font: {char_height}px "DejaVu Sans Mono", Menlo, Consolas, monospace }}
.{unique_id}-title {{ font: 16px sans-serif }}
{styles}
</style>
<defs>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""  # rich's own template, without the fonts that it would load
ROWS = 21
WIDE = 12.2  # rich's width of a column
DARK = TerminalTheme(
    (24, 24, 27),
    (228, 228, 231),
    [
        (24, 24, 27),
        (255, 123, 114),
        (126, 231, 135),
        (227, 179, 65),
        (121, 192, 255),
        (210, 168, 255),
        (118, 227, 234),
        (228, 228, 231),
    ],
)
NAMES = {"brown": "yellow", "default": None}  # where the emulator's names differ from rich's


def drawn(screen: pyte.Screen, title: str) -> str:
    """Return the rows of a screen, up to the last that is not empty."""
    rows = [styled(screen, row) for row in range(screen.lines)]
    while not rows[-1].plain.strip():
        rows.pop()
    console = Console(file=io.StringIO(), record=True, width=screen.columns, color_system="truecolor")
    console.print(*rows, sep="\n", soft_wrap=True)
    return console.export_svg(title=title, theme=DARK, code_format=FORM, unique_id="screen")


def styled(screen: pyte.Screen, row: int) -> Text:
    """Return a row with its colours."""
    cells = (screen.buffer[row][column] for column in range(screen.columns))
    runs = groupby(cells, key=style_of)
    text = Text.assemble(*(("".join(one.data for one in run), style) for style, run in runs))
    text.rstrip()
    return text


def style_of(one: Any) -> Style:
    """Return how a character looks, in rich's words."""
    return Style(
        color=colour(one.fg), bgcolor=colour(one.bg), bold=one.bold, italic=one.italics,
        underline=one.underscore, reverse=one.reverse,
    )  # fmt: skip


def colour(name: str) -> str | None:
    """Return rich's name of an emulator's colour."""
    if re.fullmatch("[0-9a-f]{6}", name):
        return f"#{name}"
    bright = name.startswith("bright")
    plain = name.removeprefix("bright")
    known = NAMES.get(plain, plain)
    return f"bright_{known}" if bright and known else known


def words(picture: str) -> list[str]:
    """Return the rows of a drawn screen, without what differs between runs."""
    rows: dict[float, str] = {}
    for x, y, told in re.findall(
        r'<text class="screen-r\d+" x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>', picture
    ):
        before = rows.get(float(y), "").ljust(round(float(x) / WIDE))
        rows[float(y)] = before + unescape(told).replace("\xa0", " ")
    return [masked(rows[y].rstrip()) for y in sorted(rows)]


def masked(row: str) -> str:
    """Return a row without times, ids and the spinner."""
    return re.sub("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]", "⠋", timeless(re.sub(r"-[0-9a-f]{8}\b", "-ID", row)))


# -- the scripts -----------------------------------------------------------------------------------------


NOTES = "# Notes\n\n- the harbour opens at six\n- Ada asks for the plan\n"
STEPS = ("Read the notes", "Read the plan", "Write summary.md")


def at(number: int, status: str, **more: str) -> tuple[str, dict[str, Any]]:
    """Return a call that sets an item."""
    return "todo_update", {"id": number, "status": status, **more}


RUN = [
    Reply(calls=[("todo_write", {"items": STEPS})]),
    Reply(calls=[at(1, "in_progress"), ("read_file", {"path": "notes.md"})]),
    Reply(calls=[at(1, "done"), at(2, "in_progress"), ("read_file", {"path": "plan.md"})]),
    Reply("The notes name a **plan** that is not in this folder."),
    Reply(calls=[at(2, "blocked", reason="there is no plan.md"), at(3, "in_progress")]),
    Reply(calls=[("write_file", {"path": "summary.md", "content": "It opens at six.\n"})]),
    Reply(calls=[at(3, "done")]),
    Reply("`summary.md` is written. For the plan I need the file: **plan.md** is not here."),
]
HELD = 6  # the request during which the run is looked at


def run(shell: Shell) -> Iterator[tuple[str, str]]:
    """Play `wakeloop run`, and look during and after the run."""
    (shell.folder / "notes.md").write_text(NOTES)
    go = Event()

    def script(number: int, asked: Any) -> Reply:
        if number == HELD:
            go.wait(60)
        return RUN[number - 1]

    with played(shell, script, "run", "Summarise these notes") as talk:
        talk.until(lambda: "⠋ waiting for the model" in map(masked, talk.rows()))
        talk.until(lambda: any(row.startswith("  ▸ 3") for row in talk.rows()))
        yield "run", drawn(talk.screen, "wakeloop run")
        go.set()
        talk.until(lambda: False)
        yield "run-end", drawn(talk.screen, "wakeloop run")


CHAT = [
    Reply(calls=[("todo_write", {"items": ["Read the notes", "Ask for the plan"]})]),
    Reply(calls=[at(1, "in_progress"), ("read_file", {"path": "notes.md"})]),
    Reply(calls=[at(1, "done"), at(2, "blocked", reason="Ada has it")]),
    Reply("The harbour opens **at six**. The plan is Ada's: ask her for it."),
]


def chat(shell: Shell) -> Iterator[tuple[str, str]]:
    """Play `wakeloop chat`: a question, its answer, and the next one as it is typed."""
    (shell.folder / "notes.md").write_text(NOTES)
    with played(shell, CHAT, "chat") as talk:
        talk.until(lambda: ">" in talk.rows())
        talk.child.send("when does the harbour open?\r")
        talk.until(lambda: talk.rows()[-1].startswith("list: "))
        talk.child.send("then tell Ada that")
        talk.until(lambda: talk.rows()[-2] == "> then tell Ada that")
        yield "chat", drawn(talk.screen, "wakeloop chat")


@contextmanager
def played(shell: Shell, script: Any, *args: str) -> Iterator[Emulator]:
    """Run the command in its terminal, with a server that plays a script."""
    server = Server(script)
    state = shell.folder.parent / "state"
    talk = Emulator(shell, state, *args, "--model", "small", "--base-url", server.url, rows=ROWS)
    try:
        yield talk
    finally:
        talk.child.close(force=True)
        server.close()
