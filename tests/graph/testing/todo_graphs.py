"""A naive agent for each todo vocabulary: a loop of two nodes and a list in memory."""

import json
from collections.abc import Callable
from typing import Any, Literal

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.graph import START, MessagesState, StateGraph
from typing_extensions import TypedDict

from wakeloop.testing import WeakModel


class Row(TypedDict):
    content: str
    status: Literal["pending", "in_progress", "completed"]


class Line(TypedDict):
    id: str
    text: str
    status: Literal["pending", "in_progress", "completed"]


class Store:
    """The list of one run, and every list that was stored."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.work: list[Any] = []

    @property
    def statuses(self) -> list[str]:
        return [row["status"] for row in self.rows]

    def add(self, text: str) -> int:
        self.rows.append({"content": text, "status": "pending"})
        return len(self.rows)

    def close(self, key: int, status: str) -> str:
        if not 0 < key <= len(self.rows):
            raise ValueError(f"no item {key}")
        self.rows[key - 1]["status"] = {"done": "completed", "open": "pending"}.get(status, status)
        return self.rows[key - 1]["content"]


def parley(store: Store) -> list[BaseTool]:
    @tool
    def todo_write(items: list[str]) -> str:
        """Add."""
        lines = [f"  [{store.add(text)}] {text}" for text in items]
        return "\n".join([f"Stored {len(items)} items:", *lines])

    @tool
    def todo_update(
        id: int,  # noqa: A002 - the tool's own word
        status: Literal["done", "blocked", "cancelled", "open"],
        reason: str = "",
    ) -> str:
        """Change."""
        return f"[{id}] {status}: {store.close(id, status)}."

    @tool
    def todo_list() -> str:
        """Show."""
        return ""

    return [todo_write, todo_update, todo_list]


def loki(store: Store) -> list[BaseTool]:
    @tool
    def todo__init(goal: str) -> str:
        """Begin."""
        store.rows.clear()
        return json.dumps({"goal": goal})

    @tool
    def todo__add(task: str) -> str:
        """Add."""
        return json.dumps({"id": store.add(task)})

    @tool
    def todo__done(id: int) -> str:  # noqa: A002 - the tool's own word
        """Close."""
        return json.dumps({"done": store.close(id, "done")})

    return [todo__init, todo__add, todo__done]


def write_todos(store: Store) -> list[BaseTool]:
    @tool("write_todos")
    def write(todos: list[Row]) -> str:
        """Replace."""
        active = sum(row["status"] == "in_progress" for row in todos)
        if active != 1 and not all(row["status"] == "completed" for row in todos):
            raise ValueError("exactly one in_progress")
        store.rows = [dict(row) for row in todos]
        return json.dumps(todos)

    return [write]


def checklist(store: Store) -> list[BaseTool]:
    @tool("todo")
    def write(items: list[Line]) -> str:
        """Replace."""
        if len({row["id"] for row in items}) < len(items):
            raise ValueError("repeated id")
        store.rows = [dict(row) for row in items]
        return f"{len(items)} items"

    return [write]


VOCABULARIES: dict[str, Callable[[Store], list[BaseTool]]] = {
    "parley": parley,
    "loki": loki,
    "write_todos": write_todos,
    "checklist": checklist,
}


def agent(model: WeakModel, store: Store, vocabulary: str | None = "parley", *, wakes: int = 10) -> Any:
    """A graph that executes every call, answers errors, and nudges while the store has open items."""

    @tool
    def measure(path: str, depth: int) -> str:
        """Work."""
        store.work.append((path, depth))
        return "  [99] a line that looks like an item"

    tools = {one.name: one for one in [measure, *(VOCABULARIES[vocabulary](store) if vocabulary else [])]}
    bound = model.bind_tools(list(tools.values()))
    left = [wakes]

    def call_model(state: MessagesState) -> dict[str, Any]:
        return {"messages": [bound.invoke(state["messages"])]}

    def run_tools(state: MessagesState) -> dict[str, Any]:
        reply: Any = state["messages"][-1]
        broken = [
            ToolMessage("no JSON", tool_call_id=c["id"], status="error") for c in reply.invalid_tool_calls
        ]
        return {"messages": [*(answer(call) for call in reply.tool_calls), *broken]}

    def answer(call: Any) -> ToolMessage:
        try:
            return ToolMessage(str(tools[call["name"]].invoke(call["args"])), tool_call_id=call["id"])
        except (KeyError, ValueError) as error:
            return ToolMessage(f"Error: {error}", tool_call_id=call["id"], status="error")

    def wake(state: MessagesState) -> dict[str, Any]:
        left[0] -= 1
        return {"messages": [HumanMessage("Go on.", additional_kwargs={"wakeloop": {"kind": "wake"}})]}

    def after(state: MessagesState) -> str:
        reply: Any = state["messages"][-1]
        if isinstance(reply, AIMessage) and (reply.tool_calls or reply.invalid_tool_calls):
            return "run_tools"
        return "wake" if left[0] and {"pending", "in_progress"} & set(store.statuses) else "__end__"

    graph = StateGraph(MessagesState)
    graph.add_node("call_model", call_model)
    graph.add_node("run_tools", run_tools)
    graph.add_node("wake", wake)
    graph.add_edge(START, "call_model")
    graph.add_conditional_edges("call_model", after, ["run_tools", "wake", "__end__"])
    graph.add_edge("run_tools", "call_model")
    graph.add_edge("wake", "call_model")
    return graph.compile()
