"""Puts a history in order where a run broke off."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)

from wakeloop.loop.ledger import Ledger
from wakeloop.model.storable_values import make_sendable
from wakeloop.state import TodoState
from wakeloop.text.marks import (
    injected_kwargs,
    kind_of,
    make_assistant_message,
    make_user_message,
    new_hidden_id,
    remove_mark,
    source_of,
)

Say = Callable[[str], str]


@dataclass(frozen=True)
class Repairs:
    """What a history needs, whatever it is written back with.

    Behind all that is there but its waiting user messages come `closing` (answers to calls that a broken run
    left open, and a line), then those messages as `waiting`, then `behind`. `unmarked` are messages further
    up that lose a mark.
    """

    closing: list[BaseMessage]
    waiting: list[BaseMessage]
    appended: list[BaseMessage]
    unmarked: list[BaseMessage]

    @property
    def injected_ids(self) -> list[str]:
        """The ids of the graph's own among the user messages that wait."""
        return [m.id or "" for m in (*self.waiting, *self.appended) if kind_of(m)]

    def build_writes(self, messages: Sequence[AnyMessage]) -> list[BaseMessage]:
        """Return the writes for a channel that replaces by id and puts what is added anew at the end."""
        tail = messages[len(messages) - len(self.waiting) :]
        if self.closing:
            moved = [*(RemoveMessage(m.id or "") for m in tail), *self.closing, *self.waiting]
        else:
            moved = [new for new, m in zip(self.waiting, tail, strict=True) if new is not m]
        return [*self.unmarked, *moved, *self.appended]


def plan_repairs(
    state: TodoState,
    old: Ledger,
    arrived: Sequence[BaseMessage],
    todo_tools: Collection[str],
    nudge: str | None,
    say: Say,
) -> Repairs:
    """Return what makes a history legal, with the input behind it.

    `arrived` are the messages of events. Where no user message is left to answer (what others have put in is
    none), one is added: the `nudge`, or a word to go on; not behind another agent's results where they answer
    every call, as after its hand-over: such a history is in order as it is.
    """
    messages = state["messages"]
    tail = list(takewhile(lambda m: m.type in ("human", "system"), reversed(messages)))[::-1]
    head = messages[: len(messages) - len(tail)]
    waiting = [m if m.id in old.get("injected", ()) else make_sendable(remove_mark(m)) for m in tail]
    behind, closing = list(arrived), close_open_calls(head, todo_tools, say, old.get("plan", ""))
    if not (behind or waiting) and _ends_in_results(head, closing) and not _ends_with_own_message(state, old):
        closing = []
    elif not behind and not any(isinstance(m, HumanMessage) and source_of(m) is None for m in waiting):
        behind = [make_user_message("activate", say("activate") if nudge is None else nudge)]
    return Repairs(
        closing=closing,
        waiting=waiting,
        appended=behind,
        unmarked=[new for m in head[_find_first_outside(state, old) :] if (new := remove_mark(m)) is not m],
    )


def close_open_calls(
    head: Sequence[AnyMessage], todo_tools: Collection[str], say: Say, plan: str = ""
) -> list[BaseMessage]:
    """Answer the calls that a broken run left open, and close it with a line.

    While a `plan` waits for its approval, no call beside it has run.
    """
    beside = "not_run" if plan in ("due", "judged") else "unanswered"
    results_behind = takewhile(lambda m: isinstance(m, ToolMessage), reversed(head))
    answered = {m.tool_call_id for m in results_behind if isinstance(m, ToolMessage)}
    last = next((m for m in reversed(head) if not isinstance(m, ToolMessage)), None)
    calls = last.tool_calls if isinstance(last, AIMessage) else []
    results: list[BaseMessage] = [
        ToolMessage(
            say("unanswered_todo" if call["name"] in todo_tools else beside),
            id=new_hidden_id(),
            name=call["name"],
            tool_call_id=call["id"] or "",
            status="error",
            additional_kwargs=injected_kwargs("repair"),
        )
        for call in calls
        if call["id"] not in answered
    ]
    if results or (head and isinstance(head[-1], ToolMessage)):
        results.append(make_assistant_message("repair", say("run_interrupted")))
    return results


def _ends_in_results(head: Sequence[AnyMessage], closing: Sequence[BaseMessage]) -> bool:
    """Tell whether results end a history and no call is without one: all that would close it is a line."""
    return bool(head) and isinstance(head[-1], ToolMessage) and len(closing) == 1


def _ends_with_own_message(state: TodoState, old: Ledger) -> bool:
    """Tell whether a history ends with the thread's own: of a run that broke off, or that ended."""
    broken = bool(old) and (state.get("todo_session") or {}).get("reason") is None
    return broken or state["messages"][-1].id == old.get("tail")


def _find_first_outside(state: TodoState, old: Ledger) -> int:
    """Return the place from which all messages came with this input, as far as that can be told.

    Not where a run broke off: behind its end stands what it wrote itself. Nor on a new thread: a history that
    a caller or a parent hands on may hold what the graph wrote there.
    """
    messages = state["messages"]
    if (state.get("todo_session") or {}).get("reason") is None:
        return len(messages)
    return next((i + 1 for i, m in enumerate(messages) if m.id == old.get("tail")), len(messages))
