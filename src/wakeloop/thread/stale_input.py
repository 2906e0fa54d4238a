"""An input that sends an older list back: an echo."""

from dataclasses import dataclass
from typing import Any, Self

from wakeloop.channels.reducers import Goal
from wakeloop.channels.session import SessionUpdate, read_list_number
from wakeloop.loop.ledger import Ledger
from wakeloop.stream import EchoEvent


@dataclass(frozen=True)
class InputVersion:
    """Which list an input goes out from: `given`, None where it does not say; `written` is the thread's own.

    A client that sends its state back with each message may send one that the thread has left behind.
    """

    thread_version: int
    input_version: int | None
    fault: str | None

    @classmethod
    def read(cls, state: Any, old: Ledger) -> Self:
        """Read it off the session that came with the input."""
        written = old.get("writes", 0)
        return cls(written, *read_list_number(state.get("todo_session"), written))

    @property
    def echo(self) -> EchoEvent | None:
        """The event that tells of an older list; None where it is none."""
        if self.input_version is None or self.input_version >= self.thread_version:
            return None
        return {"type": "echo", "list": self.thread_version, "given": self.input_version}

    @property
    def newest(self) -> int:
        """The number to go on from: that of a list that another thread has written on may be higher."""
        return max(self.thread_version, self.input_version or 0)


def discard_stale_input(state: Any, sent: InputVersion) -> dict[str, Any]:
    """Return a state with the thread's own session; and its own list and goal in place of an echo's."""
    kept = {**state}
    if isinstance(told := state.get("todo_session"), SessionUpdate):
        kept["todo_session"] = dict(told.before)
    if sent.echo is not None:
        before = getattr(state["todos"], "before", None)
        kept["todos"] = state["todos"] if before is None else before
        if isinstance(state["todo_goal"], Goal):
            kept["todo_goal"] = state["todo_goal"].before
    return kept
