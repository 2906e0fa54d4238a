"""Puts a history in order where a run broke off."""

from collections.abc import Callable, Collection, Sequence
from itertools import takewhile

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)

from wakeloop.state import Ledger, TodoState
from wakeloop.text.characters import whole
from wakeloop.text.marks import as_assistant, as_user, kind_of, mark, new_id, unmarked

Say = Callable[[str], str]


def in_order(
    state: TodoState,
    old: Ledger,
    arrived: Sequence[BaseMessage],
    todo_tools: Collection[str],
    nudge: str | None,
    say: Say,
) -> tuple[list[BaseMessage], list[str]]:
    """Return what makes a history legal: repairs where a run broke off, the input behind them.

    `arrived` are the messages of events. Where no user message is left to answer, one is added: the `nudge`,
    or a word to go on. Also returns the ids of the graph's own among the user messages that wait.
    """
    messages = state["messages"]
    tail = list(takewhile(lambda m: m.type in ("human", "system"), reversed(messages)))[::-1]
    head = messages[: len(messages) - len(tail)]
    clean = [m if m.id in old.get("injected", ()) else _whole(unmarked(m)) for m in tail]
    repairs = repaired(head, todo_tools, say)
    writes: list[BaseMessage] = [new for m in head[_outside(state, old) :] if (new := unmarked(m)) is not m]
    if repairs:
        writes += [*(RemoveMessage(m.id or "") for m in tail), *repairs, *clean]
    else:
        writes += [new for new, m in zip(clean, tail, strict=True) if new is not m]
    behind = list(arrived)
    if not behind and not any(isinstance(m, HumanMessage) for m in clean):
        behind = [as_user("activate", say("activate") if nudge is None else nudge)]
    return [*writes, *behind], [m.id or "" for m in (*clean, *behind) if kind_of(m)]


def _whole(message: BaseMessage) -> BaseMessage:
    """Return a message that can be sent: no UTF-8 can be made of half a character pair."""
    content = whole(message.content)
    return message if content == message.content else message.model_copy(update={"content": content})


def repaired(head: Sequence[AnyMessage], todo_tools: Collection[str], say: Say) -> list[BaseMessage]:
    """Answer the calls that a broken run left open, and close it with a line."""
    results_behind = takewhile(lambda m: isinstance(m, ToolMessage), reversed(head))
    answered = {m.tool_call_id for m in results_behind if isinstance(m, ToolMessage)}
    last = next((m for m in reversed(head) if not isinstance(m, ToolMessage)), None)
    calls = last.tool_calls if isinstance(last, AIMessage) else []
    results: list[BaseMessage] = [
        ToolMessage(
            say("unanswered_todo" if call["name"] in todo_tools else "unanswered"),
            id=new_id(),
            name=call["name"],
            tool_call_id=call["id"] or "",
            status="error",
            additional_kwargs=mark("repair"),
        )
        for call in calls
        if call["id"] not in answered
    ]
    if results or (head and isinstance(head[-1], ToolMessage)):
        results.append(as_assistant("repair", say("broken_off")))
    return results


def _outside(state: TodoState, old: Ledger) -> int:
    """Return the place from which all messages came with this input, as far as that can be told.

    Not where a run broke off: behind its end stands what it wrote itself. Nor on a new thread: a history that
    a caller or a parent hands on may hold what the graph wrote there.
    """
    messages = state["messages"]
    if (state.get("todo_session") or {}).get("reason") is None:
        return len(messages)
    return next((i + 1 for i, m in enumerate(messages) if m.id == old.get("tail")), len(messages))
