"""What travels along the edges: the channels."""

from collections.abc import Sequence
from typing import Annotated, Any, NotRequired, cast

from langchain_core.messages import AnyMessage
from langgraph.managed import RemainingSteps
from pydantic import Field
from typing_extensions import TypedDict  # pydantic makes schemas of typing's from 3.12 on

from wakeloop.channels.conversation import merge_messages
from wakeloop.channels.reducers import merge_entries, merge_goal, merge_settings
from wakeloop.channels.todo_channels import SessionChannel, TodosChannel
from wakeloop.channels.todo_list import Todos, check_stored_todos, merge_todos
from wakeloop.errors import InputError
from wakeloop.loop.inbox import WakeEvent
from wakeloop.loop.ledger import Ledger, read_notes
from wakeloop.loop.list_changes import PROGRAM, note_changes, note_whole_list
from wakeloop.platform.channels import CheapDeltaChannel, CheapReducerChannel
from wakeloop.stream import Session
from wakeloop.todos.changes import stamp_item
from wakeloop.todos.items import Todo, assign_ids, next_free_number

MESSAGES = Field(description="The conversation; new messages are appended, one of a known id replaces it.")
TODOS = Field(description="The list. In an input it replaces the list; without it, the list stays.")
GOAL = Field(description="What the list is for.")
SESSION = Field(description="How the last run ended; sent back with a list, it says how old that list is.")
INBOX = Field(description="Events that wake the agent, such as a peer's message; only `kind` is needed.")
OVERRIDES = Field(description="This thread's own settings, over the agent's; {} clears them.")
VALUE = Field(description="The answer in the agent's response_format, after a settled end.")

Conversation = Annotated[
    list[AnyMessage], MESSAGES, CheapDeltaChannel(merge_messages, snapshot_frequency=500)
]


class TodoState(TypedDict):
    """The channels of the graph. Subclass it and pass it as `state_schema` to add your own.

    >>> from wakeloop import TodoState
    >>> class MyState(TodoState):
    ...     colour: str
    >>> sorted(set(MyState.__annotations__) - set(TodoState.__annotations__))
    ['colour']
    """

    messages: Conversation
    todos: Annotated[list[Todo], TODOS, TodosChannel(merge_todos, snapshot_frequency=25)]
    structured_response: NotRequired[Annotated[Any, VALUE]]
    todo_goal: Annotated[str, GOAL, CheapReducerChannel(str, merge_goal)]
    todo_session: NotRequired[Annotated[Session, SESSION, SessionChannel(Session)]]
    todo_inbox: NotRequired[Annotated[list[WakeEvent], INBOX]]
    todo_settings: Annotated[dict[str, Any], OVERRIDES, CheapReducerChannel(dict, merge_settings)]
    todo_ledger: NotRequired[Ledger]
    todo_decided: NotRequired[list[dict[str, Any]] | None]
    todo_handoff: NotRequired[Annotated[list[dict[str, Any]], CheapReducerChannel(list, merge_entries)]]
    owed_replies: NotRequired[Annotated[list[Any], CheapReducerChannel(list, merge_entries)]]
    waiting_on: NotRequired[Annotated[list[Any], CheapReducerChannel(list, merge_entries)]]
    todo_subagents: NotRequired[Annotated[list[Any], CheapReducerChannel(list, merge_entries)]]


INPUT_CHANNELS = ("messages", "todos", "todo_goal", "todo_session", "todo_inbox", "todo_settings")
OUTPUT_CHANNELS = ("messages", "todos", "structured_response", "todo_goal", "todo_session")
PRIVATE_CHANNELS = frozenset(
    ("todo_ledger", "todo_session", "todo_decided", "todo_handoff", "todo_inbox", "structured_response")
)
"""Channels that no tool may write."""


TEXTLESS_CHANNELS = frozenset(("todo_ledger", "todo_decided"))
"""Plain channels that only nodes write, and no string."""


class Steps(TypedDict):
    """What nodes read besides the channels: the supersteps that the caller's limit leaves."""

    remaining_steps: RemainingSteps


class Notes(TypedDict):
    """What most routers read."""

    todo_ledger: Ledger


class RoundNotes(Notes):
    """What the routers of a round read: the notes, and which calls a person has decided."""

    todo_decided: list[dict[str, Any]] | None


class ReviewedNotes(RoundNotes):
    """What the router after a review reads: also the list."""

    todos: list[Todo]


class NotesAndReply(Notes):
    """What the router after `call_model` reads: the notes, and the reply with its calls."""

    messages: Conversation


def copy_ledger(state: Any) -> Ledger:
    """Return a copy of the notes, for a node to write on. Raises `DamagedError` for anything else."""
    notes, todos = read_notes(state), state.get("todos")
    if not isinstance(todos, Todos):  # no reducer has made it, so its items are not checked yet
        check_stored_todos(todos)
    return cast(Ledger, dict(notes))


def list_before(todos: Sequence[Todo]) -> Sequence[Todo]:
    """Return the list as it was before a tool or a person wrote it, as far as that is known."""
    return getattr(todos, "before", None) or ()


def find_overruled(todos: Sequence[Todo]) -> Sequence[int | str]:
    """Return the items for which a todo call has won over a list that a tool wrote in the same round."""
    return getattr(todos, "overruled", ())


def note_untaken(ledger: Ledger, todos: Sequence[Todo], numbered: Sequence[Todo]) -> None:
    """Note what changed in a list that somebody wrote, once its items have their ids."""
    before = list_before(todos)
    if type(todos) is list or (
        getattr(todos, "loaded", False) and not before
    ):  # only a snapshot is left of it
        note_whole_list(ledger)
    else:
        note_changes(ledger, before, numbered, getattr(todos, "by", None) or PROGRAM)


def adopt_list(todos: Sequence[Todo], ledger: Ledger) -> list[Todo] | None:
    """Give ids to a list that somebody else than the model wrote, and note what it changed.

    Return None if nobody did. What a hook wrote itself comes back as it is. Raises `InputError` for a list
    that was refused, which nobody would hear of otherwise: in mid-run no node checks an input.
    """
    if (fault := getattr(todos, "fault", None)) is not None:
        raise InputError(
            f"The list that was written during this run is refused: {fault}. Write a valid list, then run "
            "the thread again with the input None."
        )
    before = getattr(todos, "before", None)
    if before is None:
        if type(todos) is not list or all("id" in todo for todo in todos):
            return None
        before = ()  # it was stored before it had ids
    if ledger.pop("own", None) == stamp_item(todos):
        return list(todos)  # a hook's own write, read back after a crash
    numbered, ledger["next_id"] = assign_ids(todos, next_free_number(before, ledger.get("next_id", 1)))
    ledger["writes"] = ledger.get("writes", 0) + 1
    ledger["wrote"] = True
    note_untaken(ledger, todos, numbered)
    return numbered
