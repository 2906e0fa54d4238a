"""The graph without a model: read, edit, draw."""

import webbrowser
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from wakeloop.agent import create_todo_agent
from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.atomic_write import STDOUT, write_atomically
from wakeloop.cli.failures import usage_error
from wakeloop.cli.spec_builder import settings_from_spec
from wakeloop.testing import ScriptedModel
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
    if out is None or (out == STDOUT and not shown):
        return render_graph(".txt" if ascii_ else ".mmd")
    suffixes = (".txt",) if ascii_ else SUFFIXES
    if out.suffix not in suffixes:
        raise usage_error(
            f"Cannot draw the graph as {out.name!r}. Name the file like {out.stem}{suffixes[0]}; "
            f"suffixes: {', '.join(suffixes)}."
        )
    name = " ".join(write_atomically(render_graph(out.suffix), out, force=force))
    if shown and not webbrowser.open(out.resolve().as_uri()):
        name += " (no browser found)"
    return name
