"""Views of lists, sessions and results for notebooks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from wakeloop.display import formatting
from wakeloop.display.terminal_output import clean_line, indent_continuation, strip_controls
from wakeloop.text.characters import pluralize
from wakeloop.text.plain_html import escape_html, html_table
from wakeloop.text.secrets import redact_json, redact_text
from wakeloop.thread.thread_status import answer_of, drop_misfits, make_input_error, read_thread, session_of
from wakeloop.todos.items import Todo, count_open

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
