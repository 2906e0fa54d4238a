"""What a round has brought that was not tried before."""

from collections.abc import Collection, Sequence

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from wakeloop.loop.gates import REMEMBERED, fingerprint, seen_before
from wakeloop.state import Ledger
from wakeloop.text.marks import by_user, opens


def note_progress(messages: Sequence[AnyMessage], ledger: Ledger, todo_tools: Collection[str]) -> None:
    """See whether the last round's calls brought a wake anything new: successful ones not seen before.

    Nothing asks before the first wake, so until a round of it has ended nothing is noted (0.2 of the bytes of
    a row); what came before is then read off the history.
    """
    if not ledger.get("waking") and "seen" not in ledger:
        return
    results: dict[str, bool] = {}
    for back, message in enumerate(reversed(messages), 1):
        if isinstance(message, ToolMessage):
            results[message.tool_call_id] = message.status != "error"
        elif isinstance(message, AIMessage):  # a tool may add messages of other kinds behind its result
            if results:
                todo = set(ledger.get("todo_calls", ()))
                calls = [c for c in message.tool_calls if c["id"] in results and c["id"] not in todo]
                prints = {fingerprint(c["name"], c["args"]): results[c["id"] or ""] for c in reversed(calls)}
                before = ledger.get("seen")
                before = tried(messages[:-back], todo_tools) if before is None else before
                ledger["seen"], new = seen_before(before, list(prints))
                if any(prints[p] for p in new):
                    ledger["worked"] = True
            return


def tried(messages: Sequence[AnyMessage], todo_tools: Collection[str]) -> str:
    """Return the prints of the newest calls of an activation outside the todo tools."""
    found: list[str] = []
    for message in reversed(messages):
        if len(found) >= REMEMBERED or by_user(message) or opens(message):
            break
        calls = message.tool_calls if isinstance(message, AIMessage) else []
        found += [fingerprint(c["name"], c["args"]) for c in reversed(calls) if c["name"] not in todo_tools]
    return seen_before("", found[::-1])[0]
