"""Steering: a person's words and edits for a run under way.

`steer` puts an entry into the store. The graph reads the entries of its thread when a run begins, before each
request and at each turn's end. It stores what it takes in one checkpoint with the entry's id, and deletes the
entry with the next read, at least one superstep later. So a run that was killed finds exactly those entries
again that it had not stored.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from secrets import token_hex
from time import time_ns
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables.config import run_in_executor
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore, Op, PutOp, SearchOp
from langgraph.types import StateSnapshot

from wakeloop.dialects.base import Dialect
from wakeloop.errors import ArgumentError, EditError
from wakeloop.loop.inbox import STEERING, WakeEvent, name_thread, read_thread_name
from wakeloop.loop.ledger import Ledger, read_notes
from wakeloop.loop.list_changes import PERSON, note_changes
from wakeloop.loop.waits import read_wait_kind
from wakeloop.platform.traces import emit_event, stream_event
from wakeloop.text.characters import is_blank, shorten, storable_text
from wakeloop.text.marks import make_assistant_message
from wakeloop.thread.concurrent_runs import NESTED
from wakeloop.thread.edits import ListEdits
from wakeloop.thread.inputs import ThreadInput, read_waits
from wakeloop.todos.changes import make_todos_event, write_all
from wakeloop.todos.items import Todo

MOST_TAKEN = 64  # entries at once, whose ids the notes keep until the entries are deleted
MOST_READ = 1_000
TOOL_NODES = ("run_tools:", "tools:")
BLOCKING_WAITS = frozenset(("hold", "approval"))  # what a thread waits for without taking entries


def steer(
    store: BaseStore, thread_id: str, message: str | None = None, edits: Mapping[str, Any] | None = None
) -> str:
    """Send a person's words, or edits of the list, to a run under way; return the id of the entry.

    The graph takes the entry before its next request, or at the end of the turn. If no request of this run
    takes it, the next run does.

    Args:
        store: The store that the agent was built with.
        thread_id: The id of the thread.
        message: What the person says.
        edits: Edits of the list: the arguments of `update_todos` by name.

    Raises:
        ArgumentError: There is no store, no thread, or neither words nor edits.
        EditError: An edit has the wrong form. Ids are checked when the graph takes the entry.

    Example:
        >>> from langgraph.store.memory import InMemoryStore
        >>> from wakeloop import create_todo_agent, steer
        >>> from wakeloop.testing import ScriptedModel
        >>> store = InMemoryStore()
        >>> agent = create_todo_agent(ScriptedModel(["Hello."]), store=store)
        >>> key = steer(store, "1", "Use tabs.", {"add": ["tidy up"], "done": 1})
    """
    entry = build_entry(store, thread_id, message, edits)
    store.batch([entry])
    return entry.key


async def asteer(
    store: BaseStore, thread_id: str, message: str | None = None, edits: Mapping[str, Any] | None = None
) -> str:
    """Do the same as `steer`, for asynchronous stores.

    Example:
        >>> import asyncio
        >>> from langgraph.store.memory import InMemoryStore
        >>> key = asyncio.run(asteer(InMemoryStore(), "1", "Use tabs."))
    """
    entry = build_entry(store, thread_id, message, edits)
    await abatch(store, [entry])
    return entry.key


def build_entry(
    store: object, thread_id: object, message: str | None, edits: Mapping[str, Any] | None
) -> PutOp:
    """Return the write that stores an entry."""
    if not isinstance(store, BaseStore):
        raise ArgumentError(
            "Steering needs the LangGraph store that the agent was built with, such as "
            f"store=InMemoryStore(), got {shorten(repr(store))}."
        )
    return PutOp(name_thread(thread_id), make_key(), build_value(message, edits), index=False)


def build_value(message: object, edits: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return an entry as it is stored: plain JSON."""
    value: dict[str, Any] = {}
    if message is not None:
        if not isinstance(message, str) or is_blank(message):
            raise ArgumentError(
                f"`message` must be a string that is not blank, got {shorten(repr(message))}."
            )
        value["message"] = storable_text(message)
    if edits:
        value["edits"] = ListEdits.read(edits).to_json()
    if not value:
        raise ArgumentError("There is nothing to send: pass a message, edits, or both.")
    return value


def make_key() -> str:
    """Create the id of an entry; ids sort by time."""
    return f"{time_ns():016x}-{token_hex(4)}"


async def abatch(store: BaseStore, operations: Sequence[Op]) -> list[Any]:
    """Run operations; LangGraph's store on SQLite has no asynchronous form."""
    try:
        return await store.abatch(operations)
    except NotImplementedError:
        return await run_in_executor(None, store.batch, operations)


# -- reading ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the store."""

    id: str
    message: str = ""
    edits: Mapping[str, Any] = field(default_factory=dict)

    def as_event(self) -> WakeEvent:
        """Return its words as an event that begins an activation."""
        return {"kind": "human", "id": self.id, "text": self.message}


@dataclass(frozen=True, slots=True)
class StoreRead:
    """A node's calls of the store: delete the entries that its thread has taken, read those that wait."""

    store: BaseStore
    namespace: tuple[str, ...]
    taken: Sequence[str] = ()
    wanted: bool = True

    @property
    def calls(self) -> list[list[Op]]:
        """The operations of each call. SQLite cannot read first and then write in one transaction."""
        deletions: list[Op] = [PutOp(self.namespace, key, None) for key in self.taken]
        search: list[Op] = [SearchOp(self.namespace, limit=MOST_READ, refresh_ttl=False)]
        return [*([deletions] if deletions else []), *([search] if self.wanted else [])]

    def parse(self, results: Sequence[Any]) -> list[Entry]:
        """Return the oldest entries that wait."""
        found: list[Entry] = []
        for item in results[-1] if self.wanted else ():
            message, edits = item.value.get("message"), item.value.get("edits")
            if tuple(item.namespace) == self.namespace and item.key not in self.taken:
                words = message if isinstance(message, str) else ""
                found.append(Entry(item.key, words, edits if isinstance(edits, Mapping) else {}))
        return sorted(found, key=lambda entry: entry.id)[:MOST_TAKEN]


def read_store(read: StoreRead) -> list[Entry]:
    """Return the entries that wait."""
    results = [read.store.batch(operations) for operations in read.calls]
    return read.parse(results[-1])


async def aread_store(read: StoreRead) -> list[Entry]:
    """Do the same as `read_store`; the store is awaited."""
    results = [await abatch(read.store, operations) for operations in read.calls]
    return read.parse(results[-1])


def list_waiting(store: BaseStore, thread_id: object, values: Mapping[str, Any] | None = None) -> list[Entry]:
    """Return the entries that wait for a thread, without those that its `values` have already."""
    taken = read_notes(values or {}).get("steered", ())
    entries = read_store(StoreRead(store, name_thread(thread_id)))
    return [entry for entry in entries if entry.id not in taken]


def find_next_input(graph: CompiledStateGraph[Any, Any, Any, Any], snapshot: StateSnapshot) -> list[Entry]:
    """Return the entries that a run of this thread would take as its input."""
    if graph.store is None or not may_begin(snapshot):
        return []
    return list_waiting(graph.store, snapshot.config["configurable"]["thread_id"], snapshot.values)


def may_begin(snapshot: StateSnapshot) -> bool:
    """Tell whether what waits for a thread may begin a run: it is at rest, and waits for no approval."""
    return not (snapshot.tasks or is_steering_blocked((snapshot.values or {}).get("waiting_on")))


def list_waiting_threads(store: BaseStore) -> list[str]:
    """Return the threads for which entries wait."""
    return [read_thread_name(one) for one in store.list_namespaces(prefix=(STEERING,), limit=MOST_READ)]


def drop_waiting(store: BaseStore, thread_id: object, entries: Sequence[Entry]) -> None:
    """Delete entries, so that no run takes them."""
    if entries:
        read_store(StoreRead(store, name_thread(thread_id), [entry.id for entry in entries], wanted=False))


# -- taking ----------------------------------------------------------------------------------------------


def plan_read(ledger: Ledger, *, wanted: bool) -> StoreRead | None:
    """Return the next call of the store; None without a store, and where it would do nothing.

    What is `wanted` is noted, so that the request that follows does not read again.
    """
    runtime = get_runtime()
    store, info = runtime.store, runtime.execution_info
    if store is None or info is None or not info.thread_id:
        return None
    if any(part.startswith(TOOL_NODES) for part in info.checkpoint_ns.split(NESTED)[:-1]):
        return None  # the agent is a tool of another one, whose thread it inherits: the words are not for it
    taken = ledger.pop("steered", [])
    if wanted:
        ledger["looked"] = True
    if not (wanted or taken):
        return None
    return StoreRead(store, name_thread(info.thread_id), taken, wanted)


def query_store(read: StoreRead | None) -> Generator[StoreRead, Any, list[Entry]]:
    """Read the store in the middle of a node's body."""
    if read is None:
        return []
    return (yield read)  # type: ignore[no-any-return]


def is_steering_blocked(waiting_on: Sequence[Any] | None) -> bool:
    """Tell whether a thread takes no entries: it is on hold, or a person has to approve something."""
    return not BLOCKING_WAITS.isdisjoint(map(read_wait_kind, waiting_on or ()))


def take_entries(
    entries: Sequence[Entry], ledger: Ledger, todos: Sequence[Todo], dialect: Dialect
) -> dict[str, Any]:
    """Note entries as taken and make their edits. Return the update of the list and the goal.

    An edit that does not fit the list changes nothing; the event says why.
    """
    update: dict[str, Any] = {}
    for entry in entries:
        event: dict[str, Any] = {"type": "steered", "id": entry.id}
        try:
            edits = ListEdits.read(entry.edits)
            after, notes = edits.apply_to_list(todos, ledger, renumbers=dialect.renumbers)
        except (ArgumentError, EditError) as error:
            event["error"] = str(error)
        else:
            if after != list(todos):
                notes["writes"] = ledger.get("writes", 0) + 1
                note_changes(notes, todos, after, PERSON)
                stream_event(make_todos_event(todos, after))
                update["todos"], todos = write_all(after), after
            if edits.goal is not None or edits.clear:
                update["todo_goal"] = edits.goal or ""
            ledger |= notes
        emit_event(event, ledger)
    if entries:
        ledger["steered"] = [entry.id for entry in entries]
    return update


def build_steered_messages(
    entries: Sequence[Entry], messages: Sequence[BaseMessage], filler: str
) -> list[BaseMessage]:
    """Return the messages of a person's words, in a legal place; none without words.

    Some providers refuse a user message directly after tool results, hence the `filler`.
    """
    words: list[BaseMessage] = []
    for entry in entries:
        if entry.message:
            words.append(HumanMessage(entry.message, id=f"event-{entry.id}"))
    if words and messages and isinstance(messages[-1], ToolMessage):
        words.insert(0, make_assistant_message("repair", filler))
    return words


def find_ended_waits(waiting_on: Sequence[Any] | None) -> dict[str, Any]:
    """Return the update that ends the waits that a person's words answer."""
    waits = read_waits({"waiting_on": waiting_on})
    said = ThreadInput(new_input=True, events=(), has_ledger=True, waiting_on=waits)
    ended = [wait.get("id") for wait in waits if said.answers(wait)]
    return {"waiting_on": {"drop": ended}} if ended else {}
