"""Handoff: leaves for the parent graph."""

from typing import Any

from langgraph.types import Command, Send

from wakeloop.stream import Session


def build_handoff(state: Any, session: Session) -> Command[Any]:
    """Build the command that follows a tool's handoff to the parent and takes this run's state along.

    A tool's own update wins over the run's messages, list and session.
    """
    goto: list[Any] = []
    update = {"messages": list(state["messages"]), "todos": list(state["todos"]), "todo_session": session}
    for entry in state.get("todo_handoff") or ():
        for target in entry["goto"]:
            goto.append(Send(target["node"], target["arg"]) if "arg" in target else target["node"])
        update |= entry["update"]
    return Command(graph=Command.PARENT, goto=goto, update=update)
