"""The verifier: decides whether an item is done."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from inspect import isawaitable, iscoroutinefunction
from typing import Any

from wakeloop.checks.argument_values import read_verdict
from wakeloop.errors import VerifyError
from wakeloop.model.user_code import raised_as
from wakeloop.stream import VerifyEvent
from wakeloop.todos.items import Todo
from wakeloop.todos.operations import Board, Outcome, Question

Verify = Callable[[Todo, Any], Awaitable[str | None] | str | None]


def is_asynchronous(judge: Callable[..., Any] | None) -> bool:
    """Tell whether a function that judges work is declared as asynchronous."""
    return iscoroutinefunction(judge) or iscoroutinefunction(getattr(judge, "__call__", None))  # noqa: B004 - an object with an async __call__


@dataclass(frozen=True)
class Verifier:
    """The caller's `verify`, if there is one. What it raises is raised as a `VerifyError`."""

    verify: Verify | None = None
    model: object = None  # its keys are redacted in errors

    def ask(self, question: Question, state: Any) -> str | None:
        """Ask about an item. None accepts it; a string is the reason for a refusal."""
        if self.verify is None:
            return None
        with raised_as(VerifyError, "verify", self.model):
            verdict = self.verify(question.todo, state)
        if isawaitable(verdict):
            if hasattr(verdict, "close"):
                verdict.close()
            raise VerifyError
        return read_verdict(verdict)

    async def aask(self, question: Question, state: Any) -> str | None:
        """Ask like `ask`, and await the verdict if it is awaitable."""
        if self.verify is None:
            return None
        with raised_as(VerifyError, "verify", self.model):
            verdict = self.verify(question.todo, state)
            verdict = await verdict if isawaitable(verdict) else verdict
        return read_verdict(verdict)

    def make_events(self, outcomes: Sequence[Outcome], after: Board) -> Iterator[VerifyEvent]:
        """Yield an event for each item that was asked about."""
        if self.verify is None:
            return
        for outcome in outcomes:
            for key in outcome.touched:
                todo = outcome.board.find(key)
                why = outcome.denied.get(key)
                if todo is None or (why is None and todo["status"] != "completed"):
                    continue
                yield {
                    "type": "verify",
                    "id": key,
                    "content": todo["content"],
                    "accepted": why is None,
                    "reason": why,
                    "refusals": after.refusals.get(str(key), 0),
                }
