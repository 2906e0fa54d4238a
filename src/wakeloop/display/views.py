"""A list, a session, a result: shown in a notebook."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from wakeloop.display import formatting
from wakeloop.display.terminal_text import clean_line, indent_continuation, strip_controls
from wakeloop.text.characters import pluralize
from wakeloop.text.plain_html import escape_html, html_table
from wakeloop.text.secrets import redact_json, redact_text
from wakeloop.thread.thread_status import answer_of, session_of
from wakeloop.thread.thread_views import make_input_error, read_thread
from wakeloop.todos.items import Todo, count_open

MAX_ITEM = 2_000  # characters of an item


@dataclass(frozen=True, repr=False)
class View:
    """One thing in two forms: HTML for a notebook, lines of text for all else."""

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
    """Show a list, a session, a run's result or a snapshot, as a notebook's cell or `print` has it.

    Args:
        given: `result["todos"]`, a session, or what `agent.invoke(…)` or `agent.get_state(config)` returned.

    Raises:
        ArgumentError: Something else.
    """
    if isinstance(given, list):
        if not all(isinstance(todo, Mapping) and {"content", "status"} <= todo.keys() for todo in given):
            raise make_input_error(given)
        return View(render_list_html(given), render_list_text(given))
    if isinstance(given, Mapping) and {"state", "reason"} <= given.keys():
        told = format_session(given)
        return View(make_paragraph(told), told)
    values = read_thread(given).values
    todos: list[Todo] = values.get("todos") or []
    told = format_session({"open": count_open(todos)} | cast(dict[str, Any], session_of(given)))
    goal, answer = (
        clean_line(redact_text(values.get("todo_goal") or ""), MAX_ITEM),
        strip_controls(redact_text(answer_of(given))),
    )
    html = [render_list_html(todos), make_paragraph(told)]
    text = [render_list_text(todos), told]
    if goal:
        html.insert(0, f"<p><b>{escape_html(goal)}</b></p>")
        text.insert(0, goal)
    if answer:
        html.append(make_preformatted(answer))
        text.append("model: " + indent_continuation(answer))
    return View("\n".join(html), "\n".join(text))


def format_session(session: Mapping[str, Any]) -> str:
    """How a thread stands, what it took, and what went wrong on the way."""
    told = [formatting.format_ending(session)]
    took = [pluralize(session["wakes"], "wake")] if session.get("wakes") else []
    if spent := session.get("spent"):
        took.append(formatting.format_spent(spent))
    if failed := formatting.count_failed_calls(session):
        took.append(f"{pluralize(failed, 'call')} failed")
    return " ".join([*told, *([", ".join(took) + "."] if took else [])])


def render_list_html(todos: Sequence[Todo], bar: str = "") -> str:
    """A list as a table, how far it is above it; legible without its style."""
    if not todos:
        return "<p>The list is empty.</p>"
    rows = (
        (str(t.get("id", "")), clean_line(t["content"], MAX_ITEM), _format_status(t))
        for t in redact_json(todos)
    )
    return f"<p>{bar}{formatting.format_progress(todos)}</p>\n{html_table(('id', 'item', 'status'), rows)}"


def render_list_text(todos: Sequence[Todo]) -> str:
    """A list as lines."""
    if not todos:
        return "The list is empty."
    rows = ({"id": "-", **todo} for todo in todos)
    return "\n".join(
        [
            *(formatting.format_item(cast(Todo, row)) for row in rows),
            f"list: {formatting.format_progress(todos)}",
        ]
    )


def _format_status(todo: Todo) -> str:
    """A status by its sign and its word, and why an item is held or what shows that it is done."""
    told = f"{formatting.SIGNS.get(todo['status'], '?')} {todo['status'].replace('_', ' ')}"
    why = todo.get("reason") or todo.get("evidence")
    return f"{told}: {clean_line(str(why), MAX_ITEM)}" if why else told


def make_paragraph(text: str) -> str:
    """A paragraph of text."""
    return f"<p>{escape_html(strip_controls(text))}</p>"


def make_preformatted(text: str) -> str:
    """Lines of text as they are, broken where the page is too narrow."""
    return f'<pre style="white-space:pre-wrap">{escape_html(strip_controls(text))}</pre>'
