"""Views for notebooks: values, and a panel that is live."""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from wakeloop.checks.argument_values import check_graph
from wakeloop.display import formatting
from wakeloop.display.screen import STREAM_MODES, Line, PlainView, Screen, is_wakeloop_event
from wakeloop.display.terminal_output import clean_line, indent_continuation, strip_controls
from wakeloop.errors import ArgumentError, InputError
from wakeloop.text.characters import pluralize
from wakeloop.text.plain_html import escape_html, html_table
from wakeloop.text.secrets import redact_json, redact_text
from wakeloop.thread.edits import Graph, aupdate_todos, update_todos
from wakeloop.thread.thread_status import (
    INTERRUPT_KEY,
    answer_of,
    drop_misfits,
    find_last_node,
    make_input_error,
    read_thread,
    session_of,
)
from wakeloop.todos.items import Todo, count_open, is_open

MAX_ITEM = 2_000  # characters of an item


@dataclass(frozen=True, repr=False)
class View:
    """Something to show, as HTML for notebooks and as text for everything else."""

    html: str
    text: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.html

    def _repr_pretty_(self, printer: Any, *_: Any) -> None:
        printer.text(self.text)


def show(given: object) -> View:
    """Show a list, a session, a run's result or a snapshot in a notebook or with `print`.

    Args:
        given: `result["todos"]`, a session, or what `agent.invoke(…)` or `agent.get_state(config)` returned.

    Raises:
        ArgumentError: `given` is something else.

    Example:
        >>> from wakeloop.display import show
        >>> show([{"id": 1, "content": "Measure", "status": "completed"}])
        [x] 1 Measure
        list: 1/1 closed
    """
    if isinstance(given, list):
        if not all(isinstance(todo, Mapping) and {"content", "status"} <= todo.keys() for todo in given):
            raise make_input_error(given)
        return View(render_list_html(given), render_list_text(given))
    if isinstance(given, Mapping) and {"state", "reason"} <= given.keys():
        sentence = format_session(given)
        return View(make_paragraph(sentence), sentence)
    values = read_thread(given).values
    todos: list[Todo] = values.get("todos") or []
    # The session of a parked run's result does not count open items.
    session: dict[str, Any] = {"open": count_open(todos), **session_of(given)}
    sentence = format_session(session, values.get("messages") or ())
    goal = clean_line(redact_text(values.get("todo_goal") or ""), MAX_ITEM)
    answer = strip_controls(redact_text(answer_of(given)))
    html = [render_list_html(todos), make_paragraph(sentence)]
    text = [render_list_text(todos), sentence]
    if goal:
        html.insert(0, f"<p><b>{escape_html(goal)}</b></p>")
        text.insert(0, goal)
    if answer:
        html.append(make_preformatted(answer))
        text.append("model: " + indent_continuation(answer))
    return View("\n".join(html), "\n".join(text))


def format_session(session: Mapping[str, Any], messages: Sequence[Any] | None = None) -> str:
    """Say how a thread's last run ended, what it spent, and how many calls failed."""
    session = drop_misfits(session)
    parts = []
    if session.get("wakes"):
        parts.append(pluralize(session["wakes"], "wake"))
    if spent := session.get("spent"):
        parts.append(formatting.format_spent(spent))
    if failed := formatting.count_failed_calls(session):
        parts.append(f"{pluralize(failed, 'call')} failed")
    sentence = formatting.format_ending(session, messages)
    if parts:
        sentence += f" {', '.join(parts)}."
    return sentence


def render_list_html(todos: Sequence[Todo], bar: str = "") -> str:
    """Render a list as a table with its progress above, readable without styles."""
    if not todos:
        return "<p>The list is empty.</p>"
    rows = []
    for todo in redact_json(todos):
        rows.append((str(todo.get("id", "")), clean_line(todo["content"], MAX_ITEM), _format_status(todo)))
    return f"<p>{bar}{formatting.format_progress(todos)}</p>\n{html_table(('id', 'item', 'status'), rows)}"


def render_list_text(todos: Sequence[Todo]) -> str:
    """Render a list as lines of text."""
    if not todos:
        return "The list is empty."
    lines = [formatting.format_item(cast(Todo, {"id": "-", **todo})) for todo in todos]
    return "\n".join([*lines, f"list: {formatting.format_progress(todos)}"])


def _format_status(todo: Todo) -> str:
    """Format a status with its sign, and its reason or evidence."""
    status = f"{formatting.SIGNS.get(todo['status'], '?')} {todo['status'].replace('_', ' ')}"
    why = todo.get("reason") or todo.get("evidence")
    if why:
        status += f": {clean_line(str(why), MAX_ITEM)}"
    return status


def make_paragraph(text: str) -> str:
    """Make an HTML paragraph."""
    return f"<p>{escape_html(strip_controls(text))}</p>"


def make_preformatted(text: str) -> str:
    """Make a preformatted HTML block that wraps on narrow pages."""
    return f'<pre style="white-space:pre-wrap">{escape_html(strip_controls(text))}</pre>'


REDRAW_SECONDS = 0.1  # between two redraws while tokens stream in
VISIBLE_LINES = 8  # the newest lines, shown during a run
MAX_LINES = 1_000  # lines that can be unfolded after it
MAX_REFUSAL = 1_000  # characters of the error for a refused input
MAX_STREAMED = 400  # characters of an unfinished reply
BAR_LENGTH = 10


class TodoPanel:
    """A live view of a thread's list, which is redrawn in place while a run streams.

    In a notebook each run opens a panel in its own cell, saved as plain HTML that needs neither Python nor
    widgets. Elsewhere the lines are printed as they come.

    Args:
        graph: A compiled agent.
        config: The run's config, with its `thread_id`.
        title: A heading above the list.
        clock: Returns seconds; for tests.

    `result` is what the last run returned, or None before the first.

    Example:
        >>> from wakeloop import create_todo_agent
        >>> from wakeloop.display import TodoPanel
        >>> from wakeloop.testing import ScriptedModel, says
        >>> panel = TodoPanel(create_todo_agent(ScriptedModel(says("Hello!"))))
        >>> panel.run({"messages": [("user", "Hi")]})  # doctest: +ELLIPSIS
        model: Hello!
        Answered without a list and without calling a tool. ...
        'Hello!'
    """

    def __init__(
        self,
        graph: Graph,
        config: Any = None,
        *,
        title: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        check_graph(graph)
        self.graph, self.config, self.title, self.clock = graph, config, title, clock
        self.screen = Screen(title=title, todo_tools=_find_todo_tools(graph))
        self.lines: deque[Line] = deque(maxlen=MAX_LINES)
        self.result: dict[str, Any] | None = None
        self.status = "Nothing has been run yet."
        self.running = False
        self._place: Any = None
        self._drawn_at = 0.0
        self._rendered: tuple[list[Todo], View] = ([], _render_list([]))

    def run(self, given: Any, **more: Any) -> str:
        """Run the graph, show the run, and return its answer. `more` is passed to `graph.stream`."""
        with self._follow_run():
            for mode, data in self.graph.stream(given, self.config, **self._stream_options(), **more):
                self.feed(mode, data)
        return self.answer

    async def arun(self, given: Any, **more: Any) -> str:
        """Run the graph asynchronously, as in `await panel.arun(…)`, show the run, and return its answer."""
        with self._follow_run():
            async for mode, data in self.graph.astream(given, self.config, **self._stream_options(), **more):
                self.feed(mode, data)
        return self.answer

    def edit(self, **edits: Any) -> View:
        """Edit the list with the arguments of `update_todos`, and redraw it in place."""
        return self._show_edited(update_todos(self.graph, self.config, **edits))

    async def aedit(self, **edits: Any) -> View:
        """Edit the list with the arguments of `aupdate_todos`, and redraw it in place."""
        return self._show_edited(await aupdate_todos(self.graph, self.config, **edits))

    @property
    def answer(self) -> str:
        """The last run's answer; "" before the first one."""
        return answer_of(self.result) if self.result else ""

    def feed(self, mode: str, data: Any) -> None:
        """Show one part of a stream. Events are drawn at once, tokens at most ten times a second."""
        lines: list[Line] = []
        before = self.screen.todos
        if mode == "values":
            self.result = {**data}
            self.screen.todos = [*(data.get("todos") or ())]
        elif mode == "updates" and INTERRUPT_KEY in data:
            self.result = {**(self.result or {}), INTERRUPT_KEY: [*data[INTERRUPT_KEY]]}
            lines = self._format_questions()
        else:
            lines = self.screen.feed(mode, data)
        ended = False
        if not self.running:  # the caller streams, so `run` does not see the end
            self.status = self.screen.summary
            if mode == "custom" and is_wakeloop_event(data) and data["type"] == "parked":
                ended = True
                self.status = f"{formatting.format_ending(data['session'])} {self.status}"
        self._add_lines(lines)
        self._draw(at_once=bool(lines) or ended or self.screen.todos != before)

    def _format_questions(self) -> list[Line]:
        """Return the questions at which the run waits, as lines."""
        asked = (self.result or {}).get(INTERRUPT_KEY) or ()
        return [Line("question", text) for one in asked for text in formatting.format_interrupt(one.value)]

    def _stream_options(self) -> dict[str, Any]:
        """Stream what a screen reads, and the values that `invoke` would return."""
        return {"stream_mode": [*STREAM_MODES, "values"], "output_keys": self.graph.output_channels}

    # -- drawing ---------------------------------------------------------------------------------------

    @contextmanager
    def _follow_run(self) -> Iterator[None]:
        """Open a panel for a run, and finish it with how the run ended."""
        before = self.screen
        self.screen = Screen(title=self.title, todo_tools=before.todo_tools, todos=before.todos)
        # a resumed run continues their counts, and the event of a new activation resets them
        self.screen.wakes, self.screen.budget, self.screen.spent = before.wakes, before.budget, before.spent
        self.lines.clear()
        self.result, self._place, self.running = None, None, True
        self._draw(at_once=True)
        last: list[Line] = []
        try:
            yield
            last = self._set_end(self._describe_end())
        except (InputError, ArgumentError) as error:
            self.status = clean_line(str(error), MAX_REFUSAL)  # the exception below the cell says the rest
            raise
        except BaseException as error:
            last = self._set_end(f"The run broke off ({type(error).__name__}).")
            raise
        finally:
            self.running = False
            self._add_lines(last)
            self._draw(at_once=True)

    def _set_end(self, end: str) -> list[Line]:
        self.status = f"{end} {self.screen.summary}"
        return [Line("end", self.status)]

    def _describe_end(self) -> str:
        """Say how the run ended and what went wrong."""
        session: dict[str, Any] = {**session_of(self.result)} if self.result else {}
        # The values of a parked run do not count open items.
        counted = session | {"open": count_open(self.screen.todos)}
        end = formatting.format_ending(counted, (self.result or {}).get("messages") or ())
        trouble = formatting.format_trouble({"spent": self.screen.spent}, self.screen.todos)
        if trouble:
            end += f" {trouble}."
        return end

    def _show_edited(self, todos: list[Todo]) -> View:
        self.screen.todos, self.status = todos, "Edited by hand since the last run."
        if self._place is not None:
            self._draw(at_once=True)
        return show(todos)

    def _add_lines(self, lines: list[Line]) -> None:
        self.lines.extend(lines)
        if not _is_in_notebook():
            plain = PlainView(self.screen, sys.stdout)
            for line in lines:
                plain.say(line)

    def _draw(self, *, at_once: bool = False) -> None:
        """Draw or redraw the panel."""
        now = self.clock()
        if not _is_in_notebook() or (not at_once and now - self._drawn_at < REDRAW_SECONDS):
            return
        self._drawn_at = now
        bundle = {"text/html": self._repr_html_(), "text/plain": str(self)}
        if self._place is None:
            from IPython.display import display  # noqa: PLC0415 - only notebooks have it

            self._place = display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._place.update(bundle, raw=True)

    def __str__(self) -> str:
        questions = map(_redact_line, self._format_questions())
        lines = [self._render_list().text, self._status_line(), *questions]
        if self.title:
            lines.insert(0, strip_controls(self.title))
        return "\n".join(lines)

    def _repr_pretty_(self, printer: Any, *_: Any) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        parts = [self._render_list().html, make_paragraph(self._status_line())]
        if self.title:
            parts.insert(0, f"<p><b>{escape_html(strip_controls(self.title))}</b></p>")
        if questions := self._format_questions():
            parts.append(make_preformatted("\n".join(map(_redact_line, questions))))
        elsewhere = {"item", "question"} if questions else {"item"}
        lines = [line for line in self.lines if line.kind not in elsewhere]
        if self.running:
            rows = [*map(_redact_line, lines[-VISIBLE_LINES:]), self._format_streamed()]
            parts.append(make_preformatted("\n".join(rows)))
        elif lines:
            log = make_preformatted("\n".join(map(_redact_line, lines)))
            parts.append(f"<details><summary>{pluralize(len(lines), 'event')}</summary>{log}</details>")
        return "\n".join(["<div>", *parts, "</div>"])

    def _render_list(self) -> View:
        """Render the list again only if it has changed: tokens redraw the panel ten times a second."""
        todos = self.screen.todos
        if self._rendered[0] != todos:
            self._rendered = (todos, _render_list(todos))
        return self._rendered[1]

    def _format_streamed(self) -> str:
        return redact_text(strip_controls(self.screen.streamed))[-MAX_STREAMED:]

    def _status_line(self) -> str:
        return f"At work: {self.screen.summary}" if self.running else self.status


def _render_list(todos: list[Todo]) -> View:
    """Render a list as a table with a bar, and as lines."""
    return View(render_list_html(todos, format_bar(todos)), render_list_text(todos))


def _redact_line(line: Line) -> str:
    """Return a line's text without secrets; a question stays whole, since a person may approve it."""
    return line.text if line.kind == "question" else redact_text(line.text)


def format_bar(todos: list[Todo]) -> str:
    """Draw the share of items that are done with as a bar of plain characters."""
    full = BAR_LENGTH * sum(not is_open(todo) for todo in todos) // max(len(todos), 1)
    return "▰" * full + "▱" * (BAR_LENGTH - full) + " "


def _find_todo_tools(graph: Graph) -> frozenset[str]:
    """Return the names of the todo tools, whose calls are shown as the list itself."""
    last = find_last_node(graph)
    return frozenset(last[1].dialect.tool_names if last else ())


def _is_in_notebook() -> bool:
    """Tell whether this runs in a Jupyter kernel, whose outputs can be redrawn."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None
