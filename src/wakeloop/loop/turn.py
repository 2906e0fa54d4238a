"""The end of a turn, as the case of a ruling."""

from collections.abc import Collection, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage

from wakeloop.loop.audit import find_suspects
from wakeloop.loop.case import Case, choose_costs
from wakeloop.loop.earned_wakes import count_earned_wakes, note_list
from wakeloop.loop.ledger import Ledger
from wakeloop.loop.list_writes import has_given_up
from wakeloop.loop.progress import count_settled, is_repeated, judge_wake
from wakeloop.loop.replies import take_bad_reply_end
from wakeloop.loop.silences import find_awaited
from wakeloop.loop.spending import find_spent_budget
from wakeloop.settings import LoopSettings
from wakeloop.todos.items import Todo, count_open

GUARD = "open_todos"  # the name of the guard in the ledger
ENDED_WITHOUT_REPLY = frozenset(("again", "asking", "end", "unasked"))  # notes that say why no reply came


def build_case(
    notes: Ledger,
    messages: Sequence[AnyMessage],
    todos: Sequence[Todo],
    settings: LoopSettings,
    *,
    subagents: bool = False,
    **more: Any,
) -> Case:
    """Count on the notes what a turn achieved, and return what the ruling reads.

    `subagents` says that one is at work. `more` is what only the graph knows: `goal`, `waiting`, `owed`,
    `drained`, `steps_left`, `unformatted`, and `costs` if they are not the graph's own.
    """
    bad_reply_end = take_bad_reply_end(notes, settings, count_open(todos))
    again, asking = notes.get("again"), notes.get("asking")
    if not again:
        notes.pop("emptied", None)  # the turn is over
    if not again and asking != "format":
        judge_wake(notes, todos)
    note_list(notes, todos, settings)
    if peak := max(notes.get("peak", 0), count_settled(todos)):
        notes["peak"] = peak
    return Case(
        open=count_open(todos),
        judged=notes.get("judged", False),
        wrote=notes.get("wrote", False),
        gave_up=has_given_up(notes, todos),
        settings=settings,
        wakes=notes.get("wake_cycles", 0),
        earned=count_earned_wakes(notes, settings),
        idle_wakes=notes.get("idle_wakes", 0),
        repeated=settings.stop_on_repeat and is_repeated(notes, messages, todos),
        end=notes.get("end"),
        again=again,
        bad_reply_end=bad_reply_end,
        asking=asking,
        called_by=notes.get("called_by"),
        retries=notes.get("todo_guard_retries", {}).get(GUARD, 0),
        suppressed=notes.get("todo_guard_suppressed", False),
        spent_budget=find_spent_budget(notes, settings),
        reported=notes.get("reported", False),
        awaited=find_awaited(notes, messages, settings, subagents=subagents),
        lacks_list=never_had_list(notes),
        suspects=len(find_suspects(notes, todos, settings)),
        **{"costs": choose_costs(settings), **more},
    )


def never_had_list(notes: Ledger) -> bool:
    """Tell whether tools ran, the thread never had a list, and nobody asked about that yet."""
    had_one = notes.get("listed") or notes.get("next_id", 1) > 1
    return notes.get("unlisted") == "ran" and not had_one


def is_unanswered(notes: Ledger, messages: Sequence[AnyMessage]) -> bool:
    """Tell whether no reply has ended the turn, since somebody wrote messages in the model's place.

    `update_state` does that in a fork: it changes the result of a call, or writes a reply with other calls.
    """
    if notes.keys() & ENDED_WITHOUT_REPLY or not messages:
        return False
    last = messages[-1]
    return not isinstance(last, AIMessage) or bool(last.tool_calls)


def find_written_reply(
    notes: Ledger, messages: Sequence[AnyMessage], todo_tools: Collection[str]
) -> AIMessage | None:
    """Return a reply with calls that somebody wrote in the model's place: its calls are not noted."""
    last = messages[-1] if messages else None
    if not isinstance(last, AIMessage) or not last.tool_calls or notes.keys() & ENDED_WITHOUT_REPLY:
        return None
    noted = {*notes.get("todo_calls", ()), *notes.get("faults", ())}
    written = [call for call in last.tool_calls if call["name"] in todo_tools and call["id"] not in noted]
    return last if written or "nag" not in notes else None
