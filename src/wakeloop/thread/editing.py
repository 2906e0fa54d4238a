"""Edits of a thread's list by hand."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot

from wakeloop.errors import EditError
from wakeloop.loop.ledger import notes_of
from wakeloop.platform.computed_once import computed_once
from wakeloop.thread.standing import resting_node, session_of, unfinished
from wakeloop.todos.changes import changes
from wakeloop.todos.items import Todo, count_open, next_number
from wakeloop.todos.operations import Add, Board, Change, Operation, Rules
from wakeloop.todos.rounds import play_round

Graph = CompiledStateGraph[Any, Any, Any, Any]
Id = int | str


def update_todos(
    graph: Graph,
    config: RunnableConfig,
    *,
    add: Iterable[str] = (),
    done: Iterable[Id] = (),
    start: Iterable[Id] = (),
    block: Mapping[Id, str] | None = None,
    cancel: Iterable[Id] = (),
    reopen: Iterable[Id] = (),
    remove: Iterable[Id] = (),
    edit: Mapping[Id, str] | None = None,
    clear: bool = False,
    goal: str | None = None,
) -> list[Todo]:
    """Edit the list of a thread that has ended, and return it as it is now.

    All or nothing: first `clear`, then the others in the order of the signature; `block` maps an id to its
    reason, `edit` to its new text. The verifier is not asked. Raises `EditError` with one sentence for an
    unknown id, a blank text, or a thread that is parked at an interrupt or has not finished its run.
    """
    wanted = _Edit(add, done, start, block or {}, cancel, reopen, remove, edit or {}, clear, goal)
    snapshot = graph.get_state(config)
    todos, update = wanted.applied(snapshot)
    if update:
        graph.update_state(config, update, as_node=resting_node(graph))
    return todos


async def aupdate_todos(
    graph: Graph,
    config: RunnableConfig,
    *,
    add: Iterable[str] = (),
    done: Iterable[Id] = (),
    start: Iterable[Id] = (),
    block: Mapping[Id, str] | None = None,
    cancel: Iterable[Id] = (),
    reopen: Iterable[Id] = (),
    remove: Iterable[Id] = (),
    edit: Mapping[Id, str] | None = None,
    clear: bool = False,
    goal: str | None = None,
) -> list[Todo]:
    """Edit the list of a thread that has ended: `update_todos` for asynchronous savers."""
    wanted = _Edit(add, done, start, block or {}, cancel, reopen, remove, edit or {}, clear, goal)
    snapshot = await graph.aget_state(config)
    todos, update = wanted.applied(snapshot)
    if update:
        await graph.aupdate_state(config, update, as_node=resting_node(graph))
    return todos


@dataclass(frozen=True)
class _Edit:
    """What is wanted, and what it makes of a thread."""

    add: Iterable[str]
    done: Iterable[Id]
    start: Iterable[Id]
    block: Mapping[Id, str]
    cancel: Iterable[Id]
    reopen: Iterable[Id]
    remove: Iterable[Id]
    edit: Mapping[Id, str]
    clear: bool
    goal: str | None

    @computed_once
    def operations(self) -> list[Operation]:
        """The edits that are operations of a round, in their order."""
        added = tuple(self.add)
        return [
            *([Add(added)] if added else []),
            *(Change(key, "completed") for key in self.done),
            *(Change(key, "in_progress") for key in self.start),
            *(Change(key, "blocked", reason) for key, reason in self.block.items()),
            *(Change(key, "cancelled") for key in self.cancel),
            *(Change(key, "pending") for key in self.reopen),
        ]

    def applied(self, snapshot: StateSnapshot) -> tuple[list[Todo], dict[str, Any]]:
        """Return the new list and the update that writes it, or refuse."""
        refuse_unfinished(snapshot)
        values = snapshot.values or {}
        ledger = notes_of(values)
        old: list[Todo] = list(values.get("todos") or ())
        refusals = dict(ledger.get("refusals", {}))
        for operation in self.operations:  # a person overrules the verifier
            if isinstance(operation, Change):
                refusals.pop(str(operation.id), None)
        number = next_number(old, ledger.get("next_id", 1))
        board = Board(() if self.clear else tuple(old), next_id=number, refusals=refusals)
        board, outcomes = self.played(board)
        for outcome in outcomes:
            if outcome.error is not None:
                raise EditError(f"Nothing was changed: {outcome.error}.")
        todos = self.reworded(board)
        update: dict[str, Any] = {}
        if difference := changes(old, todos):
            update["todos"] = difference
        if self.goal is not None or (self.clear and values.get("todo_goal")):
            update["todo_goal"] = self.goal or ""
        if not update:
            return todos, {}
        update["todo_ledger"] = {**ledger, "next_id": board.next_id}
        if "refusals" in ledger or refusals:
            update["todo_ledger"]["refusals"] = refusals
        if values.get("todo_session"):
            update["todo_session"] = self.session(snapshot, todos)
        return todos, update

    def played(self, board: Board) -> tuple[Board, list[Any]]:
        """Apply the operations; nobody is asked."""
        play = play_round(board, self.operations, Rules())
        try:
            while True:
                play.send(None)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]

    def reworded(self, board: Board) -> list[Todo]:
        """Give items their new texts and take away those that are to go."""
        for key, text in self.edit.items():
            todo = self.found(board, key)
            if not text.strip():
                raise EditError(f"Nothing was changed: item {key} needs a text that is not blank.")
            board = board.with_item({**todo, "content": text.strip()})
        gone = [self.found(board, key)["id"] for key in self.remove]
        return [todo for todo in board.todos if todo["id"] not in gone]

    @staticmethod
    def found(board: Board, key: Id) -> Todo:
        """Return an item, or refuse."""
        if (todo := board.find(key)) is None:
            raise EditError(f"Nothing was changed: there is no item {key!r}.")
        return todo

    @staticmethod
    def session(snapshot: StateSnapshot, todos: list[Todo]) -> dict[str, Any]:
        """Let the session match the list: what is open now decides whether the thread is idle."""
        before = session_of(snapshot)
        session: dict[str, Any] = {**before, "open": count_open(todos)}
        if session["state"] in ("idle", "dormant"):
            session["state"] = "idle" if session["open"] else "dormant"
            if before["open"] and not session["open"]:
                session["reason"] = "settled"
            elif session["open"] and session["reason"] == "settled":
                session["reason"] = None
        return session


def refuse_unfinished(snapshot: StateSnapshot) -> None:
    """Refuse an edit of a thread in mid-run with what to do first."""
    if snapshot.interrupts:
        raise EditError(
            "This thread waits for an answer to an interrupt: resume it first, then edit its list."
        )
    if not unfinished(snapshot):
        return
    if notes_of(snapshot.values).get("refused"):
        raise EditError("This thread's last input was refused: send it a message first, then edit its list.")
    raise EditError("This thread has not finished its run: resume it first, then edit its list.")
