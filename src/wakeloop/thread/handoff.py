"""How a run ends by a tool's way to the parent."""

from typing import Any

from langgraph.types import Command, Send

from wakeloop.stream import Session


def build_handoff(state: Any, session: Session) -> Command[Any]:
    """Send a tool's way to the parent with all of this run: history, siblings, list, session."""
    goto: list[Any] = []
    update: dict[str, Any] = {}
    for entry in state.get("todo_handoff") or ():
        goto += [Send(g["node"], g["arg"]) if "arg" in g else g["node"] for g in entry["goto"]]
        update |= entry["update"]
    run = {"messages": list(state["messages"]), "todos": list(state["todos"]), "todo_session": session}
    return Command(graph=Command.PARENT, goto=goto, update={**run, **update})
