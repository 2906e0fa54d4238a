"""A todo list in a notebook, drawn anew in its place."""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from wakeloop.display import formatting
from wakeloop.display.events import is_wakeloop_event
from wakeloop.display.plain_view import PlainView
from wakeloop.display.screen import STREAM_MODES, Line, Screen
from wakeloop.display.terminal_text import clean_line, strip_controls
from wakeloop.display.views import (
    View,
    make_paragraph,
    make_preformatted,
    render_list_html,
    render_list_text,
    show,
)
from wakeloop.errors import ArgumentError, InputError
from wakeloop.text.characters import pluralize
from wakeloop.text.plain_html import escape_html
from wakeloop.text.secrets import redact_text
from wakeloop.thread.edits import Graph, aupdate_todos, update_todos
from wakeloop.thread.thread_status import answer_of, find_last_node, session_of
from wakeloop.thread.thread_views import INTERRUPT_KEY
from wakeloop.todos.items import Todo, count_open, is_open

REDRAW_SECONDS = 0.1  # seconds from one drawing to the next, while a run streams
VISIBLE_LINES, MAX_LINES = (
    8,
    1_000,
)  # lines that show while a run streams, and those that can be unfolded behind it
MAX_REFUSAL = 1_000  # characters of a refusal
MAX_STREAMED = 400  # characters of a reply on its way
BAR_LENGTH = 10


class TodoPanel:
    """The list of a thread: it changes in its place while a run streams, and stays when the run is over.

    In a notebook each run opens a panel in its own cell; elsewhere the lines are printed as they come. What
    is kept with the notebook is plain HTML, and is read without Python, widgets or styles.

    Args:
        graph: An agent, compiled.
        config: The run's, with its `thread_id`.
        title: What stands above the list.
        clock: Seconds; for tests.

    `result` is what the last run returned, None while there is none.
    """

    def __init__(
        self,
        graph: Graph,
        config: Any = None,
        *,
        title: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.graph, self.config, self.title, self.clock = graph, config, title, clock
        self.screen = Screen(title=title, todo_tools=_find_todo_tools(graph))
        self.lines: deque[Line] = deque(maxlen=MAX_LINES)
        self.result: dict[str, Any] | None = None
        self.status = "Nothing has been run yet."
        self.running = False
        self._place: Any = None
        self._drawn_at = 0.0

    def run(self, given: Any, **more: Any) -> str:
        """Run the graph, show it, and return its answer; `more` goes to `graph.stream`."""
        with self._shown():
            for mode, data in self.graph.stream(given, self.config, **self._what(), **more):
                self.feed(mode, data)
        return self.answer

    async def arun(self, given: Any, **more: Any) -> str:
        """Run the graph asynchronously, show it, and return its answer: `await panel.arun(…)` in a cell."""
        with self._shown():
            async for mode, data in self.graph.astream(given, self.config, **self._what(), **more):
                self.feed(mode, data)
        return self.answer

    def edit(self, **edits: Any) -> View:
        """Edit the list by hand, as `update_todos` does, and draw it anew in its place."""
        return self._edited(update_todos(self.graph, self.config, **edits))

    async def aedit(self, **edits: Any) -> View:
        """Edit the list by hand, as `aupdate_todos` does, and draw it anew in its place."""
        return self._edited(await aupdate_todos(self.graph, self.config, **edits))

    @property
    def answer(self) -> str:
        """The last run's answer; "" where there is none."""
        return answer_of(self.result) if self.result else ""

    def feed(self, mode: str, data: Any) -> None:
        """Take one part of a stream: news are drawn at once, letters as often as an eye follows."""
        lines: list[Line] = []
        before = self.screen.todos
        if mode == "values":
            self.result = {**data}
            self.screen.todos = [*(data.get("todos") or ())]
        elif mode == "updates" and INTERRUPT_KEY in data:
            asked = data[INTERRUPT_KEY]
            self.result = {**(self.result or {}), INTERRUPT_KEY: [*asked]}
            lines = [
                Line("question", said) for one in asked for said in formatting.format_interrupt(one.value)
            ]
        else:
            lines = self.screen.feed(mode, data)
        ended = False
        if not self.running:  # a stream of the caller's own
            ended = mode == "custom" and is_wakeloop_event(data) and data["type"] == "parked"
            end = f"{formatting.format_ending(data['session'])} " if ended else ""
            self.status = end + self.screen.summary
        self._say(lines)
        self._draw(at_once=bool(lines) or ended or self.screen.todos != before)

    def _what(self) -> dict[str, Any]:
        """What is streamed: what a screen reads, and the values that `invoke` would return."""
        return {"stream_mode": [*STREAM_MODES, "values"], "output_keys": self.graph.output_channels}

    # -- drawing ---------------------------------------------------------------------------------------

    @contextmanager
    def _shown(self) -> Iterator[None]:
        """A run's panel: opened, kept up to date, and left as the run has left the list."""
        self.screen = Screen(title=self.title, todo_tools=self.screen.todo_tools, todos=self.screen.todos)
        self.lines.clear()
        self.result, self._place, self.running = None, None, True
        self._draw(at_once=True)
        told: list[Line] = []
        try:
            yield
            told = self._ended(self._ending())
        except (InputError, ArgumentError) as error:
            self.status = clean_line(str(error), MAX_REFUSAL)  # whoever sees it raised reads it there
            raise
        except BaseException as error:
            told = self._ended(f"The run broke off ({type(error).__name__}).")
            raise
        finally:
            self.running = False
            self._say(told)
            self._draw(at_once=True)

    def _ended(self, end: str) -> list[Line]:
        self.status = f"{end} {self.screen.summary}"
        return [Line("end", self.status)]

    def _ending(self) -> str:
        """How the run ended, and what went wrong; a parked one's values do not count what is open."""
        session: dict[str, Any] = {**session_of(self.result)} if self.result else {}
        end = formatting.format_ending(session | {"open": count_open(self.screen.todos)})
        trouble = formatting.format_trouble({"spent": self.screen.spent}, self.screen.todos)
        return f"{end} {trouble}." if trouble else end

    def _edited(self, todos: list[Todo]) -> View:
        self.screen.todos, self.status = todos, "Edited by hand since the last run."
        if self._place is not None:
            self._draw(at_once=True)
        return show(todos)

    def _say(self, lines: list[Line]) -> None:
        self.lines.extend(lines)
        if not _is_in_notebook():
            plain = PlainView(self.screen, sys.stdout)
            for line in lines:
                plain.say(line)

    def _draw(self, *, at_once: bool = False) -> None:
        """Draw the panel in its place."""
        now = self.clock()
        if not _is_in_notebook() or (not at_once and now - self._drawn_at < REDRAW_SECONDS):
            return
        self._drawn_at = now
        bundle = {"text/html": self._repr_html_(), "text/plain": str(self)}
        if self._place is None:
            from IPython.display import display  # noqa: PLC0415 - of the notebook

            self._place = display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._place.update(bundle, raw=True)

    def __str__(self) -> str:
        title = [strip_controls(self.title)] if self.title else []
        return "\n".join([*title, render_list_text(self.screen.todos), *self._now()])

    def _repr_pretty_(self, printer: Any, *_: Any) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        todos = self.screen.todos
        parts = [f"<p><b>{escape_html(strip_controls(self.title))}</b></p>"] if self.title else []
        parts += [render_list_html(todos, format_bar(todos)), *map(make_paragraph, self._now())]
        lines = [line for line in self.lines if line.kind != "item"]
        told = [
            line.text if line.kind == "question" else redact_text(line.text)
            for line in (lines[-VISIBLE_LINES:] if self.running else lines)
        ]
        if self.running:
            parts.append(make_preformatted("\n".join([*told, self._streamed()])))
        elif told:
            folded = f"<details><summary>{pluralize(len(told), 'event')}</summary>"
            parts.append(f"{folded}{make_preformatted(chr(10).join(told))}</details>")
        return "\n".join(["<div>", *parts, "</div>"])

    def _streamed(self) -> str:
        return redact_text(strip_controls(self.screen.streamed))[-MAX_STREAMED:]

    def _now(self) -> list[str]:
        return [f"At work: {self.screen.summary}" if self.running else self.status]


def format_bar(todos: list[Todo]) -> str:
    """How much of a list is no longer open, in characters that need no style."""
    full = BAR_LENGTH * sum(not is_open(todo) for todo in todos) // max(len(todos), 1)
    return "▰" * full + "▱" * (BAR_LENGTH - full) + " "


def _find_todo_tools(graph: Graph) -> frozenset[str]:
    """The names of the list's own tools, whose calls show as the list."""
    last = find_last_node(graph)
    return frozenset(last[1].dialect.tool_names if last else ())


def _is_in_notebook() -> bool:
    """Whether this runs in a kernel, whose cells can be drawn anew."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None
