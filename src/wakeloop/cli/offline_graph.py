"""The graph without a model: read, edit, draw, report."""

import re
import webbrowser
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from wakeloop.agent import create_todo_agent
from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.failures import CommandError, redact, usage_error
from wakeloop.cli.spec_builder import RunSpec, settings_from_spec
from wakeloop.cli.store import DatabaseFile, open_to_read
from wakeloop.cli.streams import DASH, write_atomically
from wakeloop.cli.thread_lookup import require_thread
from wakeloop.demo.audit import PAGE
from wakeloop.display.report import thread_report
from wakeloop.display.screen import Line
from wakeloop.display.terminal_output import clean_line
from wakeloop.testing import ScriptedModel
from wakeloop.text.characters import quote_path
from wakeloop.text.drawing import draw_svg, draw_text, graph_edges
from wakeloop.thread.edits import Graph

SUFFIXES = (".svg", ".mmd", ".txt")


def build_offline_graph(
    saver: BaseCheckpointSaver[Any] | None = None,
    spec: AgentSpec | None = None,
    store: BaseStore | None = None,
) -> Graph:
    """Build the graph without tools or a model, to read and edit threads and to draw it.

    To edit a list, pass the `spec` of its thread: the limits of the list come from there.
    """
    settings = settings_from_spec(spec).model_copy(update={"max_cost": None}) if spec else None
    return create_todo_agent(
        ScriptedModel(), settings=settings or "wakeloop", checkpointer=saver, store=store
    )


def render_graph(kind: str = ".mmd") -> str:
    """Return the graph as Mermaid (`.mmd`), SVG (`.svg`) or plain text (`.txt`)."""
    graph = build_offline_graph()
    drawing = graph.get_graph()
    if kind == ".svg":
        return draw_svg(graph.get_name(), drawing.nodes, graph_edges(drawing)) + "\n"
    if kind == ".txt":
        return "\n".join(draw_text([*drawing.nodes], graph_edges(drawing))) + "\n"
    return drawing.draw_mermaid()


def draw_graph(out: Path | None, *, force: bool = False, ascii_: bool = False, shown: bool = False) -> str:
    """Return the graph to print; or write it to `out`, in the format of its suffix, and return its name."""
    if out is None and shown:
        out = Path(mkdtemp(prefix="wakeloop-")) / "graph.svg"
    if out is None or (out == DASH and not shown):
        return render_graph(".txt" if ascii_ else ".mmd")
    if out.suffix not in SUFFIXES:
        raise usage_error(f"Cannot draw the graph as {out.name!r}. Suffixes: {', '.join(SUFFIXES)}.")
    name = " ".join(write_atomically(render_graph(out.suffix), out, force=force))
    if shown and not webbrowser.open(out.resolve().as_uri()):
        name += " (no browser found)"
    return name


# -- thread reports: HTML pages in files -----------------------------------------------------------------


def write_report(database: DatabaseFile, thread: str | None, out: Path | None, *, force: bool) -> list[str]:
    """Write the report of a thread (default: the latest) and return the lines to print."""
    with open_to_read(database) as store:
        known = require_thread(store, thread)
        text = render_report(build_offline_graph(store.saver), known.id)
    file = out or Path(f"report-{re.sub(r'[^A-Za-z0-9._-]+', '-', known.id)}.html")
    return write_atomically(text, file, force=force)


def render_report(graph: Graph, thread: str) -> str:
    """Render the report of a thread, without the secrets of the environment."""
    return thread_report(graph, {"configurable": {"thread_id": thread}}, hide=redact)


def write_demo_report(run: RunSpec, agent: Graph) -> Line:
    """Write the report of a demo into its folder, and return the line that says where it is."""
    file, here = Path(run.spec.root) / PAGE, Path.cwd()
    file = file.relative_to(here) if file.is_relative_to(here) else file
    try:
        write_atomically(render_report(agent, run.thread), file, force=True)
    except CommandError as error:
        return Line("error", str(error))
    return Line("note", f"Report: {quote_path(clean_line(str(file)))}")
