"""Spends one cycle of the budget and injects the nudge."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig

from wakeloop.dialects.base import Dialect
from wakeloop.loop import nudge
from wakeloop.loop.activation import begin_wake
from wakeloop.loop.before_request import Notices
from wakeloop.loop.goal import is_unmet
from wakeloop.loop.inbox import find_owed_replies
from wakeloop.loop.ledger import Ledger
from wakeloop.loop.overrides import settings_in_force
from wakeloop.loop.progress import fingerprint_reply
from wakeloop.loop.silences import ends_by_asking, find_doubt, must_insist, note_doubt, note_wake
from wakeloop.loop.spending import count_earned_wakes, note_list
from wakeloop.model.context_window import find_visible
from wakeloop.platform.runnables import Node
from wakeloop.platform.traces import emit_event
from wakeloop.settings import LoopSettings
from wakeloop.state import TodoState, adopt_list, copy_ledger
from wakeloop.text.marks import make_user_message, with_list_stamp
from wakeloop.todos.changes import stamp_of, write_all
from wakeloop.todos.items import Todo, count_open


@dataclass(frozen=True, eq=False)
class Wake(Node):
    """Wake the model once more. Several reasons make one message and cost one cycle."""

    dialect: Dialect
    settings: LoopSettings
    whole: bool = False  # show the whole list each time: a hook may have removed what the model saw

    def __call__(self, state: TodoState, config: RunnableConfig) -> dict[str, Any]:
        """Return the nudge and the counters of a new turn."""
        ledger = copy_ledger(state)
        settings = settings_in_force(self.settings, ledger)
        written = adopt_list(state["todos"], ledger)  # by hand, after the guard has ruled
        todos, owed = state["todos"] if written is None else written, find_owed_replies(state)
        note_list(ledger, todos, settings)
        cycle, left = ledger.get("wake_cycles", 0) + 1, count_open(todos)
        dialect, few = self.shorten(state, ledger, settings, todos)
        some_open = left + is_unmet(ledger)
        doubt = find_doubt(ledger, state["messages"], settings) if some_open else None
        asks = doubt or ends_by_asking(state["messages"])
        insists = must_insist(ledger, settings, some_open) and not asks
        text, reasons = nudge.build_nudge(
            dialect, few, todos, state["todo_goal"], owed, insists=insists, doubt=doubt
        )
        missing = "" if doubt else nudge.render_missing(self.dialect, settings, ledger, insists=insists)
        earlier = ""
        if (
            doubt == "topic" and ledger.get("uncalled") == "unsaid"
        ):  # they did not follow the person's message
            earlier = nudge.name_old_items(self.dialect, settings, state["todos"], state["todo_goal"])
        changes = nudge.render_reopened(self.dialect, settings, ledger)
        message = build_message(Notices(changes, earlier, missing=missing, nudge=text), doubt, todos)
        budget = settings.max_wake_cycles + count_earned_wakes(ledger, settings)
        counts = {"cycle": cycle, "budget": budget, "open": left}
        emit_event({"type": "wake", **counts, "reasons": ["goal", *reasons] if missing else reasons}, ledger)
        after = begin_wake(ledger, cycle, todos)
        after |= {"injected": [message.id or ""], "todo_finalization_correction": None}
        note_wake(after, settings, insists=insists)
        note_doubt(after, doubt, subagents=bool(state.get("todo_subagents")))
        if earlier or (left and dialect is self.dialect and doubt is None):  # others do not show it whole
            after["shown"] = message.id or ""
        if settings.stop_on_repeat:
            after["last_wake"] = fingerprint_reply(state["messages"], todos)
        messages = [*nudge.close_round(state["messages"], self.dialect, settings), message]
        update: dict[str, Any] = {"messages": messages, "todo_ledger": after}
        if written is not None:
            update["todos"] = write_all(written)
        return update

    def shorten(
        self, state: TodoState, ledger: Ledger, settings: LoopSettings, todos: Sequence[Todo]
    ) -> tuple[Dialect, LoopSettings]:
        """Return what words the nudge: shorter ones where the model knows the newest list."""
        if self.whole or "unseen" in ledger:
            return self.dialect, settings
        visible = find_visible(state["messages"], ledger, "rounds")
        return nudge.shorten_nudge(self.dialect, settings, visible, todos)


def build_message(notices: Notices, doubt: str | None, todos: Sequence[Todo]) -> HumanMessage:
    """Return the nudge; with its stamp it is the newest message by which the model knows the list."""
    message = make_user_message("wake", notices.compose(), doubt=doubt)
    says_list = notices.changes or notices.earlier or (count_open(todos) and doubt is None)
    return with_list_stamp(message, stamp_of(todos)) if says_list else message
