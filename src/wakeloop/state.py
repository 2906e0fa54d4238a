"""What travels along the edges: the channels."""

from collections.abc import Sequence
from typing import Annotated, Any, NotRequired, cast

from langchain_core.messages import AnyMessage
from langgraph.managed import RemainingSteps
from typing_extensions import TypedDict  # pydantic makes schemas of typing's from 3.12 on

from wakeloop.channels.conversation import merge_messages
from wakeloop.channels.reducers import merge_entries, merge_goal, merge_settings
from wakeloop.channels.session import Standing
from wakeloop.channels.todo_list import check_todos, merge_todos
from wakeloop.loop.inbox import WakeEvent
from wakeloop.loop.ledger import Ledger, notes_of
from wakeloop.platform.cheap_copies import Delta, Folded
from wakeloop.stream import Session
from wakeloop.todos.items import Todo, next_number, number

Conversation = Annotated[list[AnyMessage], Delta(merge_messages, snapshot_frequency=500)]


class TodoState(TypedDict):
    """The channels of the graph; subclass it and pass `state_schema` for more of your own."""

    messages: Conversation
    todos: Annotated[list[Todo], Delta(merge_todos, snapshot_frequency=25)]
    structured_response: NotRequired[Any]
    todo_goal: Annotated[str, Folded(str, merge_goal)]
    todo_session: NotRequired[Annotated[Session, Standing(Session)]]
    todo_inbox: NotRequired[list[WakeEvent]]
    todo_settings: Annotated[dict[str, Any], Folded(dict, merge_settings)]
    todo_ledger: NotRequired[Ledger]
    todo_handoff: NotRequired[Annotated[list[dict[str, Any]], Folded(list, merge_entries)]]
    owed_replies: NotRequired[Annotated[list[Any], Folded(list, merge_entries)]]
    waiting_on: NotRequired[Annotated[list[Any], Folded(list, merge_entries)]]
    todo_subagents: NotRequired[Annotated[list[Any], Folded(list, merge_entries)]]


IN = ("messages", "todos", "todo_goal", "todo_session", "todo_inbox", "todo_settings")
OUT = ("messages", "todos", "structured_response", "todo_goal", "todo_session")
PRIVATE = frozenset(("todo_ledger", "todo_session", "todo_handoff", "todo_inbox", "structured_response"))
"""What no tool may write."""


class Steps(TypedDict):
    """What nodes read beside the channels: how many supersteps the caller's limit leaves."""

    remaining_steps: RemainingSteps


class Notes(TypedDict):
    """All that most forks read."""

    todo_ledger: Ledger


class NotesAndReply(Notes):
    """What the fork after `call_model` reads: the notes and the reply with its calls."""

    messages: Conversation


def ledger_of(state: Any) -> Ledger:
    """Return a copy of the notes, for a node to write on. Raises `DamagedError` for what are none."""
    notes = notes_of(state)
    check_todos(state.get("todos"))
    return cast(Ledger, dict(notes))


def before_of(todos: Sequence[Todo]) -> Sequence[Todo]:
    """Return what a list was before a tool or a hand wrote it, as far as that is known."""
    return getattr(todos, "before", None) or ()


def taken_in(todos: Sequence[Todo], ledger: Ledger) -> list[Todo] | None:
    """Give ids to a list that a tool or a hand wrote, and note the next number; None where none did."""
    before = getattr(todos, "before", None)
    if before is None:
        if type(todos) is not list or all("id" in todo for todo in todos):
            return None
        before = ()  # stored before it had its ids
    numbered, ledger["next_id"] = number(todos, next_number(before, ledger.get("next_id", 1)))
    ledger["writes"] = ledger.get("writes", 0) + 1
    return numbered
