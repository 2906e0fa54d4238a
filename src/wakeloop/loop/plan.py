"""Approval of a plan: when and how a person is asked.

A plan is what is on the list, item by item, whatever the statuses. The setting `approve_plan` says which
plans a person approves. Until the answer is there the model waits, and so do the other calls of that round.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from wakeloop.loop.approval import PLAN_ACTION, Decision, build_approval_request, quote_words
from wakeloop.loop.ledger import Ledger
from wakeloop.settings import LoopSettings
from wakeloop.todos.items import OperationRefused, Todo, assign_ids, next_free_number, read_list
from wakeloop.todos.operations import Board, Outcome, Verdicts

PLAN_DECISIONS: Any = ("approve", "edit", "reject")


def may_need_approval(notes: Ledger, settings: LoopSettings) -> bool:
    """Tell whether a round that writes the list may need an approval; its other calls then wait."""
    if settings.approve_plan == "first":
        return not notes.get("planned", False)
    return settings.approve_plan == "changes"


def needs_approval(notes: Ledger, before: Board, after: Board) -> bool:
    """Tell whether a round's list goes to the person: its items changed, and a first list is not empty.

    The notes decide, not the settings: a build with others may be the one that takes the answer.
    """
    if notes.get("plan") not in ("due", "judged") or _item_texts(before) == _item_texts(after):
        return False
    return notes.get("plan_when") == "changes" or bool(after.todos)


def find_plan_calls(before: Board, outcomes: Sequence[Outcome]) -> list[int]:
    """Return the positions of the calls that added or dropped items, or set the goal."""
    boards = [before, *(outcome.board for outcome in outcomes)]
    plans = [(board.goal, _item_texts(board)) for board in boards]
    return [place for place in range(len(outcomes)) if plans[place] != plans[place + 1]]


def _item_texts(board: Board) -> set[tuple[str, str]]:
    return {(str(todo["id"]), todo["content"]) for todo in board.todos}


def build_plan_request(board: Board) -> dict[str, Any]:
    """Return the value of the interrupt that shows a plan: the whole list, to be read and to be edited."""
    text = ["Continue with this list?", ""]
    if board.goal:
        text.append(f"Goal: {board.goal}")
    text += map(_format_item, board.todos)
    if not board.todos:
        text.append("(an empty list)")
    todos = [dict(todo) for todo in board.todos]
    asked = build_approval_request(PLAN_ACTION, {"todos": todos}, "\n".join(text), PLAN_DECISIONS)
    if board.goal:
        asked["goal"] = board.goal
    return asked


def _format_item(todo: Todo) -> str:
    status = "" if todo["status"] == "pending" else f" ({todo['status']})"
    return f"[{todo['id']}] {todo['content']}{status}"


@dataclass(frozen=True)
class PlanRuling:
    """What a person decided about a plan: the list from now on (the earlier one, if rejected), and words."""

    kind: Literal["stands", "edited", "rejected"]
    board: Board
    words: str = ""


def rule_on_plan(decision: Decision, before: Board, after: Board) -> PlanRuling:
    """Apply a decision to a plan. Raises `OperationRefused` for an edit without a valid list.

    The list of an edit is the person's own: nothing in it is verified, and `max_items` does not limit it.
    """
    if decision.kind == "reject":
        return PlanRuling("rejected", before, quote_words(decision))
    if decision.kind == "approve":
        return PlanRuling("stands", after)
    todos, next_id = _read_edited_list(decision.args or {}, before, after)
    if todos == list(after.todos):
        return PlanRuling("stands", after)
    # the verifier's refusals are forgotten for an item whose status the person has set
    earlier = {str(todo["id"]): todo["status"] for todo in after.todos}
    refusals = dict(after.refusals)
    for todo in todos:
        if earlier.get(str(todo["id"])) != todo["status"]:
            refusals.pop(str(todo["id"]), None)
    return PlanRuling("edited", replace(after, todos=todos, next_id=next_id, refusals=refusals))


def _read_edited_list(args: Mapping[str, Any], before: Board, after: Board) -> tuple[list[Todo], int]:
    """Read the list of an edit, strings or items, in JSON or not. An item without a known id is new."""
    given = args.get("todos")
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            raise OperationRefused("todos is not valid JSON; send a list of strings or items") from None
    if not isinstance(given, list):
        raise OperationRefused("an edit needs the list as todos, a list of strings or items")
    items = [{"content": one} if isinstance(one, str) else one for one in given]
    known = {str(todo["id"]): todo["id"] for todo in (*before.todos, *after.todos)}
    listed: list[dict[str, Any]] = list(map(dict, read_list(items)))
    for item in listed:
        key = known.get(str(item.pop("id", None)))
        if key is not None:
            item["id"] = key
    return assign_ids(listed, next_free_number(after.todos, after.next_id))


def read_verdicts(notes: Ledger) -> Verdicts:
    """Return what the verifier said of a round, as it was noted."""
    return {(place, key): why or None for place, key, why in notes.get("verdicts", ())}


def note_verdicts(notes: Ledger, verdicts: Verdicts) -> Ledger:
    """Return the notes of a round whose items are verified, so that no item is verified again."""
    rows = [[place, key, why or ""] for (place, key), why in verdicts.items()]
    return {**notes, "plan": "judged", "verdicts": rows}
