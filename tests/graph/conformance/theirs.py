"""A graph of LangChain's kind: it keeps a plain list of `{content, status}` and writes it whole."""

from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from stage import CONFIG

ROWS = [{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"}]
DONE = [{"content": "a", "status": "completed"}, {"content": "b", "status": "completed"}]


class Theirs(TypedDict):
    """The state as such agents keep it."""

    messages: Annotated[list[AnyMessage], add_messages]
    todos: list[dict[str, str]]


def begin(saver: Any, rows: list[dict[str, str]], *more: Any) -> Any:
    """Run a graph of the other kind on the thread, to its end."""

    def agent(state: Theirs) -> dict[str, Any]:
        call = {"name": "write_todos", "args": {"todos": rows}, "id": "call_theirs", "type": "tool_call"}
        return {
            "messages": [
                AIMessage("", tool_calls=[call]),
                ToolMessage(f"Updated todo list to {rows}", tool_call_id="call_theirs", name="write_todos"),
                *(more or [AIMessage("I stop here.")]),
            ],
            "todos": rows,
        }

    builder = StateGraph(Theirs)
    builder.add_node("agent", agent)
    builder.add_edge(START, "agent")
    builder.add_edge("agent", END)
    graph = builder.compile(checkpointer=saver)
    graph.invoke({"messages": [HumanMessage("go")]}, CONFIG)
    return graph


def plain(todos: Any) -> list[dict[str, str]]:
    """Return what their interfaces read of a list."""
    return [{"content": todo["content"], "status": todo["status"]} for todo in todos]
