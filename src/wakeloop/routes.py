"""Routers: from the state to the word on an edge."""

from collections.abc import Collection, Sequence
from typing import Any, Literal

from langgraph.types import Send

from wakeloop.loop.approval import runs_call
from wakeloop.loop.ledger import Ledger, read_notes
from wakeloop.loop.replies import add_base, find_external_calls, has_undecided_calls, is_put_together
from wakeloop.model.tool_results import find_calls_to_send
from wakeloop.state import Notes, NotesAndReply, ReviewedNotes, RoundNotes


def after_activate(state: Notes) -> Literal["something to answer", "nothing to answer"]:
    """Ask the model, or end at once if nothing came in and nothing is open."""
    return "nothing to answer" if (state.get("todo_ledger") or {}).get("unasked") else "something to answer"


def after_call_model(state: NotesAndReply, todo_tools: Collection[str] = ()) -> list[Send | str]:
    """Send each other call on its own and the todo calls together; without calls, rule on the turn's end."""
    notes = state.get("todo_ledger") or {}
    messages = state.get("messages") or ()
    calls = find_calls_to_send(notes, messages, todo_tools)
    if not calls:  # also notes of a round, but no calls: edited by hand
        return ["finalization_guard"]
    outside = find_external_calls(notes, calls)
    todo = ["validate_todos"] if len(outside) < len(calls) else []
    return [*([] if "plan" in notes else send_calls(outside)), *todo]


def send_calls(calls: Sequence[dict[str, Any]]) -> list[Send]:
    """Send each call on its own, but those that a person decides together to one node."""
    together: list[dict[str, Any]] = []
    sent: list[Send] = []
    for call in calls:  # results are stored in the order in which their nodes are sent to
        if not is_put_together(call):
            sent.append(Send("run_tools", call))
            continue
        if not together:
            sent.append(Send("review_calls", {"calls": together}))
        together.append(call)
    return sent


def after_todos(state: RoundNotes) -> list[Send | str]:
    """Ask for approval of a verified plan, run the calls that waited for it, or continue."""
    notes = read_notes(state)
    if notes.get("held"):
        return [*send_calls(add_base(notes["held"], notes))]
    undecided = "plan" not in notes and has_undecided_calls(notes, state.get("todo_decided") or ())
    word = None if undecided else after_round(notes)
    if notes.get("plan") == "judged" or word == "items to judge":
        return ["plan or items to judge"]
    return [] if word is None else [word]


def after_tools(state: RoundNotes) -> list[str]:
    """Continue with the turn, or leave that to the calls that a person still has to decide."""
    notes = read_notes(state)
    undecided = has_undecided_calls(notes, state.get("todo_decided") or ())
    return [] if undecided else [after_round(notes)]


def after_review(state: ReviewedNotes) -> list[Send | str]:
    """Run the calls that a person approved, or continue."""
    notes, decided = read_notes(state), state.get("todo_decided") or ()
    approved = add_base([call for call in decided if runs_call(call["decision"])], notes, state.get("todos"))
    return [Send("run_tools", call) for call in approved] or [after_round(notes)]


def after_round(notes: Ledger) -> Literal["items to judge", "reminder due", "continue", "run ends"]:
    """Put open items to the verifier where that is wanted, or continue with the turn.

    The notes are those of the reply, so every branch of a superstep says the same.
    """
    if "nag" not in notes or notes.get("end"):
        return "run ends"
    if notes.get("check"):
        return "items to judge"
    return "reminder due" if notes["nag"] else "continue"


def after_guard(state: Notes) -> Literal["open, within budget", "ask again", "stop"]:
    """THE WAKE LOOP: open items within the budget wake; a retry or a correction asks; else the run stops."""
    match (state.get("todo_ledger") or {}).get("ruling"):
        case "wake":
            return "open, within budget"
        case "correct" | "explain" | "report" | "format" | "retry" | "ask" | "audit" | "steer":
            return "ask again"
        case _:
            return "stop"
