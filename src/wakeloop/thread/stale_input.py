"""Inputs that send back an outdated list."""

from dataclasses import dataclass
from typing import Any, Self

from wakeloop.channels.reducers import Goal
from wakeloop.channels.todo_channels import SessionUpdate, read_list_number
from wakeloop.loop.ledger import Ledger
from wakeloop.stream import EchoEvent


@dataclass(frozen=True)
class InputVersion:
    """Which version of the list an input is based on.

    Some clients send their whole state back with each message, and that state may be older than the thread.
    `thread_version` is the thread's own; `input_version` is None if the input does not say.
    """

    thread_version: int
    input_version: int | None
    fault: str | None

    @classmethod
    def read(cls, state: Any, old: Ledger) -> Self:
        """Read it from the session that came with the input."""
        thread_version = old.get("writes", 0)
        return cls(thread_version, *read_list_number(state.get("todo_session"), thread_version))

    @property
    def echo(self) -> EchoEvent | None:
        """The event that reports an outdated list; None if the list is current."""
        if self.input_version is None or self.input_version >= self.thread_version:
            return None
        return {"type": "echo", "list": self.thread_version, "given": self.input_version}

    @property
    def newest(self) -> int:
        """The version to continue from. The input's may be higher if it was copied from another thread."""
        return max(self.thread_version, self.input_version or 0)


def discard_stale_input(state: Any, version: InputVersion) -> dict[str, Any]:
    """Return the state with the thread's own session, and its own list and goal if the input is stale."""
    own = {**state}
    if isinstance(session := state.get("todo_session"), SessionUpdate):
        own["todo_session"] = dict(session.before)
    if version.echo is None:
        return own
    before = getattr(state["todos"], "before", None)
    if before is not None:
        own["todos"] = before
    if isinstance(state["todo_goal"], Goal):
        own["todo_goal"] = state["todo_goal"].before
    return own
