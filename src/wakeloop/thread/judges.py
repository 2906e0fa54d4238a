"""Asks the judges of the work: `verify` and `done_when`."""

from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any, TypeVar

from langchain_core.runnables.config import run_in_executor

from wakeloop.errors import GoalError, VerifyError
from wakeloop.loop.goal import Verdict, note_verdict, read_verdict
from wakeloop.loop.ledger import Ledger
from wakeloop.model.user_code import raised_as
from wakeloop.platform.traces import emit_event
from wakeloop.thread.steering import StoreRead, aread_store, read_store
from wakeloop.thread.verifier import Verifier, is_asynchronous
from wakeloop.todos.operations import Question

DoneWhen = Callable[[Any], Awaitable[str | Verdict | None] | str | Verdict | None]
T = TypeVar("T")


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
        assert self.done_when is not None  # noqa: S101 - nobody asks about a goal that is not there
        with raised_as(GoalError, "done_when", self.verifier.model):
            given = self.done_when(query.state)
        if isawaitable(given):
            if hasattr(given, "close"):
                given.close()
            raise GoalError
        return read_verdict(given)

    async def aask(self, query: Query | StoreRead) -> Any:
        """Do the same as `ask`, and await the answer if it is awaitable."""
        if isinstance(query, StoreRead):
            return await aread_store(query)
        if query.item is not None:
            return await self.verifier.aask(query.item, query.state)
        assert self.done_when is not None  # noqa: S101 - nobody asks about a goal that is not there
        with raised_as(GoalError, "done_when", self.verifier.model):
            given: Any
            if is_asynchronous(self.done_when):
                given = self.done_when(query.state)
            else:  # it may run a test suite for minutes, which must not hold up the event loop
                given = await run_in_executor(None, self.done_when, query.state)
            given = await given if isawaitable(given) else given
        return read_verdict(given)
