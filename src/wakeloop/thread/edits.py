"""Edits of a thread's list by hand: `update_todos`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.errors import InvalidUpdateError
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot

from wakeloop.checks.argument_names import EDIT_HINTS, reject_unknown_arguments
from wakeloop.checks.argument_values import (
    check_goal_and_clear,
    check_graph,
    read_ids,
    read_texts,
    read_texts_by_id,
)
from wakeloop.checks.run_inputs import require_thread
from wakeloop.errors import ArgumentError, EditError
from wakeloop.loop.gates import DONE
from wakeloop.loop.ledger import Ledger, read_notes
from wakeloop.loop.list_changes import PERSON, note_changes
from wakeloop.platform.channels import overwrite_value
from wakeloop.platform.computed_once import computed_once
from wakeloop.state import note_untaken
from wakeloop.stream import Session
from wakeloop.text.characters import is_blank, shorten, storable_text
from wakeloop.text.wording import suggest
from wakeloop.thread.thread_status import LAST_NODE, find_last_node, fit_to_list, is_unfinished, read_session
from wakeloop.todos.changes import diff_lists, write_all
from wakeloop.todos.items import Status, Todo, assign_ids, count_items
from wakeloop.todos.operations import Add, Board, Change, Operation, Rules
from wakeloop.todos.rounds import describe_ids, play_round

Graph = CompiledStateGraph[Any, Any, Any, Any]
SESSION_CHANNELS = ("todo_session", "todo_goal")
Id = int | str
CHANGES: Mapping[str, Status] = {  # of statuses, in the order in which they are made
    "done": "completed",
    "start": "in_progress",
    "block": "blocked",
    "cancel": "cancelled",
    "reopen": "pending",
}


@dataclass(frozen=True)
class EditTarget:
    """The thread to edit: an agent's own, a nested agent's, or that of a parent that shares the list.

    `node` is the node that the update is attributed to: the agent's last one, or None for a parent, where
    LangGraph works it out. `renumbers` says that ids restart at 1 once the list has been cleared.
    """

    graph: Graph
    config: RunnableConfig
    node: str | None
    renumbers: bool = False

    @classmethod
    def find(cls, graph: Graph, config: RunnableConfig) -> Self:
        """Find the target. Raises `ArgumentError` or `EditError` if this graph's list cannot be edited."""
        check_graph(graph)
        namespace = str(require_thread(config).get("checkpoint_ns") or "")
        if not graph.checkpointer:
            raise EditError(
                f"The graph {graph.name!r} keeps no threads. Build it with a checkpointer, such as "
                "checkpointer=InMemorySaver()."
            )
        subgraphs: dict[str, Any] = dict(graph.get_subgraphs(recurse=True))
        kept = {
            name: one
            for name, one in subgraphs.items()
            if LAST_NODE in one.nodes and one.checkpointer is True
        }
        if namespace or graph.checkpointer is True:
            path = [part.split(":")[0] for part in namespace.split("|")]  # without the ids of tasks
            agent = kept.get("|".join(path))
        else:
            agent = graph
        last = find_last_node(agent) if agent is not None else None
        if last is not None:
            return cls(graph, config, last[0], last[1].dialect.renumbers)
        if agent is graph and "todos" in graph.channels:
            return cls(graph, config, None)
        raise EditError(
            f"The graph {graph.name!r} keeps no list here. Pass the agent's own graph; for an agent with "
            "checkpointer=True, pass the graph around it, with the agent's node in the config: "
            "{'configurable': {'thread_id': …, 'checkpoint_ns': 'NODE'}}. "
            f"Such nodes of {graph.name!r}: {', '.join(map(repr, kept)) or 'none'}."
        )

    def build_update(self, update: Mapping[str, Any], todos: list[Any]) -> dict[str, Any]:
        """Return the update as this graph accepts it; a parent gets only the channels that it shares."""
        if self.node is not None:
            return dict(update)
        channels = self.graph.channels
        if "todo_goal" in update and "todo_goal" not in channels:
            raise EditError(f"Nothing was changed: the graph {self.graph.name!r} has no channel 'todo_goal'.")
        shared = {key: update[key] for key in SESSION_CHANNELS if key in update and key in channels}
        if "todos" in update:
            # A parent's channel may have no reducer, or one of its own, so the list is written whole.
            shared["todos"] = overwrite_value(channels["todos"], todos)
        return shared

    def make_update_error(self, error: InvalidUpdateError) -> EditError:
        """Return the error for a parent of which LangGraph cannot tell which node wrote last."""
        return EditError(
            f"Nothing was changed: the thread of {self.graph.name!r} cannot be edited as it is ({error}). "
            "Send the list with the next input, under 'todos'."
        )


def refuse_unfinished(snapshot: StateSnapshot, then: str = "edit its list") -> None:
    """Raise `EditError` if the thread is in the middle of a run, and say what to do first."""
    if snapshot.interrupts:
        raise EditError(f"This thread is waiting at an interrupt. Resume it first, then {then}.")
    if not is_unfinished(snapshot):
        return
    if read_notes(snapshot.values).get("refused"):
        raise EditError(f"This thread's last input was refused. Send it a message first, then {then}.")
    raise EditError(f"This thread has not finished its run. Resume it first, then {then}.")


@reject_unknown_arguments(EDIT_HINTS)
def update_todos(
    graph: Graph,
    config: RunnableConfig,
    *,
    add: str | Iterable[str] = (),
    done: Id | Iterable[Id] = (),
    start: Id | Iterable[Id] = (),
    block: Mapping[Id, str] | None = None,
    cancel: Id | Iterable[Id] = (),
    reopen: Id | Iterable[Id] = (),
    remove: Id | Iterable[Id] = (),
    edit: Mapping[Id, str] | None = None,
    clear: bool = False,
    goal: str | None = None,
) -> list[Todo]:
    """Edit the list of a thread whose run has ended, and return the new list.

    Either all edits are made or none: first `clear`, then the others in the order of the signature. The
    verifier is not asked.

    Args:
        graph: The agent, compiled with a checkpointer; or a parent that shares or nests its list.
        config: Names the thread.
        add: Texts of new items.
        done: Ids of items to complete.
        start: Ids of items to put in progress.
        block: By id, why an item is blocked.
        cancel: Ids of items to cancel.
        reopen: Ids of items to set back to pending.
        remove: Ids of items to take off the list.
        edit: By id, the new text of an item.
        clear: Empty the list first.
        goal: The new goal; "" removes it.

    Raises:
        EditError: An id is unknown, an item is blank, or the thread waits at an interrupt or is in mid-run.
        ArgumentError: `graph` is not a compiled graph, or the config names no thread.

    Example:
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from wakeloop import create_todo_agent, update_todos
        >>> from wakeloop.testing import ScriptedModel
        >>> agent = create_todo_agent(ScriptedModel([]), checkpointer=InMemorySaver())
        >>> config = {"configurable": {"thread_id": "1"}}
        >>> [todo["status"] for todo in update_todos(agent, config, add=["Measure", "Report"], done=1)]
        ['completed', 'pending']
    """
    target = EditTarget.find(graph, config)
    edits = ListEdits(add, done, start, block, cancel, reopen, remove, edit, clear, goal)
    todos, update = edits.apply_to(graph.get_state(config), target)
    if update:
        try:
            graph.update_state(config, target.build_update(update, todos), as_node=target.node)
        except InvalidUpdateError as error:
            raise target.make_update_error(error) from None
    return todos


@reject_unknown_arguments(EDIT_HINTS)
async def aupdate_todos(
    graph: Graph,
    config: RunnableConfig,
    *,
    add: str | Iterable[str] = (),
    done: Id | Iterable[Id] = (),
    start: Id | Iterable[Id] = (),
    block: Mapping[Id, str] | None = None,
    cancel: Id | Iterable[Id] = (),
    reopen: Id | Iterable[Id] = (),
    remove: Id | Iterable[Id] = (),
    edit: Mapping[Id, str] | None = None,
    clear: bool = False,
    goal: str | None = None,
) -> list[Todo]:
    """Edit the list of a thread whose run has ended: `update_todos` for asynchronous savers.

    Example:
        >>> import asyncio
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from wakeloop import create_todo_agent
        >>> from wakeloop.testing import ScriptedModel
        >>> agent = create_todo_agent(ScriptedModel([]), checkpointer=InMemorySaver())
        >>> config = {"configurable": {"thread_id": "1"}}
        >>> [todo["id"] for todo in asyncio.run(aupdate_todos(agent, config, add=["Measure"]))]
        [1]
    """
    target = EditTarget.find(graph, config)
    edits = ListEdits(add, done, start, block, cancel, reopen, remove, edit, clear, goal)
    todos, update = edits.apply_to(await graph.aget_state(config), target)
    if update:
        try:
            await graph.aupdate_state(config, target.build_update(update, todos), as_node=target.node)
        except InvalidUpdateError as error:
            raise target.make_update_error(error) from None
    return todos


@dataclass(frozen=True)
class ListEdits:
    """The edits as given, and what they make of a list."""

    add: Any = ()
    done: Any = ()
    start: Any = ()
    block: Any = None
    cancel: Any = ()
    reopen: Any = ()
    remove: Any = ()
    edit: Any = None
    clear: bool = False
    goal: str | None = None

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        """Read edits by name. Raises `ArgumentError` for an unknown name."""
        names = [one.name for one in fields(cls)]
        if unknown := [name for name in given if name not in names]:
            raise ArgumentError(f"Unknown edit {shorten(repr(unknown[0]))}. {suggest(unknown[0], names)}")
        return cls(**given)

    def to_json(self) -> dict[str, Any]:
        """Return those edits that change something, as plain JSON. Raises `EditError` for a wrong form."""
        check_goal_and_clear(self.clear, self.goal)
        plain: dict[str, Any] = {"add": [storable_text(text) for text in read_texts(self.add, "add")]}
        for name in ("done", "start", "cancel", "reopen", "remove"):
            plain[name] = list(read_ids(getattr(self, name), name))
        for name, what in (("block", "reason"), ("edit", "text")):
            texts = read_texts_by_id(getattr(self, name), name, what)
            plain[name] = {str(key): storable_text(text) for key, text in texts.items()}
        given = {key: value for key, value in plain.items() if value}
        if self.clear:
            given["clear"] = True
        return given if self.goal is None else {**given, "goal": storable_text(self.goal)}

    @computed_once
    def operations(self) -> list[Operation]:
        """The edits that a round can play, in their order."""
        operations: list[Operation] = []
        if added := read_texts(self.add, "add"):
            operations.append(Add(added))
        for name, status in CHANGES.items():
            given = getattr(self, name)
            if name == "block":
                reasons: Mapping[Id, str | None] = read_texts_by_id(given, name, "reason")
            else:
                reasons = dict.fromkeys(read_ids(given, name))
            operations += [Change(key, status, reason) for key, reason in reasons.items()]
        return operations

    def apply_to(self, snapshot: StateSnapshot, target: EditTarget) -> tuple[list[Todo], dict[str, Any]]:
        """Return the new list and the update that writes it. Raises `EditError`, and then changes nothing."""
        refuse_unfinished(snapshot)
        values = snapshot.values or {}
        ledger = read_notes(values)
        stored = values.get("todos") or ()
        old, next_id = assign_ids(stored, ledger.get("next_id", 1))
        untaken = getattr(stored, "before", None) is not None  # somebody wrote it, and no run has begun since
        todos, notes = self.apply_to_list(old, {**ledger, "next_id": next_id}, renumbers=target.renumbers)
        update: dict[str, Any] = {}
        if difference := diff_lists(old, todos):
            # update_state may have written items without ids; a difference could not name those.
            without_ids = any("id" not in todo for todo in stored)
            update["todos"] = write_all(todos) if without_ids or untaken else {**difference, "own": True}
        if self.goal is not None or (self.clear and values.get("todo_goal")):
            update["todo_goal"] = self.goal or ""
        restarts = self.clear and target.renumbers
        if not update and not (restarts and ledger.get("next_id", 1) > 1):
            return todos, {}
        # The session and not the ledger says which version the list has: a parent has no ledger.
        notes["writes"] = read_session(snapshot)["list"] + ("todos" in update)
        if untaken:
            note_untaken(notes, stored, old)
        note_changes(notes, old, todos, PERSON)
        notes.pop("own", None)  # the list is no longer the one that a hook wrote
        update["todo_ledger"] = notes
        if values.get("todo_session"):
            update["todo_session"] = self.build_session(snapshot, todos, notes["writes"])
        return todos, update

    def apply_to_list(
        self, old: Sequence[Todo], ledger: Ledger, *, renumbers: bool
    ) -> tuple[list[Todo], Ledger]:
        """Return the new list, and the notes with its next id and what the verifier said of its items.

        Raises `EditError`, and then changes nothing.
        """
        check_goal_and_clear(self.clear, self.goal)
        changed = {str(one.id) for one in self.operations if isinstance(one, Change)}
        # a person overrules the verifier
        refusals = {key: times for key, times in ledger.get("refusals", {}).items() if key not in changed}
        next_id = ledger.get("next_id", 1)
        if self.clear and renumbers:
            next_id, refusals = 1, {}
        board = Board(() if self.clear else tuple(old), next_id=next_id, refusals=refusals)
        board = self.play(board)
        notes: Ledger = {**ledger, "next_id": board.next_id}
        if "refusals" in ledger or refusals:
            notes["refusals"] = refusals
        if "passed" in ledger:
            passed = () if self.clear else ledger["passed"]
            notes["passed"] = [key for key in passed if str(key) not in changed]
        return self.apply_texts(board), notes

    def play(self, board: Board) -> Board:
        """Apply all operations or none; the verifier is not asked."""
        questions = play_round(board, self.operations, Rules())
        try:
            while True:
                questions.send(None)  # accepts the completion that the round asks about
        except StopIteration as done:
            after, outcomes = done.value
            for outcome in outcomes:
                if outcome.error is not None:
                    raise EditError(f"Nothing was changed: {outcome.error}.") from None
            return after  # type: ignore[no-any-return]

    def apply_texts(self, board: Board) -> list[Todo]:
        """Give items their new text, and remove the ones that `remove` names."""
        for key, text in read_texts_by_id(self.edit, "edit", "text").items():
            todo = self.find_item(board, key)
            if is_blank(text):
                raise EditError(f"Nothing was changed: the new text of item {key} is blank.")
            board = board.with_item({**todo, "content": text.strip()})
        gone = [self.find_item(board, key)["id"] for key in read_ids(self.remove, "remove")]
        return [todo for todo in board.todos if todo["id"] not in gone]

    @staticmethod
    def find_item(board: Board, key: Id) -> Todo:
        """Return the item with this id. Raises `EditError` if the list lacks it."""
        if (todo := board.find(key)) is None:
            raise EditError(f"Nothing was changed: there is no item {key!r}; {describe_ids(board.todos)}.")
        return todo

    @staticmethod
    def build_session(snapshot: StateSnapshot, todos: list[Todo], writes: int) -> Session:
        """Return the session that fits the new list: open items, or an unmet goal, make the thread idle."""
        before = read_session(snapshot)
        session: Session = {**before, **count_items(todos), "list": writes}
        was_decided = before["reason"] in DONE and before["open"]  # by the goal, whatever is open (rule 24)
        fit_to_list(session, before["open"], read_notes(snapshot.values))
        if session["state"] == "dormant" and before["open"] and not (session["open"] or was_decided):
            session["reason"] = "settled"
        return session
