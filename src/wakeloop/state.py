"""What travels along the edges: the channels."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NotRequired, cast, get_args

from langchain_core.messages import AnyMessage
from langgraph.managed import RemainingSteps
from typing_extensions import TypedDict  # pydantic makes schemas of typing's from 3.12 on

from wakeloop.channels.reducers import merge_entries, merge_goal, merge_messages, merge_settings, merge_todos
from wakeloop.loop.soundness import check_ledger, check_todos
from wakeloop.platform.cheap_copies import Delta, Folded
from wakeloop.stream import Ending, Session
from wakeloop.todos.items import Todo, next_number, number

Conversation = Annotated[list[AnyMessage], Delta(merge_messages, snapshot_frequency=500)]


EventKind = Literal["human", "peer_message", "peer_reply", "subagent_done", "cron", "kick"]
KINDS: tuple[str, ...] = get_args(EventKind)


class WakeEvent(TypedDict, total=False):
    """What wakes a session; only `kind` is needed.

    `kind` is human, peer_message, peer_reply, subagent_done, cron or kick. An `id` that was seen before makes
    the event a repeat, which is ignored. `sender` is the thread it comes from (`from` is no name in Python).
    A peer's message with a `correlation_id` and a sender wants an answer, of the kind `wants` (peer_reply;
    a subagent's task wants subagent_done), which carries the same id. `chain` names the threads that wait for
    that answer, oldest first. `time` is ISO 8601.
    """

    kind: str
    id: str
    text: str
    sender: str
    correlation_id: str
    time: str
    wants: str
    chain: list[str]


class Ledger(TypedDict, total=False):
    """The graph's private counters and notes: one channel, one value, plain JSON.

    The first seven are in the contract; the others serve forks (`next`, `after`), the round in hand
    (`todo_calls`, `faults`), progress (`seen`, `worked`, `peak`, `open_at_wake`), the system
    messages that a hook wrote (`summaries`), resuming, and the search for other runs on the thread (`began`,
    `asked_at`).
    """

    wake_cycles: int
    idle_wakes: int
    todo_stale_iterations: int
    todo_guard_retries: dict[str, int]
    todo_guard_blocked: dict[str, str] | None
    todo_guard_suppressed: bool
    todo_finalization_correction: bool | None
    next: str
    after: str
    todo_calls: list[str]
    faults: dict[str, str]
    end: Ending | None
    bad_replies: int
    again: str
    asking: str
    called_by: Ending
    waking: bool
    worked: bool
    seen: str
    peak: int
    open_at_wake: list[int | str]
    last_wake: str
    shown: str
    summaries: list[str]
    spoke: bool
    next_id: int
    refusals: dict[str, int]
    tail: str
    injected: list[str]
    settings: dict[str, Any]
    refused: str
    events: list[str]
    began: list[Any]
    asked_at: list[Any]


PASSING = (  # what a run's end makes meaningless; a subagent's result goes on with the rest
    "end",
    "again",
    "asking",
    "called_by",
    "waking",
    "worked",
    "open_at_wake",
    "after",
    "todo_calls",
    "faults",
    "bad_replies",
    "began",
)


def ledger_of(state: Any) -> Ledger:
    """Return a copy of the notes, for a node to write on. Raises `DamagedError` for what are none."""
    ledger = state.get("todo_ledger")
    if ledger is None:
        return {}
    check_ledger(ledger)
    check_todos(state.get("todos"))
    return cast(Ledger, dict(ledger))


def replies_owed(state: Any) -> list[Any]:
    """Return what is owed by a reply; a subagent's task is not: its last text is the answer."""
    owed = state.get("owed_replies") or ()
    return [o for o in owed if not isinstance(o, dict) or o.get("wants", "peer_reply") == "peer_reply"]


def taken_in(todos: Sequence[Todo], ledger: Ledger) -> list[Todo] | None:
    """Give ids to a list that a tool wrote, and note the next number; None where no tool wrote it."""
    before = getattr(todos, "before", None)
    if before is None:
        return None
    numbered, ledger["next_id"] = number(todos, next_number(before, ledger.get("next_id", 1)))
    return numbered


class TodoState(TypedDict):
    """The channels of the graph; subclass it and pass `state_schema` for more of your own."""

    messages: Conversation
    todos: Annotated[list[Todo], Delta(merge_todos, snapshot_frequency=25)]
    structured_response: NotRequired[Any]
    todo_goal: Annotated[str, Folded(str, merge_goal)]
    todo_session: NotRequired[Session]
    todo_inbox: NotRequired[list[WakeEvent]]
    todo_settings: Annotated[dict[str, Any], Folded(dict, merge_settings)]
    todo_ledger: NotRequired[Ledger]
    todo_handoff: NotRequired[Annotated[list[dict[str, Any]], Folded(list, merge_entries)]]
    owed_replies: NotRequired[Annotated[list[Any], Folded(list, merge_entries)]]
    waiting_on: NotRequired[Annotated[list[Any], Folded(list, merge_entries)]]
    todo_subagents: NotRequired[Annotated[list[Any], Folded(list, merge_entries)]]


IN = ("messages", "todos", "todo_goal", "todo_inbox", "todo_settings")
OUT = ("messages", "todos", "structured_response", "todo_goal", "todo_session")


class Steps(TypedDict):
    """What nodes read beside the channels: how many supersteps the caller's limit leaves."""

    remaining_steps: RemainingSteps


class Notes(TypedDict):
    """All that most forks read."""

    todo_ledger: Ledger


class NotesAndReply(Notes):
    """What the fork after `call_model` reads: the notes and the reply with its calls."""

    messages: Conversation
