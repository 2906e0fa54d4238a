"""Asks the judges of the work: `verify` and `done_when`."""

from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, field
from inspect import isawaitable, iscoroutinefunction
from typing import Any, TypeVar

from langchain_core.runnables.config import run_in_executor

from wakeloop.checks.argument_values import read_verdict as read_item_verdict
from wakeloop.errors import GoalError, UserCodeError, VerifyError
from wakeloop.loop.goal import Verdict, note_verdict, read_verdict
from wakeloop.loop.ledger import Ledger
from wakeloop.model.user_code import raised_as
from wakeloop.platform.traces import emit_event, stream_event
from wakeloop.stream import VerifyEvent
from wakeloop.thread.steering import StoreRead, aread_store, read_store
from wakeloop.todos.items import Todo
from wakeloop.todos.operations import Board, Outcome, Question

Verify = Callable[[Todo, Any], Awaitable[str | None] | str | None]
DoneWhen = Callable[[Any], Awaitable[str | Verdict | None] | str | Verdict | None]
T = TypeVar("T")


def is_asynchronous(judge: Callable[..., Any] | None) -> bool:
    """Tell whether a function that judges work is declared as asynchronous."""
    return iscoroutinefunction(judge) or iscoroutinefunction(getattr(judge, "__call__", None))  # noqa: B004 - an object with an async __call__


@dataclass(frozen=True)
class Judge:
    """A function of the caller that judges work. What it raises is raised as an error of this kind."""

    function: Callable[..., Any]
    kind: type[UserCodeError]
    name: str
    read: Callable[[object], Any]
    model: object = None  # its keys are redacted in errors

    def ask(self, *given: Any) -> Any:
        """Return the verdict. One that would have to be awaited is an error."""
        with raised_as(self.kind, self.name, self.model):
            verdict = self.function(*given)
        if isawaitable(verdict):
            if hasattr(verdict, "close"):
                verdict.close()
            raise self.kind
        return self.read(verdict)

    async def aask(self, *given: Any, in_thread: bool = False) -> Any:
        """Return the verdict, and await it if it is awaitable."""
        with raised_as(self.kind, self.name, self.model):
            verdict: Any
            if in_thread and not is_asynchronous(self.function):
                verdict = await run_in_executor(None, self.function, *given)
            else:
                verdict = self.function(*given)
            verdict = await verdict if isawaitable(verdict) else verdict
        return self.read(verdict)


@dataclass(frozen=True)
class Verifier:
    """The caller's `verify`, if there is one. None accepts an item; a string is the reason for a refusal."""

    verify: Verify | None = None
    model: object = None

    def ask(self, question: Question, state: Any) -> str | None:
        """Ask about an item."""
        return self._judge.ask(question.todo, state) if self.verify else None

    async def aask(self, question: Question, state: Any) -> str | None:
        """Ask like `ask`, and await the verdict if it is awaitable."""
        return await self._judge.aask(question.todo, state) if self.verify else None

    @property
    def _judge(self) -> Judge:
        assert self.verify is not None  # noqa: S101 - asked before
        return Judge(self.verify, VerifyError, "verify", read_item_verdict, self.model)

    def stream_verdicts(self, outcomes: Sequence[Outcome], after: Board) -> None:
        """Stream an event for each item that was asked about."""
        for outcome in outcomes if self.verify else ():
            for key in outcome.touched:
                todo = outcome.board.find(key)
                why = outcome.denied.get(key)
                if todo is None or (why is None and todo["status"] != "completed"):
                    continue
                event: VerifyEvent = {
                    "type": "verify",
                    "id": key,
                    "content": todo["content"],
                    "accepted": why is None,
                    "reason": why,
                    "refusals": after.refusals.get(str(key), 0),
                }
                stream_event(event)


@dataclass(frozen=True, slots=True)
class Query:
    """What a node asks in the middle of its body: whether an item is done, or, without one, the goal."""

    state: Any
    item: Question | None = None


Play = Generator[Query | StoreRead, Any, T]
"""The body of a node, which synchronous and asynchronous runs share: it yields what it asks."""


def take_verdict(notes: Ledger, verdict: Verdict) -> bool:
    """Note and report a verdict. Return whether it names something that was not missing before."""
    is_new = note_verdict(notes, verdict)
    reason = notes.get("missing", "")
    emit_event({"type": "goal", "verdict": verdict.kind, "reason": reason}, notes)
    return is_new


def ask_about_items(play: Generator[Question, str | None, T], state: Any) -> Play[T]:
    """Turn a body that asks only about items into one whose questions have the state with them."""
    answer: str | None = None
    while True:
        try:
            question = play.send(answer)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        answer = yield Query(state, question)


@dataclass(frozen=True)
class Judges:
    """The functions of the caller that judge the work. What they raise is raised."""

    verifier: Verifier = field(default_factory=Verifier)
    done_when: DoneWhen | None = None

    def refuse_asynchronous(self) -> None:
        """Raise `VerifyError` or `GoalError` in a synchronous run, before the first request is paid for."""
        if is_asynchronous(self.verifier.verify):
            raise VerifyError
        if is_asynchronous(self.done_when):
            raise GoalError

    def finish(self, play: Play[T]) -> T:
        """Run a node's body to its end, with the answers to what it asks."""
        answer: Any = None
        while True:
            try:
                query = play.send(answer)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
            answer = self.ask(query)

    async def afinish(self, play: Play[T]) -> T:
        """Do the same as `finish`; the answers are awaited."""
        answer: Any = None
        while True:
            try:
                query = play.send(answer)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
            answer = await self.aask(query)

    def ask(self, query: Query | StoreRead) -> Any:
        """Return the verifier's answer about an item, the verdict on the goal, or what the store has."""
        if isinstance(query, StoreRead):
            return read_store(query)
        if query.item is not None:
            return self.verifier.ask(query.item, query.state)
        return self._goal_judge.ask(query.state)

    async def aask(self, query: Query | StoreRead) -> Any:
        """Do the same as `ask`, and await the answer if it is awaitable."""
        if isinstance(query, StoreRead):
            return await aread_store(query)
        if query.item is not None:
            return await self.verifier.aask(query.item, query.state)
        # it may run a test suite for minutes, which must not hold up the event loop
        return await self._goal_judge.aask(query.state, in_thread=True)

    @property
    def _goal_judge(self) -> Judge:
        assert self.done_when is not None  # noqa: S101 - nobody asks about a goal that is not there
        return Judge(self.done_when, GoalError, "done_when", read_verdict, self.verifier.model)
