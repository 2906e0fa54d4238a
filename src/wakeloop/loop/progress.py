"""Whether a wake brought the work on: by work, not by status."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2s
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage

from wakeloop.loop.ledger import Ledger
from wakeloop.text.marks import is_user_message, opens_activation, text_of
from wakeloop.todos.items import Todo, is_open

Pair = tuple[ToolCall, ToolMessage]
REMEMBERED = 64  # calls of an activation that count as seen; the oldest are forgotten
PRINT_LENGTH = (
    3  # characters of a call's print: they stand in every row; one call in 4,000 is taken for a seen one
)


def begin_measuring(notes: Ledger, todos: Sequence[Todo]) -> Ledger:
    """Return the notes at the beginning of a turn that is measured: what its progress is held against."""
    left = [todo["id"] for todo in todos if is_open(todo)]
    return {**notes, "waking": True, "worked": False, "open_at_wake": left}


def judge_wake(notes: Ledger, todos: Sequence[Todo]) -> None:
    """Count a wake whose turn has ended: among the idle ones in a row, or as the end of their row.

    A correction is none of them. Where its turn is measured and made progress, what called it has passed.
    """
    if notes.pop("waking", False):
        before, peak = notes.pop("open_at_wake", []), notes.get("peak", 0)
        if has_progressed(todos, before, peak, worked=notes.get("worked", False)):
            notes["idle_wakes"] = 0
            notes.pop("called_by", None)
        elif "called_by" not in notes:
            notes["idle_wakes"] = notes.get("idle_wakes", 0) + 1


def has_progressed(
    todos: Sequence[Todo], open_before: Collection[int | str], peak: int, *, worked: bool
) -> bool:
    """Tell whether a wake's turn brought the work on.

    Either a call not seen before succeeded (`worked`), or an item that was open when the wake began is
    settled and more are settled than ever before in this activation (`peak`).
    """
    if worked:
        return True
    settled_now = [todo["id"] for todo in todos if not is_open(todo)]
    return len(settled_now) > peak and not set(open_before).isdisjoint(settled_now)


def count_settled(todos: Sequence[Todo]) -> int:
    """Count the items that are not open."""
    return sum(not is_open(todo) for todo in todos)


def note_progress(messages: Sequence[AnyMessage], ledger: Ledger, todo_tools: Collection[str]) -> None:
    """See whether the last round's calls brought a wake anything new: successful ones not seen before.

    Nothing asks before the first wake, so until a round of it has ended nothing is noted (0.2 of the bytes of
    a row); what came before is then read off the history.
    """
    if "nag" not in ledger or not (ledger.get("waking") or "seen" in ledger):
        return
    earlier = reversed(messages)
    if made := find_last_round(earlier):
        todo = set(ledger.get("todo_calls", ()))
        calls = [(call, result.status != "error") for call, result in made if call["id"] not in todo]
        prints = {
            fingerprint_call(call["name"], call["args"]): went_well for call, went_well in reversed(calls)
        }
        before = ledger.get("seen")
        before = fingerprint_earlier_calls([*earlier][::-1], todo_tools) if before is None else before
        ledger["seen"], new = remember_prints(before, list(prints))
        if any(prints[p] for p in new):
            ledger["worked"] = True


def find_last_round(newest_first: Iterable[AnyMessage]) -> list[Pair]:
    """Return the calls of the newest round that have results, with these; an iterator goes on before it.

    A tool may add messages of its own behind its result.
    """
    results: dict[str, ToolMessage] = {}
    for message in newest_first:
        if isinstance(message, ToolMessage):
            results[message.tool_call_id] = message
        elif isinstance(message, AIMessage) and message.tool_calls:
            return [
                (call, results[key]) for call in message.tool_calls if (key := call["id"] or "") in results
            ]
    return []


def fingerprint_earlier_calls(messages: Sequence[AnyMessage], todo_tools: Collection[str]) -> str:
    """Return the prints of the newest calls of an activation outside the todo tools."""
    found: list[str] = []
    for message in reversed(messages):
        if len(found) >= REMEMBERED or is_user_message(message) or opens_activation(message):
            break
        calls = message.tool_calls if isinstance(message, AIMessage) else []
        found += [
            fingerprint_call(c["name"], c["args"]) for c in reversed(calls) if c["name"] not in todo_tools
        ]
    return remember_prints("", found[::-1])[0]


def fingerprint_call(name: str, args: Mapping[str, Any]) -> str:
    """Return a short print of a call, the same for the same name and arguments."""
    return urlsafe_b64encode(_digest(name, args, 3)).decode()[:PRINT_LENGTH]


def _digest(name: str, args: Mapping[str, Any], size: int) -> bytes:
    text = json.dumps([name, args], sort_keys=True, default=str)  # nothing but ASCII
    return blake2s(text.encode(), digest_size=size).digest()


def remember_prints(seen: str, prints: Sequence[str]) -> tuple[str, set[str]]:
    """Remember the prints of calls, bounded, and return those that were not known before."""
    known = [seen[i : i + PRINT_LENGTH] for i in range(0, len(seen), PRINT_LENGTH)]
    there = set(known)
    new = [p for p in dict.fromkeys(prints) if p not in there]
    return "".join((known + new)[-REMEMBERED:]), set(new)


def fingerprint_reply(text: str, todos: Sequence[Todo]) -> str:
    """Return a print of a reply over a list, to see whether the next one repeats it."""
    return _digest(text, {"todos": list(todos)}, 6).hex()


def is_repeated(notes: Ledger, messages: Sequence[AnyMessage], todos: Sequence[Todo]) -> bool:
    """Tell whether the last reply is the same over the same list as at the last wake."""
    last = notes.get("last_wake")
    return bool(last) and fingerprint_reply(text_of(messages[-1]), todos) == last
