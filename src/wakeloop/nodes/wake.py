"""Spends one cycle of the budget and injects the nudge."""

from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig

from wakeloop.dialects.base import Dialect
from wakeloop.loop.activation import woken
from wakeloop.loop.earned import earned, note_list
from wakeloop.loop.inbox import replies_owed
from wakeloop.loop.nudge import closing_line, nudge, shortened
from wakeloop.loop.overrides import in_force
from wakeloop.loop.progress import same_again
from wakeloop.platform.runnables import Node
from wakeloop.platform.traces import tell
from wakeloop.settings import LoopSettings
from wakeloop.state import TodoState, ledger_of, taken_in
from wakeloop.text.marks import as_user, text_of
from wakeloop.todos.items import count_open


@dataclass(frozen=True, eq=False)
class Wake(Node):
    """Wake the model once more; several reasons make one message and cost one cycle."""

    dialect: Dialect
    settings: LoopSettings
    whole: bool = False  # the list in every nudge: a hook may have taken from the model what it has seen

    def __call__(self, state: TodoState, config: RunnableConfig) -> dict[str, Any]:
        """Return the nudge and the counters of a new turn."""
        ledger = ledger_of(state)
        settings = in_force(self.settings, ledger)
        written = taken_in(state["todos"], ledger)  # by a hand, since the guard has ruled
        todos, owed = state["todos"] if written is None else written, replies_owed(state)
        note_list(ledger, todos, settings)
        cycle, left = ledger.get("wake_cycles", 0) + 1, count_open(todos)
        dialect, few = self.dialect, settings
        if not self.whole:
            dialect, few = shortened(dialect, settings, state["messages"], todos)
        text, reasons = nudge(dialect, few, todos, state["todo_goal"], owed)
        message = as_user("wake", text)
        event = {
            "cycle": cycle,
            "budget": settings.max_wake_cycles + earned(ledger, settings),
            "open": left,
            "reasons": reasons,
        }
        tell({"type": "wake", **event}, ledger)
        after = woken(ledger, cycle, todos)
        after |= {"injected": [message.id or ""], "todo_finalization_correction": None}
        if left and dialect is self.dialect:
            after["shown"] = message.id or ""
        if settings.stop_on_repeat:
            after["last_wake"] = same_again(text_of(state["messages"][-1]), todos)
        closed = closing_line(state["messages"], self.dialect, settings)
        update: dict[str, Any] = {"messages": [*closed, message], "todo_ledger": after}
        return update if written is None else {**update, "todos": {"all": written}}
