"""The picture: nodes, edges, the words on the edges."""

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from langgraph.graph import END, START, StateGraph

from wakeloop import routes
from wakeloop.checks.checked_graph import CheckedGraph
from wakeloop.platform.runnables import Node, Router
from wakeloop.platform.saver_aware_graph import SaverAwareGraph
from wakeloop.state import TEXTLESS_CHANNELS

AFTER_ROUND: dict[Hashable, str] = {
    "reminder due": "nag",
    "continue": "call_model",
    "run ends": "finalization_guard",
}
AFTER_TOOLS: dict[Hashable, str] = {**AFTER_ROUND, "items to judge": "validate_todos"}
AFTER_TODOS: dict[Hashable, str] = {
    **AFTER_ROUND,
    "plan or items to judge": "validate_todos",
    "plan approved": "run_tools",
    "calls need approval": "review_calls",
}
AFTER_REVIEW: dict[Hashable, str] = {**AFTER_TOOLS, "calls approved": "run_tools"}
CALL_NODES = ("run_tools", "review_calls")  # what they get is sent to them


@dataclass(frozen=True)
class Schemas:
    """What travels: the state, what nodes read of it, input and output, the caller's context, todo calls."""

    state: type[Any]
    nodes: type[Any]
    input: type[Any]
    output: type[Any]
    context: type[Any] | None = None
    todo_tools: Collection[str] = ()


def draw_graph(nodes: Mapping[str, Node], schemas: Schemas) -> StateGraph[Any, Any, Any, Any]:
    """Draw the graph that stays awake. A round takes two supersteps."""
    graph = SaverAwareGraph(
        schemas.state, schemas.context, input_schema=schemas.input, output_schema=schemas.output
    )
    graph.compiles_to, graph.textless = CheckedGraph, TEXTLESS_CHANNELS
    for name, node in nodes.items():
        graph.add_node(name, node, input_schema=schemas.state if name in CALL_NODES else schemas.nodes)
    graph.add_edge(START, "activate")
    graph.add_conditional_edges(
        "activate",
        Router(routes.after_activate),
        {"something to answer": "call_model", "nothing to answer": "finalization_guard"},
    )
    graph.add_conditional_edges(
        "call_model",
        Router(routes.after_call_model, todo_tools=schemas.todo_tools),
        ["run_tools", "review_calls", "validate_todos", "finalization_guard"],
    )
    graph.add_conditional_edges("run_tools", Router(routes.after_tools), AFTER_TOOLS)
    graph.add_conditional_edges("review_calls", Router(routes.after_review), AFTER_REVIEW)
    graph.add_conditional_edges("validate_todos", Router(routes.after_todos), AFTER_TODOS)
    graph.add_edge("nag", "call_model")
    graph.add_edge("wake", "call_model")
    graph.add_conditional_edges(
        "finalization_guard",
        Router(routes.after_guard),
        {"open, within budget": "wake", "ask again": "call_model", "stop": END},
    )
    return graph
