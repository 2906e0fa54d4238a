"""The forks: state to the next node; one screen."""

from typing import Literal

from langgraph.types import Send

from wakeloop.loop.soundness import check_ledger
from wakeloop.state import Notes, NotesAndReply


def after_activate(state: Notes) -> Literal["call_model", "finalization_guard"]:
    """Ask the model, or end at once where nothing asks for it."""
    return "finalization_guard" if state["todo_ledger"]["next"] == "finalization_guard" else "call_model"


def after_call_model(state: NotesAndReply) -> list[Send | str]:
    """Send each external call on its own, the todo calls together; or rule on the turn's end."""
    ledger = state["todo_ledger"]
    if ledger["next"] != "round":
        return ["finalization_guard"]
    todo, faults = ledger.get("todo_calls", ()), ledger.get("faults", {})
    sends: list[Send | str] = []
    for call in state["messages"][-1].tool_calls:  # type: ignore[union-attr]
        if call["id"] not in todo:
            fault = faults.get(call["id"] or "")
            sends.append(Send("run_tools", {**call, "fault": fault} if fault else call))
    return [*sends, "validate_todos"] if todo else sends


def after_round(state: Notes) -> Literal["nag", "call_model", "finalization_guard"]:
    """Go where `call_model` said before the round: every branch of a superstep says the same."""
    check_ledger(ledger := state["todo_ledger"])  # stored, while a call of the round waited
    return ledger.get("after", "finalization_guard")  # type: ignore[return-value]


def after_guard(state: Notes) -> Literal["wake", "call_model", "__end__"]:
    """Wake, ask once more, or let the run end."""
    ledger = state.get("todo_ledger") or {}
    return ledger.get("next", "__end__")  # type: ignore[return-value]  # none on a thread edited by hand
