"""The graph without a model: reads, edits, its picture."""

import webbrowser
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables import Runnable
from langgraph.checkpoint.base import BaseCheckpointSaver

from wakeloop.agent import create_todo_agent
from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.atomic_write import STDOUT, write_atomically
from wakeloop.cli.execution import Graph
from wakeloop.cli.failures import usage_error
from wakeloop.cli.spec_builder import settings_from_spec
from wakeloop.text.drawing import draw_svg, draw_text, graph_edges

SUFFIXES = (".svg", ".mmd", ".txt")


class NoModel(BaseChatModel):
    """Stands where a graph needs a model and is only looked at."""

    @property
    def _llm_type(self) -> str:
        return "wakeloop-unasked"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Runnable[Any, AIMessage]:  # noqa: ARG002 - the interface's
        """Take any tools."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        raise NotImplementedError("This graph is only looked at.")


def build_offline_graph(
    saver: BaseCheckpointSaver[Any] | None = None, spec: AgentSpec | None = None
) -> Graph:
    """The graph without tools and without a model: for states, edits and the picture.

    Where a list is edited, the `spec` of its thread tells of its numbers. Nothing is asked, nothing costs.
    """
    settings = settings_from_spec(spec).model_copy(update={"max_cost": None}) if spec else None
    return create_todo_agent(NoModel(), settings=settings or "wakeloop", checkpointer=saver)


def render_graph(kind: str = ".mmd") -> str:
    """The graph as Mermaid text, as an SVG (`.svg`) or as plain text (`.txt`)."""
    graph = build_offline_graph()
    there = graph.get_graph()
    if kind == ".svg":
        return draw_svg(graph.get_name(), there.nodes, graph_edges(there)) + "\n"
    return (
        "\n".join(draw_text([*there.nodes], graph_edges(there))) + "\n"
        if kind == ".txt"
        else there.draw_mermaid()
    )


def draw_graph(out: Path | None, *, force: bool = False, ascii_: bool = False, shown: bool = False) -> str:
    """The graph as text to print; or where it was written, as the file's name ends, and shown."""
    if out is None and shown:
        out = Path(mkdtemp(prefix="wakeloop-")) / "graph.svg"
    if out is None or (out == STDOUT and not shown):
        return render_graph(".txt" if ascii_ else ".mmd")
    if out.suffix not in ((".txt",) if ascii_ else SUFFIXES):
        kinds, name = (".txt", f"{out.stem}.txt") if ascii_ else (".svg, .mmd or .txt", f"{out.stem}.svg")
        raise usage_error(f"The picture is made as {kinds}: name the file {name}, not {out.name!r}.")
    told = " ".join(write_atomically(render_graph(out.suffix), out, force=force))
    if shown and not webbrowser.open(out.resolve().as_uri()):
        told += " (no browser was found)"
    return told
