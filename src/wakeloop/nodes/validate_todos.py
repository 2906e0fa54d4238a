"""Applies a round's todo calls to the list, one result each."""

from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp

from wakeloop.dialects.base import Dialect
from wakeloop.errors import VerifyError
from wakeloop.guesses.values import verdict_of
from wakeloop.loop.idle_rounds import unless_further
from wakeloop.loop.ledger import Ledger
from wakeloop.loop.overrides import in_force
from wakeloop.model.answers import answer, no_such_tool
from wakeloop.model.redaction import secrets_of
from wakeloop.platform.codeless_tools import AnsweringNode
from wakeloop.platform.traces import write
from wakeloop.settings import LoopSettings
from wakeloop.state import TodoState, ledger_of, taken_in
from wakeloop.text.secrets import without_secrets
from wakeloop.todos.changes import changed_ids, changes
from wakeloop.todos.items import Refused, Todo
from wakeloop.todos.operations import Board, Operation, Outcome, Question, Replace, Rules, Show
from wakeloop.todos.rounds import play_round
from wakeloop.todos.verdicts import remembered

NONE = AIMessage("")

Verify = Callable[[Todo, Any], Awaitable[str | None] | str | None]
Round = Generator[Question, str | None, tuple[Board, list[Outcome]]]


@dataclass(frozen=True, eq=False)
class ValidateTodos(AnsweringNode):
    """Play the round's todo calls; the verifier is asked in between."""

    dialect: Dialect
    settings: LoopSettings
    verify: Verify | None = None
    model: object = None  # whose secrets no refusal may tell

    def __call__(self, state: TodoState, config: RunnableConfig) -> dict[str, Any]:
        """Return the list's changes and one tool result a call."""
        calls, board, play = self.begun(state)
        verdict: str | None = None
        try:
            while True:
                verdict = self.ask(play.send(verdict), state)
        except StopIteration as done:
            return self.written(state, calls, board, *done.value)

    async def acall(self, state: TodoState, config: RunnableConfig) -> dict[str, Any]:
        """Return the same; an asynchronous verifier is awaited."""
        calls, board, play = self.begun(state)
        verdict: str | None = None
        try:
            while True:
                verdict = await self.aask(play.send(verdict), state)
        except StopIteration as done:
            return self.written(state, calls, board, *done.value)

    def asked(self, state: TodoState) -> list[ToolCall]:
        """Find the round's todo calls in the last reply."""
        replies = (m for m in reversed(state["messages"]) if isinstance(m, AIMessage))
        wanted = set(state["todo_ledger"].get("todo_calls", ()))
        return [call for call in next(replies, NONE).tool_calls if call["id"] in wanted]

    def begun(self, state: TodoState) -> tuple[list[Any], Board, Round]:
        """Set the board, and play the round's calls on it."""
        ledger, calls = ledger_of(state), self.asked(state)
        todos, written = state["todos"], taken_in(state["todos"], ledger)
        board = Board(
            todos=todos if written is None else written,
            goal=str(state["todo_goal"]),
            next_id=ledger.get("next_id", 1),
            refusals=ledger.get("refusals", {}),
        )
        rules = Rules(
            self.settings.max_items,
            self.settings.in_progress,
            one_write=self.dialect.replaces,
            repeats=self.settings.repeats,
        )
        return calls, board, play_round(board, [self.operation(c, board, ledger) for c in calls], rules)

    def operation(self, call: Any, board: Board, ledger: Ledger) -> Operation | str:
        """Turn a call into an operation, or into the sentence that refuses it."""
        why = ledger.get("faults", {}).get(call["id"])
        if call["name"] not in self.dialect.names:  # a build with another dialect wrote it
            return no_such_tool(call["name"], self.dialect.names)
        if why is None:
            try:
                operation = self.dialect.read(call["name"], call["args"])
            except Refused as refusal:
                why = str(refusal)
            else:
                why = self.dialect.refusal(operation, board)
                if why is None:
                    return operation
        return Replace((), why) if self.dialect.replaces and call["name"] in self.dialect.writes else why

    def ask(self, question: Question, state: TodoState) -> str | None:
        """Ask the verifier; what it raises is a refusal that names it."""
        if self.verify is None:
            return None
        try:
            verdict = self.verify(question.todo, state)
        except GraphBubbleUp:  # it asks a person
            raise
        except Exception as error:  # noqa: BLE001 - a verifier that fails has not accepted
            return self.failed(error)
        if isawaitable(verdict):
            if hasattr(verdict, "close"):
                verdict.close()
            raise VerifyError
        return verdict_of(verdict)

    async def aask(self, question: Question, state: TodoState) -> str | None:
        """Ask the verifier and wait for it."""
        if self.verify is None:
            return None
        try:
            verdict = self.verify(question.todo, state)
            verdict = await verdict if isawaitable(verdict) else verdict
        except GraphBubbleUp:
            raise
        except Exception as error:  # noqa: BLE001 - a verifier that fails has not accepted
            return self.failed(error)
        return verdict_of(verdict)

    def failed(self, error: Exception) -> str:
        """Name what a verifier raised; it may have asked a model of the same key."""
        said = f"the verifier failed: {type(error).__name__}: {error}"
        return without_secrets(said, secrets_of(self.model))

    def written(
        self, state: TodoState, calls: list[Any], before: Board, after: Board, outcomes: list[Outcome]
    ) -> dict[str, Any]:
        """Turn the outcomes into tool results, the list's changes, counters and events."""
        ledger, by_hand = ledger_of(state), taken_in(state["todos"], {}) is not None
        ledger["next_id"] = after.next_id
        if after.refusals:
            ledger["refusals"] = remembered(after)
        elif "refusals" in ledger:
            del ledger["refusals"]
        results = [self.answer(call, outcome, ledger) for call, outcome in zip(calls, outcomes, strict=True)]
        if results and in_force(self.settings, ledger).max_idle_rounds:
            results[0].artifact = unless_further(before.todos, after.todos)
        if any(outcome.wrote for outcome in outcomes):
            ledger["todo_guard_suppressed"] = False
        for result, outcome in zip(results, outcomes, strict=True):
            if outcome.error is None and self.dialect.shows(outcome):
                ledger["shown"] = result.id or ""
        update: dict[str, Any] = {"messages": results}
        if ledger != state.get("todo_ledger"):  # most rounds leave it alone: a row less
            update["todo_ledger"] = ledger
        if after.goal != before.goal:
            update["todo_goal"] = after.goal
        self.report(outcomes, after)
        if (difference := changes(before.todos, after.todos)) or by_hand:
            update["todos"] = {"all": list(after.todos)} if by_hand else difference
            event = {"type": "todos", "todos": list(after.todos), "changed": changed_ids(difference)}
            write(event)
        return update

    def answer(self, call: Any, outcome: Outcome, ledger: Ledger) -> ToolMessage:
        """Render one call's result; a refused one is an error result."""
        if call["id"] in ledger.get("faults", {}):
            text, status = ledger["faults"][call["id"]], "error"
        elif outcome.error is not None:
            text, status = self.dialect.error(outcome.error), "error"
        else:
            text = self.dialect.result(outcome)
            status = "success" if isinstance(outcome.operation, Show) or outcome.wrote else "error"
        return answer(call, text, status)

    def report(self, outcomes: list[Outcome], after: Board) -> None:
        """Stream what the verifier said of each item that it was asked about."""
        if self.verify is None:
            return
        for outcome in outcomes:
            for key in outcome.touched:
                todo = outcome.board.find(key)
                why = outcome.denied.get(key)
                if todo is None or (why is None and todo["status"] != "completed"):
                    continue
                event = {"type": "verify", "id": key, "content": todo["content"], "accepted": why is None}
                write({**event, "reason": why, "refusals": after.refusals.get(str(key), 0)})
