"""Whether wakes and rounds bring anything new."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2s
from itertools import islice
from types import MappingProxyType
from typing import Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage

from wakeloop.channels.conversation import Messages
from wakeloop.loop.ledger import Ledger
from wakeloop.settings import LoopSettings
from wakeloop.text.characters import shorten, to_one_line
from wakeloop.text.marks import (
    activation_messages,
    split_result_text,
    text_of,
)
from wakeloop.todos.changes import keeps_contents
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
            calls = [call for call in message.tool_calls if call["id"] in results]
            return [(call, results[call["id"] or ""]) for call in calls]
    return []


def fingerprint_earlier_calls(messages: Sequence[AnyMessage], todo_tools: Collection[str]) -> str:
    """Return the fingerprints of an activation's newest calls outside the todo tools."""
    earlier = _collect_calls(activation_messages(messages), todo_tools)
    prints = [fingerprint_call(call["name"], call["args"]) for call in reversed(earlier)]
    return remember_fingerprints("", prints)[0]


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


MOST_NAMED = 3  # calls that a reminder names


def count_idle_rounds(
    messages: Sequence[AnyMessage],
    todos: Sequence[Todo],
    ledger: Ledger,
    settings: LoopSettings,
    todo_tools: Collection[str],
    tools: Mapping[str, Any] = MappingProxyType({}),
) -> int:
    """Count the last round, and return how many idle ones in a row it makes; 0 if it is not idle.

    A round is counted once: when its notes are gone, nothing is. A round whose plan a person rejected does
    not count, since what follows it was asked for; nor does one whose list was refused as outdated, or one
    with a tool that polls.
    """
    asked_for = ledger.get("plan") == "rejected" or "outdated" in ledger
    if not settings.max_idle_rounds or "nag" not in ledger or asked_for:
        return 0
    made = find_last_round(reversed(messages))
    if not made:
        return 0
    todo, faults = set(ledger.get("todo_calls", ())), ledger.get("faults", {})
    written = [result.artifact for call, result in made if call["id"] in todo]
    pairs = [pair for pair in made if pair[0]["id"] not in todo and pair[0]["id"] not in faults]
    # both are asked in any case: each keeps notes of what it has seen
    is_new = _has_new_result(messages, ledger, pairs, todo_tools)
    has_grown = _has_grown(ledger, todos, written)
    if is_new or has_grown or any(polls(tools.get(call["name"])) for call, _ in pairs):
        ledger.pop("idle_rounds", None)
        return 0
    ledger["idle_rounds"] = ledger.get("idle_rounds", 0) + 1
    return ledger["idle_rounds"]


def polls(tool: Any) -> bool:
    """Tell whether a tool may be called again and again: `polls` in its `metadata` says so.

    >>> from langchain_core.tools import StructuredTool
    >>> polls(StructuredTool.from_function(print, metadata={"polls": True}))
    True
    """
    return bool((getattr(tool, "metadata", None) or {}).get("polls"))


def end_if_looping(idle: int, settings: LoopSettings) -> Literal["looping"] | None:
    """Return the end of a run whose last round was one idle round in a row too many."""
    return "looping" if 0 < settings.max_idle_rounds <= idle else None


def needs_idle_reminder(idle: int, ledger: Ledger, settings: LoopSettings) -> bool:
    """Tell whether the model is reminded of its idle rounds: half way, unless the guard is suppressed."""
    return 0 < idle == settings.max_idle_rounds // 2 and not ledger.get("todo_guard_suppressed", False)


def describe_repeats(messages: Sequence[AnyMessage], idle: int) -> dict[str, Any]:
    """Return the blanks for a message about idle rounds: how many, and the newest different calls in them."""
    replies = (m for m in activation_messages(messages) if isinstance(m, AIMessage) and m.tool_calls)
    calls: list[ToolCall] = []
    for reply in islice(replies, idle):
        calls += reversed(reply.tool_calls)
    names = list(dict.fromkeys(map(_format_call, calls)))
    repeated = ", ".join(reversed(names[:MOST_NAMED]))
    if len(names) > MOST_NAMED:
        repeated += f" and {len(names) - MOST_NAMED} more"
    return {"rounds": idle, "repeated": repeated}


def _format_call(call: ToolCall) -> str:
    given = call["args"].items()
    args = [f"{key}={json.dumps(value, ensure_ascii=False, default=str)}" for key, value in given]
    return shorten(to_one_line(f"{call['name']}({', '.join(args)})"), 80)


def measure_reach(todos: Sequence[Todo]) -> list[int]:
    """Return how far a list has come: its settled items, and its different items."""
    return [len(todos) - count_open(todos), len({todo["content"] for todo in todos})]


def reach_unless_grown(before: Sequence[Todo], after: Sequence[Todo]) -> list[int] | None:
    """Return how far a list had come before a round; None if the round only took it further.

    It is stored as the artifact of the round's first todo result. So the usual round, which takes the list
    further, stores nothing for this.
    """
    if count_open(after) < count_open(before) and keeps_contents(before, after):
        return None
    was, now = measure_reach(before), measure_reach(after)
    fell_back = now[0] < was[0] or now[1] < was[1]
    return was if now == was or fell_back else None


def _has_grown(ledger: Ledger, todos: Sequence[Todo], written: Sequence[Any]) -> bool:
    """Tell whether the list has come further than ever before in the activation.

    While a list has lost ground, its best is noted. Otherwise the best is what the list was before the
    round, or before a tool or a person wrote it.
    """
    replaced = getattr(todos, "before", None)
    was = next(filter(_is_reach, written), None)
    only_further = bool(written) and was is None and "best" not in ledger
    best = ledger.get("best") or was
    if best is None and replaced is not None:
        best = measure_reach(replaced)
    if best is None:
        return only_further
    now = measure_reach(todos)
    most = list(map(max, best, now))
    ledger.pop("best", None)
    if most != now:
        ledger["best"] = most
    return only_further or most != best


def _is_reach(artifact: Any) -> bool:
    return isinstance(artifact, list) and list(map(type, artifact)) == [int, int]


def _has_new_result(
    messages: Sequence[AnyMessage],
    ledger: Ledger,
    made: Sequence[Pair],
    todo_tools: Collection[str],
) -> bool:
    """Tell whether a call came with a result that is not among the last pairs of the activation.

    Nothing is noted until a call comes a second time: the pairs are then read off the history.
    """
    if not made:
        return False
    known = ledger.get("pairs")
    if known is None:
        calls = [call for call, _ in made]
        if isinstance(messages, Messages) and not messages.may_repeat(
            calls, messages.round_start(len(messages) - 1)
        ):
            return True
        history = activation_messages(messages)
        find_last_round(history)  # which is not part of what came before it
        earlier = _collect_calls(history, todo_tools)
        called = [(call["name"], call["args"]) for call in earlier]
        if not any((call["name"], call["args"]) in called for call, _ in made):
            return True
        known = _fingerprint_history(messages, earlier)
    there = [known[i : i + FINGERPRINT_LENGTH] for i in range(0, len(known), FINGERPRINT_LENGTH)]
    prints = list(dict.fromkeys(_fingerprint_pair(*pair) for pair in made))
    kept = [p for p in there if p not in prints]
    ledger["pairs"] = "".join([*kept, *prints][-REMEMBERED:])
    return not set(there).issuperset(prints)


def note_pairs(
    messages: Sequence[AnyMessage], ledger: Ledger, settings: LoopSettings, todo_tools: Collection[str]
) -> None:
    """Note the pairs of a history before a hook takes something away from it."""
    if settings.max_idle_rounds and "pairs" not in ledger:
        earlier = _collect_calls(activation_messages(messages), todo_tools)
        ledger["pairs"] = _fingerprint_history(messages, earlier)


def forget_cleared(
    visible: Sequence[AnyMessage], ledger: Ledger, settings: LoopSettings, todo_tools: Collection[str]
) -> None:
    """Remember only the calls whose results the model still sees: others may be made again."""
    ledger.pop("pairs", None)
    note_pairs(visible, ledger, settings, todo_tools)
    ledger["seen"] = fingerprint_earlier_calls(visible, todo_tools)


def _collect_calls(newest_first: Iterable[AnyMessage], todo_tools: Collection[str]) -> list[ToolCall]:
    """Return the newest calls outside the todo tools, as many as are remembered, the newest first."""
    found: list[ToolCall] = []
    for message in newest_first:
        if not isinstance(message, AIMessage):
            continue
        for call in reversed(message.tool_calls):
            if call["name"] not in todo_tools:
                found.append(call)
        if len(found) >= REMEMBERED:
            break
    return found[:REMEMBERED]


def _fingerprint_history(messages: Sequence[AnyMessage], newest_first: Sequence[ToolCall]) -> str:
    results = {m.tool_call_id: m for m in reversed(messages) if isinstance(m, ToolMessage)}
    answered = [call for call in reversed(newest_first) if call["id"] in results]
    return "".join(_fingerprint_pair(call, results[call["id"]]) for call in answered)


def _fingerprint_pair(call: ToolCall, result: ToolMessage) -> str:
    """Return a short print of a call and its result: the tool's own part, blocks of any kind too."""
    own: Any = split_result_text(result)[0]
    if isinstance(result.content, list):
        blocks = (block for block in result.content if isinstance(block, dict))
        own = [own, *(block for block in blocks if block.get("type") != "text")]
    return fingerprint_call(call["name"], {"args": call["args"], "result": own})
