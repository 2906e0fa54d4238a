"""The handwritten job: a loop, a graph of two nodes, and the floor of any graph."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from parts.job import GO, Costless, work

Todos = list[dict[str, Any]]
Graph = Any  # a compiled graph, of whatever state


def apply(todos: Todos, call: Any) -> tuple[Todos, str]:
    """Return the list of the handwritten agents, with no more than the job needs."""
    args = call["args"]
    if call["name"] == "todo_write":
        todos = [{"id": i, "content": text, "status": "pending"} for i, text in enumerate(args["items"], 1)]
        return todos, f"Stored {len(todos)} items."
    if call["name"] == "todo_update":
        todos = [{**todo, "status": "completed"} if todo["id"] == args["id"] else todo for todo in todos]
        return todos, f"[{args['id']}] done."
    return todos, work(**args)


class WhileLoop:
    """No graph and no state beyond a list of messages; called like a graph."""

    def __init__(self, model: Costless, saver: Any = None) -> None:
        self.model = model

    def invoke(self, given: Any, config: Any = None, **options: Any) -> dict[str, Any]:
        messages: list[Any] = list(given["messages"])
        todos: Todos = []
        while True:
            reply = self.model.invoke(messages)
            messages.append(reply)
            if not reply.tool_calls:
                return {"messages": messages, "todos": todos}
            for call in reply.tool_calls:
                todos, text = apply(todos, call)
                messages.append(ToolMessage(text, tool_call_id=call["id"]))


def awaited(function: Callable[[Any], Any]) -> Callable[[Any], Awaitable[Any]]:
    """Return the same for `ainvoke`, which would send a plain function to a thread each time."""

    async def door(state: Any) -> Any:
        return function(state)

    return door


class Hand(TypedDict):
    """The state of a handwritten agent."""

    messages: Annotated[list[AnyMessage], add_messages]
    todos: Todos


def hand(model: Costless, saver: Any, *, awaits: bool = False) -> Graph:
    """Build a model node, a tools node, and a router between them."""

    def call_model(state: Hand) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    async def acall_model(state: Hand) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    def run_tools(state: Hand) -> dict[str, Any]:
        todos, results = state.get("todos", []), []
        for call in state["messages"][-1].tool_calls:
            todos, text = apply(todos, call)
            results.append(ToolMessage(text, tool_call_id=call["id"]))
        return {"messages": results, "todos": todos}

    def fork(state: Hand) -> str:
        return "run_tools" if state["messages"][-1].tool_calls else END

    door: Any = awaited if awaits else lambda function: function
    builder = StateGraph(Hand)
    builder.add_node("call_model", acall_model if awaits else call_model)
    builder.add_node("run_tools", door(run_tools))
    builder.add_edge(START, "call_model")
    builder.add_conditional_edges("call_model", door(fork), ["run_tools", END])
    builder.add_edge("run_tools", "call_model")
    return builder.compile(checkpointer=saver)


class Nothing(TypedDict):
    """A state that carries nothing."""

    begun: bool


def floor(model: Costless, saver: Any, *, awaits: bool = False) -> Graph:
    """Build a graph of two empty supersteps per step; `model.invoke` gets a history that no channel holds."""
    history: list[Any] = []

    def begin(state: Nothing) -> None:
        if not state.get("begun"):
            history[:] = [HumanMessage(GO)]

    def ask(state: Nothing) -> dict[str, Any]:
        begin(state)
        history.append(model.invoke(history))
        return {"begun": True}

    async def aask(state: Nothing) -> dict[str, Any]:
        begin(state)
        history.append(await model.ainvoke(history))
        return {"begun": True}

    def idle(state: Nothing) -> dict[str, Any]:
        history.extend(ToolMessage("ok", tool_call_id=call["id"]) for call in history[-1].tool_calls)
        return {"begun": True}

    def fork(state: Nothing) -> str:
        return "idle" if history[-1].tool_calls else END

    door: Any = awaited if awaits else lambda function: function
    builder = StateGraph(Nothing)
    builder.add_node("ask", aask if awaits else ask)
    builder.add_node("idle", door(idle))
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("ask", door(fork), ["idle", END])
    builder.add_edge("idle", "ask")
    return builder.compile(checkpointer=saver)
