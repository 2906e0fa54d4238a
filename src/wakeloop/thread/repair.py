"""Repairs a message history after a run that broke off."""

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
    new_hidden_id,
    remove_mark,
    source_of,
)

FillPrompt = Callable[[str], str]


@dataclass(frozen=True)
class Repairs:
    """What a history needs before it can be sent to a model.

    The history is the old messages without the waiting user messages at their end, then `closing` (results
    for the calls that a broken run left open, and a line about it), then `waiting`, then `appended`.
    `unmarked` are older messages that lose a mark which only the graph may set.
    """

    closing: list[BaseMessage]
    waiting: list[BaseMessage]
    appended: list[BaseMessage]
    unmarked: list[BaseMessage]

    @property
    def injected_ids(self) -> list[str]:
        """The ids of those user messages that the graph itself added."""
        return [m.id or "" for m in (*self.waiting, *self.appended) if kind_of(m)]

    def build_writes(self, messages: Sequence[AnyMessage]) -> list[BaseMessage]:
        """Return the writes for a channel that replaces messages by id and appends new ones."""
        tail = messages[len(messages) - len(self.waiting) :]
        if self.closing:
            # The channel cannot insert, so the tail is removed and added again after `closing`.
            moved = [*(RemoveMessage(m.id or "") for m in tail), *self.closing, *self.waiting]
        else:
            moved = [new for new, old in zip(self.waiting, tail, strict=True) if new is not old]
        return [*self.unmarked, *moved, *self.appended]


def plan_repairs(
    state: TodoState,
    old: Ledger,
    arrived: Sequence[BaseMessage],
    todo_tools: Collection[str],
    opener: HumanMessage,
    fill_prompt: FillPrompt,
    standing: Collection[str] = (),
) -> Repairs:
    """Work out what makes the history legal, with the input at its end. Calls that are `standing` stay open.

    `arrived` are the messages made of events. If no message of a user is left to answer (those that a
    framework put in do not count), `opener` is added: the nudge, or a word to continue.
    """
    messages = state["messages"]
    tail = list(takewhile(lambda m: m.type in ("human", "system"), reversed(messages)))[::-1]
    head = messages[: len(messages) - len(tail)]
    injected = old.get("injected", ())
    waiting = [m if m.id in injected else make_sendable(remove_mark(m)) for m in tail]
    appended = list(arrived)
    closing = close_open_calls(head, todo_tools, fill_prompt, old.get("plan", ""), standing)
    # every call is answered, and only a line would close the history
    ends_in_results = bool(head) and isinstance(head[-1], ToolMessage) and len(closing) == 1
    answers_nobody = ends_in_results and not (appended or waiting)
    if answers_nobody and not _ends_with_own_message(state, old):
        # Another agent handed over after its tools had answered. Its history is in order as it is.
        closing = []
    elif not appended and not any(isinstance(m, HumanMessage) and source_of(m) is None for m in waiting):
        appended = [opener]
    from_outside = head[_find_first_outside(state, old) :]
    unmarked = [clean for message in from_outside if (clean := remove_mark(message)) is not message]
    return Repairs(closing=closing, waiting=waiting, appended=appended, unmarked=unmarked)


def close_open_calls(
    head: Sequence[AnyMessage],
    todo_tools: Collection[str],
    fill_prompt: FillPrompt,
    plan: str = "",
    standing: Collection[str] = (),
) -> list[BaseMessage]:
    """Answer the calls that a broken run left open, and add a line that it was interrupted.

    While a `plan` waits for approval, the other calls of its round have certainly not run.
    """
    other_calls = "not_run" if plan in ("due", "judged") else "unanswered"
    last_results = takewhile(lambda m: isinstance(m, ToolMessage), reversed(head))
    answered = {m.tool_call_id for m in last_results if isinstance(m, ToolMessage)}
    last = next((m for m in reversed(head) if not isinstance(m, ToolMessage)), None)
    calls = last.tool_calls if isinstance(last, AIMessage) else []
    results: list[BaseMessage] = []
    for call in calls:
        if call["id"] in answered or call["id"] in standing:
            continue
        text = fill_prompt("unanswered_todo" if call["name"] in todo_tools else other_calls)
        results.append(
            ToolMessage(
                text,
                id=new_hidden_id(),
                name=call["name"],
                tool_call_id=call["id"] or "",
                status="error",
                additional_kwargs=injected_kwargs("repair"),
            )
        )
    if standing:
        return results  # the round goes on
    if results or (head and isinstance(head[-1], ToolMessage)):
        results.append(make_assistant_message("repair", fill_prompt("run_interrupted")))
    return results


def _ends_with_own_message(state: TodoState, old: Ledger) -> bool:
    """Tell whether this thread wrote the last message itself, in a run that ended or broke off."""
    broke_off = bool(old) and (state.get("todo_session") or {}).get("reason") is None
    return broke_off or state["messages"][-1].id == old.get("tail")


def _find_first_outside(state: TodoState, old: Ledger) -> int:
    """Return the index from which on all messages came with this input, as far as that is known.

    It is not known after a run that broke off, since that wrote messages after the noted end, nor on a new
    thread, where the history that a caller or a parent passes on may hold messages of the graph.
    """
    messages = state["messages"]
    if (state.get("todo_session") or {}).get("reason") is None:
        return len(messages)
    return next((i + 1 for i, m in enumerate(messages) if m.id == old.get("tail")), len(messages))
