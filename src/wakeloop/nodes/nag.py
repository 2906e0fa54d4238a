"""Adds a reminder where the model will read it."""

from dataclasses import dataclass
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig

from wakeloop.dialects.base import Dialect
from wakeloop.loop.before_request import Notices
from wakeloop.loop.overrides import settings_in_force
from wakeloop.platform.runnables import Node
from wakeloop.platform.traces import emit_event
from wakeloop.prompts import fill_prompt
from wakeloop.settings import LoopSettings
from wakeloop.state import TodoState, copy_ledger
from wakeloop.text.marks import append_to_result, find_last
from wakeloop.todos.items import count_open


@dataclass(frozen=True, eq=False)
class Nag(Node):
    """Append a reminder to the last tool result. It blocks nothing."""

    dialect: Dialect
    settings: LoopSettings

    def __call__(self, state: TodoState, config: RunnableConfig) -> dict[str, Any]:
        """Return the last tool result with the reminder as its suffix."""
        ledger = copy_ledger(state)
        settings = settings_in_force(self.settings, ledger)
        last = find_last(ToolMessage, state["messages"])
        left = count_open(state["todos"])
        if last is None or not (left or settings.nag_when == "always"):
            return {}  # this round has finished the list
        rounds = ledger.get("todo_stale_iterations", 0)
        text = fill_prompt("nag", self.dialect.prompt_folder, settings.prompts, rounds=rounds, open=left)
        emit_event({"type": "nag", "rounds": rounds, "open": left}, ledger)
        # Part of a result, so that the order of the messages stays one that every server accepts.
        return {"messages": [append_to_result(last, Notices(reminder=text).compose())]}
