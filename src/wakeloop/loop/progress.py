"""Whether a wake made progress: by work, not by status."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2s
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage

from wakeloop.loop.ledger import Ledger
from wakeloop.text.marks import is_user_message, opens_activation, text_of
from wakeloop.todos.items import Todo, count_open, is_open

Pair = tuple[ToolCall, ToolMessage]
REMEMBERED = 64  # calls of an activation that count as seen; the oldest are forgotten
# Fingerprints are stored in every row, so they are short: with a full memory of 64, about one new call in
# 4,000 is mistaken for one already seen.
FINGERPRINT_LENGTH = 3


def begin_measuring(notes: Ledger, todos: Sequence[Todo]) -> Ledger:
    """Return the notes at the beginning of a turn whose progress is measured."""
    left = [todo["id"] for todo in todos if is_open(todo)]
    return {**notes, "waking": True, "worked": False, "open_at_wake": left}


def judge_wake(notes: Ledger, todos: Sequence[Todo]) -> None:
    """Count a wake whose turn has ended: as one more idle wake in a row, or as the end of that row.

    A correction is not a wake, so it never counts as idle. If its turn made progress, the guard forgets the
    reason for which it was asked.
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
    """Tell whether a wake's turn made progress.

    Either a call not seen before succeeded (`worked`). Or an item that was open when the wake began is
    settled, and more items are settled than ever before in this activation (`peak`): closing what was just
    added, or reopening and closing an item again, is not progress.
    """
    if worked:
        return True
    settled_now = [todo["id"] for todo in todos if not is_open(todo)]
    return len(settled_now) > peak and not set(open_before).isdisjoint(settled_now)


def count_settled(todos: Sequence[Todo]) -> int:
    """Count the items that are not open."""
    return len(todos) - count_open(todos)


def note_progress(messages: Sequence[AnyMessage], ledger: Ledger, todo_tools: Collection[str]) -> None:
    """Note whether the last round of a wake had a successful call that was not seen before.

    This is not needed before the first wake, so nothing is stored until that wake's first round has ended,
    which saves bytes in every row. Earlier calls are then read from the history.
    """
    if "nag" not in ledger or not (ledger.get("waking") or "seen" in ledger):
        return
    earlier = reversed(messages)
    last_round = find_last_round(earlier)
    if not last_round:
        return
    todo_calls = set(ledger.get("todo_calls", ()))
    succeeded: dict[str, bool] = {}
    for call, result in reversed(last_round):
        if call["id"] not in todo_calls:
            succeeded[fingerprint_call(call["name"], call["args"])] = result.status != "error"
    before = ledger.get("seen")
    if before is None:
        before = fingerprint_earlier_calls([*earlier][::-1], todo_tools)
    ledger["seen"], new = remember_fingerprints(before, list(succeeded))
    if any(succeeded[fingerprint] for fingerprint in new):
        ledger["worked"] = True


def find_last_round(newest_first: Iterable[AnyMessage]) -> list[Pair]:
    """Return each answered call of the newest round with its result.

    An iterator is left just before that round. Results need not come last: a tool may add messages.
    """
    results: dict[str, ToolMessage] = {}
    for message in newest_first:
        if isinstance(message, ToolMessage):
            results[message.tool_call_id] = message
        elif isinstance(message, AIMessage) and message.tool_calls:
            pairs: list[Pair] = []
            for call in message.tool_calls:
                if call["id"] in results:
                    pairs.append((call, results[call["id"] or ""]))
            return pairs
    return []


def fingerprint_earlier_calls(messages: Sequence[AnyMessage], todo_tools: Collection[str]) -> str:
    """Return the fingerprints of an activation's newest calls outside the todo tools."""
    found: list[str] = []
    for message in reversed(messages):
        if len(found) >= REMEMBERED or is_user_message(message) or opens_activation(message):
            break
        made = message.tool_calls if isinstance(message, AIMessage) else []
        for call in reversed(made):
            if call["name"] not in todo_tools:
                found.append(fingerprint_call(call["name"], call["args"]))
    return remember_fingerprints("", found[::-1])[0]


def fingerprint_call(name: str, args: Mapping[str, Any]) -> str:
    """Return a short fingerprint of a call: the same for the same name and arguments."""
    return urlsafe_b64encode(_digest(name, args, 3)).decode()[:FINGERPRINT_LENGTH]


def _digest(name: str, args: Mapping[str, Any], size: int) -> bytes:
    text = json.dumps([name, args], sort_keys=True, default=str)  # nothing but ASCII
    return blake2s(text.encode(), digest_size=size).digest()


def remember_fingerprints(seen: str, fingerprints: Sequence[str]) -> tuple[str, set[str]]:
    """Add fingerprints to those already seen. Return the newest 64 of all, and those that were new."""
    known = [seen[i : i + FINGERPRINT_LENGTH] for i in range(0, len(seen), FINGERPRINT_LENGTH)]
    new = [fingerprint for fingerprint in dict.fromkeys(fingerprints) if fingerprint not in known]
    return "".join((known + new)[-REMEMBERED:]), set(new)


def fingerprint_reply(messages: Sequence[AnyMessage], todos: Sequence[Todo]) -> str:
    """Return a fingerprint of the last message together with the list, to see whether both come again.

    The history may be empty: a reducer or a parent may have replaced it by nothing since the reply.
    """
    text = text_of(messages[-1]) if messages else ""
    return _digest(text, {"todos": list(todos)}, 6).hex()


def is_repeated(notes: Ledger, messages: Sequence[AnyMessage], todos: Sequence[Todo]) -> bool:
    """Tell whether reply and list are both the same as at the last wake."""
    last = notes.get("last_wake")
    return bool(last) and fingerprint_reply(messages, todos) == last
