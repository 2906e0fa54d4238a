"""The end of a turn as a case, and of a run as a session."""

from collections.abc import Collection, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage

from wakeloop.loop.case import Case, choose_costs
from wakeloop.loop.gates import ENDINGS
from wakeloop.loop.goal import is_unmet
from wakeloop.loop.item_notes import find_suspects, has_given_up, has_verified_item
from wakeloop.loop.ledger import RUN_KEYS, Ledger, drop_keys
from wakeloop.loop.progress import count_settled, is_repeated, judge_wake
from wakeloop.loop.replies import take_bad_reply_end
from wakeloop.loop.silences import find_awaited
from wakeloop.loop.spending import count_earned_wakes, find_spent_budget, note_list, report_spent
from wakeloop.loop.waits import describe_waiting
from wakeloop.settings import LoopSettings
from wakeloop.stream import EndReason, Session, State
from wakeloop.todos.items import Todo, count_items, count_open

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


def choose_state(reason: EndReason, open_count: int) -> State:
    """Return the state in which an ending leaves the session. An unmet goal counts as open."""
    state = ENDINGS[reason].state
    return "dormant" if state == "idle" and not open_count else state


def build_session(
    notes: Ledger,
    todos: Sequence[Todo],
    settings: LoopSettings,
    reason: EndReason,
    waiting_on: Sequence[Any] = (),
    *,
    needs_proof: bool = False,
) -> Session:
    """Return the session of a run that ends for this reason.

    `waiting_on` is the channel's value. With `needs_proof` the session says whether an item of the list
    passed the verifier.
    """
    counts = count_items(todos)
    session: Session = {
        "state": choose_state(reason, counts["open"] + is_unmet(notes)),
        "reason": reason,
        **counts,  # type: ignore[typeddict-item]
        "wakes": notes.get("wake_cycles", 0),
        "budget": settings.max_wake_cycles + count_earned_wakes(notes, settings),
        "list": notes.get("writes", 0),
        "spent": report_spent(notes),
    }
    if needs_proof:
        session["verified"] = has_verified_item(notes, todos)
    if "missing" in notes:
        session["missing"] = notes["missing"]
    if session["state"] == "waiting":
        session |= describe_waiting(waiting_on)  # type: ignore[typeddict-item]
    return session


def waits_for_limit(notes: Ledger) -> bool:
    """Tell whether the run ends because its request was refused for a limit (rule 29)."""
    return notes.get("end") == "waiting"


def drop_run_notes(notes: Ledger, messages: Sequence[BaseMessage] = ()) -> Ledger:
    """Return what the end of a run leaves of its notes, and the id of the last message.

    By that id the next run sees whether the conversation has grown since. Where a request was refused for a
    limit, they stay: the same request is made again later.
    """
    rest: Ledger = {**notes} if waits_for_limit(notes) else drop_keys(notes, RUN_KEYS)
    if messages:
        rest["tail"] = messages[-1].id or ""
    return rest
