"""Edits of a thread's list by hand."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.errors import InvalidUpdateError
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot

from wakeloop.checks.argument_names import EDIT_HINTS, reject_unknown_arguments
from wakeloop.checks.edit_arguments import check_goal_and_clear, read_ids, read_texts, read_texts_by_id
from wakeloop.errors import EditError
from wakeloop.loop.ledger import read_notes
from wakeloop.platform.computed_once import computed_once
from wakeloop.text.characters import is_blank
from wakeloop.thread.edit_target import EditTarget, refuse_unfinished
from wakeloop.thread.thread_status import read_session
from wakeloop.todos.changes import diff_lists
from wakeloop.todos.items import Todo, count_open
from wakeloop.todos.items import assign_ids as numbered
from wakeloop.todos.operations import Add, Board, Change, Operation, Rules
from wakeloop.todos.rounds import play_round

Graph = CompiledStateGraph[Any, Any, Any, Any]
Id = int | str


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
    """Edit the list of a thread that has ended, and return it as it is now.

    All or nothing: first `clear`, then the others in the order of the signature; `block` maps an id to its
    reason, `edit` to its new text. The verifier is not asked. Raises `EditError` with one sentence for an
    unknown id, a blank text, or a thread that is parked at an interrupt or has not finished its run.
    """
    edited = EditTarget.find(graph, config)
    wanted = _Edit(add, done, start, block, cancel, reopen, remove, edit, clear, goal)
    todos, update = wanted.apply_to(graph.get_state(config), edited)
    if update:
        try:
            graph.update_state(config, edited.build_update(update, todos), as_node=edited.node)
        except InvalidUpdateError as error:
            raise edited.make_update_error(error) from None
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
    """Edit the list of a thread that has ended: `update_todos` for asynchronous savers."""
    edited = EditTarget.find(graph, config)
    wanted = _Edit(add, done, start, block, cancel, reopen, remove, edit, clear, goal)
    todos, update = wanted.apply_to(await graph.aget_state(config), edited)
    if update:
        try:
            await graph.aupdate_state(config, edited.build_update(update, todos), as_node=edited.node)
        except InvalidUpdateError as error:
            raise edited.make_update_error(error) from None
    return todos


@dataclass(frozen=True)
class _Edit:
    """What is wanted, as it was given, and what it makes of a thread."""

    add: Any
    done: Any
    start: Any
    block: Any
    cancel: Any
    reopen: Any
    remove: Any
    edit: Any
    clear: bool
    goal: str | None

    @computed_once
    def operations(self) -> list[Operation]:
        """The edits that are operations of a round, in their order."""
        added = read_texts(self.add, "add")
        return [
            *([Add(added)] if added else []),
            *(Change(key, "completed") for key in read_ids(self.done, "done")),
            *(Change(key, "in_progress") for key in read_ids(self.start, "start")),
            *(
                Change(key, "blocked", why)
                for key, why in read_texts_by_id(self.block, "block", "reason").items()
            ),
            *(Change(key, "cancelled") for key in read_ids(self.cancel, "cancel")),
            *(Change(key, "pending") for key in read_ids(self.reopen, "reopen")),
        ]

    def apply_to(self, snapshot: StateSnapshot, edited: EditTarget) -> tuple[list[Todo], dict[str, Any]]:
        """Return the new list and the update that writes it, or refuse."""
        check_goal_and_clear(self.clear, self.goal)
        refuse_unfinished(snapshot)
        values = snapshot.values or {}
        ledger = read_notes(values)
        stored = values.get("todos") or ()
        old, number = numbered(stored, ledger.get("next_id", 1))
        refusals = dict(ledger.get("refusals", {}))
        for operation in self.operations:  # a person overrules the verifier
            if isinstance(operation, Change):
                refusals.pop(str(operation.id), None)
        anew = self.clear and edited.renumbers
        if anew:
            number, refusals = 1, {}
        board = Board(() if self.clear else tuple(old), next_id=number, refusals=refusals)
        board = self.play(board)
        todos = self.apply_texts(board)
        update: dict[str, Any] = {}
        if difference := diff_lists(old, todos):
            whole = any("id" not in todo for todo in stored)  # a hand may write a list without ids
            update["todos"] = {"all": todos} if whole else difference
        if self.goal is not None or (self.clear and values.get("todo_goal")):
            update["todo_goal"] = self.goal or ""
        if not update and not (anew and ledger.get("next_id", 1) > 1):
            return todos, {}
        writes = read_session(snapshot)["list"] + ("todos" in update)  # a parent has no notes of its own
        update["todo_ledger"] = {**ledger, "next_id": board.next_id, "writes": writes}
        if "refusals" in ledger or refusals:
            update["todo_ledger"]["refusals"] = refusals
        if values.get("todo_session"):
            update["todo_session"] = self.build_session(snapshot, todos, writes)
        return todos, update

    def play(self, board: Board) -> Board:
        """Apply the operations, or refuse them all; nobody is asked."""
        play = play_round(board, self.operations, Rules())
        try:
            while True:
                play.send(None)
        except StopIteration as done:
            after, outcomes = done.value
            if why := next((one.error for one in outcomes if one.error is not None), None):
                raise EditError(f"Nothing was changed: {why}.") from None
            return after  # type: ignore[no-any-return]

    def apply_texts(self, board: Board) -> list[Todo]:
        """Give items their new texts and take away those that are to go."""
        for key, text in read_texts_by_id(self.edit, "edit", "text").items():
            todo = self.find_item(board, key)
            if is_blank(text):
                raise EditError(f"Nothing was changed: item {key} needs a text that is not blank.")
            board = board.with_item({**todo, "content": text.strip()})
        gone = [self.find_item(board, key)["id"] for key in read_ids(self.remove, "remove")]
        return [todo for todo in board.todos if todo["id"] not in gone]

    @staticmethod
    def find_item(board: Board, key: Id) -> Todo:
        """Return an item, or refuse."""
        if (todo := board.find(key)) is None:
            raise EditError(f"Nothing was changed: there is no item {key!r}.")
        return todo

    @staticmethod
    def build_session(snapshot: StateSnapshot, todos: list[Todo], writes: int) -> dict[str, Any]:
        """Let the session match the list: what is open now decides whether the thread is idle."""
        before = read_session(snapshot)
        session: dict[str, Any] = {**before, "open": count_open(todos), "list": writes}
        if session["state"] in ("idle", "dormant"):
            session["state"] = "idle" if session["open"] else "dormant"
            if before["open"] and not session["open"]:
                session["reason"] = "settled"
            elif session["open"] and session["reason"] == "settled":
                session["reason"] = None
        return session
