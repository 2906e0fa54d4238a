"""The picture: nodes and edges, nothing else."""

from dataclasses import dataclass
from typing import Any

from langgraph.graph import END, START, StateGraph

from wakeloop.platform.compiling import TodoGraph
from wakeloop.platform.runnables import Fork, Node
from wakeloop.routes import after_activate, after_call_model, after_guard, after_round


@dataclass(frozen=True)
class Nodes:
    """The seven nodes of a graph, made for one agent."""

    activate: Node
    call_model: Node
    run_tools: Node
    validate_todos: Node
    nag: Node
    finalization_guard: Node
    wake: Node


@dataclass(frozen=True)
class Schemas:
    """What travels: the state, what nodes read of it, what comes in and goes out, the caller's context."""

    state: type[Any]
    nodes: type[Any]
    input: type[Any]
    output: type[Any]
    context: type[Any] | None = None


def draw(nodes: Nodes, schemas: Schemas) -> StateGraph[Any, Any, Any, Any]:
    """Draw the graph that stays awake: two supersteps a round."""
    graph = TodoGraph(
        schemas.state, schemas.context, input_schema=schemas.input, output_schema=schemas.output
    )
    graph.add_node("activate", nodes.activate, input_schema=schemas.nodes)
    graph.add_node("call_model", nodes.call_model, input_schema=schemas.nodes)
    graph.add_node("run_tools", nodes.run_tools, input_schema=schemas.state)
    graph.add_node("validate_todos", nodes.validate_todos, input_schema=schemas.nodes)
    graph.add_node("nag", nodes.nag, input_schema=schemas.nodes)
    graph.add_node("finalization_guard", nodes.finalization_guard, input_schema=schemas.nodes)
    graph.add_node("wake", nodes.wake, input_schema=schemas.nodes)
    graph.add_edge(START, "activate")
    graph.add_conditional_edges("activate", Fork(after_activate), ["call_model", "finalization_guard"])
    graph.add_conditional_edges(
        "call_model", Fork(after_call_model), ["run_tools", "validate_todos", "finalization_guard"]
    )
    graph.add_conditional_edges("run_tools", Fork(after_round), ["nag", "call_model", "finalization_guard"])
    graph.add_conditional_edges(
        "validate_todos", Fork(after_round), ["nag", "call_model", "finalization_guard"]
    )
    graph.add_edge("nag", "call_model")
    graph.add_edge("wake", "call_model")
    graph.add_conditional_edges("finalization_guard", Fork(after_guard), ["wake", "call_model", END])
    return graph
