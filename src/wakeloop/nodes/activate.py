"""Opens an activation: input, repairs, counters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import get_runtime

from wakeloop.channels.reducers import Goal, Overrides
from wakeloop.channels.session import Told
from wakeloop.channels.shapes import check_channels
from wakeloop.dialects.base import Dialect
from wakeloop.errors import SettingsError, VerifyError
from wakeloop.loop.activation import begin_activation, continue_activation
from wakeloop.loop.earned_wakes import note_list
from wakeloop.loop.inbox import find_owed_replies
from wakeloop.loop.ledger import Ledger
from wakeloop.loop.nudge import build_nudge, show_list_once
from wakeloop.loop.overrides import apply_overrides, check_overrides, settings_in_force
from wakeloop.loop.prices import check_price
from wakeloop.platform.runnables import Node
from wakeloop.platform.traces import emit_event, stream_event
from wakeloop.prompts import fill
from wakeloop.settings import LoopSettings
from wakeloop.state import TodoState, copy_ledger
from wakeloop.thread.echoes import Sent, set_aside
from wakeloop.thread.opening import Opening, asked_for, inbox_fault
from wakeloop.thread.other_runs import beginning
from wakeloop.thread.repair import repairs
from wakeloop.todos.changes import todos_changed
from wakeloop.todos.items import Todo, count_open, next_number, number


@dataclass(frozen=True, eq=False)
class Activate(Node):
    """Open an activation, or continue one for a subagent's result alone."""

    dialect: Dialect
    settings: LoopSettings
    asynchronous_verify: bool
    todo_tools: bool
    model: str | None = ""  # its name, for its price; None where only a request shows it

    def __call__(self, state: TodoState, config: RunnableConfig) -> dict[str, Any]:
        """Return the update that the activation begins with."""
        if self.asynchronous_verify:
            raise VerifyError
        return self.open_activation(state, config)

    async def acall(self, state: TodoState, config: RunnableConfig) -> dict[str, Any]:
        """Return the same update; an asynchronous verify is fine here."""
        return self.open_activation(state, config)

    def open_activation(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        """Refuse bad input, or reset what an activation resets and put its input in order."""
        runtime = get_runtime()
        old = copy_ledger(state)
        check_channels(state)
        sent = Sent.of(state, old)
        given, state = state, set_aside(state, sent)
        try:
            overrides = self.check_overrides(asked_for(state["todo_settings"], runtime.context))
        except SettingsError as error:
            return _refuse_input(given, old, str(error))
        if fault := sent.fault or _find_input_fault(state):
            return _refuse_input(given, old, f"The input is refused: {fault}.")

        todos, next_id, writes = _number_items(state["todos"], old, sent.newest)
        update: dict[str, Any] = {} if todos is given["todos"] else {"todos": {"all": todos}}
        if sent.echo is not None:
            update["todo_goal"] = state["todo_goal"]
            stream_event(sent.echo)
        opening = Opening.of(state, old)
        if opening.continues and not overrides and not isinstance(state["todo_settings"], Overrides):
            overrides = old.get("settings", {})  # a context's, too
        begun: Ledger = {**old, "settings": overrides}
        settings = (
            settings_in_force(self.settings, begun)
            if opening.continues
            else apply_overrides(self.settings, overrides)
        )
        ledger = (
            continue_activation(old, todos, settings, waiting=opening.waiting)
            if opening.continues
            else begin_activation(old, todos)
        )
        ledger |= {"next_id": next_id, "budget": settings.max_wake_cycles, "writes": writes}
        note_list(ledger, todos, settings, begins=True)
        began = beginning(config, state["remaining_steps"])
        ledger |= {"began": list(began)} if began else {}
        ledger |= {"settings": overrides} if overrides else {}
        if is_unasked(opening, ledger, todos):
            ledger["unasked"] = True
        told = todos if writes != sent.newest and self.uses_list(settings) else ()
        messages, woken = self.build_messages(state, old, opening, ledger, todos, settings, told)
        if messages and (opening.came_in or not ledger.get("unasked")):
            update["messages"] = messages
        update |= opening.taken(state, ledger)
        update |= {"todo_handoff": {"clear": True}} if state.get("todo_handoff") else {}
        if state.get("structured_response") is not None:
            update["structured_response"] = None
        counts = {"open": count_open(todos), "budget": ledger["budget"]}
        emit_event({"type": "activated", "sources": opening.sources, **counts}, ledger)
        if woken:
            emit_event({"type": "wake", "cycle": ledger["wake_cycles"], **counts, "reasons": woken}, ledger)
        return {**update, "todo_session": {"state": "running", "reason": None}, "todo_ledger": ledger}

    def build_messages(
        self,
        state: TodoState,
        old: Ledger,
        opening: Opening,
        ledger: Ledger,
        todos: Sequence[Todo],
        settings: LoopSettings,
        given: Sequence[Todo],
    ) -> tuple[list[BaseMessage], list[str]]:
        """Return the messages that the input makes, and why it is a wake, where it is one.

        A subagent's result that is answered comes in one message with all that a nudge would say. A list that
        came with words of others is shown behind them, once.
        """
        told, owed = opening.told(self.fill_prompt(settings, "no_text")), find_owed_replies(state)
        owed += find_owed_replies({"owed_replies": opening.owed})
        wakes = opening.continues and not ledger.get("unasked")
        text, reasons = build_nudge(
            self.dialect, settings, todos, state["todo_goal"], owed, told if wakes else ""
        )
        arrived = opening.messages(text if wakes else told)
        listed = text if count_open(todos) else None
        shown: list[BaseMessage] = []
        if not wakes and (arrived or isinstance(next(reversed(state["messages"]), None), HumanMessage)):
            before = () if old else state["messages"]
            shown = show_list_once(self.dialect, settings, given, state["todo_goal"], before)
        arrived += shown
        if shown or (wakes and listed):
            ledger["shown"] = arrived[-1].id or ""
        say = partial(self.fill_prompt, settings)
        mended = repairs(state, old, arrived, self.dialect.names, listed, say)
        ledger["injected"] = mended.injected
        return mended.by_id(state["messages"]), reasons if wakes else []

    def uses_list(self, settings: LoopSettings) -> bool:
        """Tell whether the model has the tools of the list."""
        return self.todo_tools and self.dialect.active(settings)

    def fill_prompt(self, settings: LoopSettings, name: str) -> str:
        """Return one of the package's texts, as these settings have it."""
        return fill(name, self.dialect.texts, settings.prompts)

    def check_overrides(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Check what a thread overrides, also against what its model can do."""
        overrides = check_overrides(self.settings, asked)
        settings = apply_overrides(self.settings, overrides)
        if self.model is not None:
            check_price(settings, self.model)
        if not self.todo_tools and self.dialect.active(settings):
            raise SettingsError("This agent's model cannot call tools, so auto_continue stays off.")
        return overrides


def is_unasked(opening: Opening, ledger: Ledger, todos: Sequence[Todo]) -> bool:
    """Tell whether nothing asks for the model: nothing came in, a wait goes on, the budget is spent."""
    if opening.continues and ledger.get("end"):
        return True
    if opening.waiting and not opening.new_input and opening.passive:
        return True
    return not (opening.came_in or count_open(todos))


def _find_input_fault(state: TodoState) -> str | None:
    """Say what is wrong with an input, or return None."""
    set_aside = (getattr(state[name], "fault", None) for name in ("todo_settings", "todos"))
    return next(filter(None, set_aside), None) or inbox_fault(state)


def _number_items(todos: list[Todo], old: Ledger, writes: int) -> tuple[list[Todo], int, int]:
    """Give ids to a list from outside, and tell of it; return it with the next number, and its own."""
    before, next_id = getattr(todos, "before", None), old.get("next_id", 1)
    if before is None and all("id" in todo for todo in todos):  # another agent's list may lack ids, too
        return todos, next_id, writes
    numbered, next_id = number(todos, next_number(before or (), next_id))
    if numbered == (before or []):  # a parent may pass on what the thread has already
        return numbered, next_id, writes
    stream_event(todos_changed(before or (), numbered))
    return numbered, next_id, writes + 1


def _refuse_input(state: TodoState, old: Ledger, sentence: str) -> dict[str, Any]:
    """Put list, goal and settings back as they were; `call_model` raises the sentence."""
    update: dict[str, Any] = {"todo_ledger": {**old, "refused": sentence}}
    if (before := getattr(state["todos"], "before", None)) is not None:
        update["todos"] = {"all": before}
    if inbox_fault(state):
        update["todo_inbox"] = []
    if isinstance(state["todo_goal"], Goal):
        update["todo_goal"] = state["todo_goal"].before
    if isinstance(told := state.get("todo_session"), Told):
        update["todo_session"] = dict(told.before) or None
    if isinstance(state["todo_settings"], Overrides):
        update["todo_settings"] = dict(state["todo_settings"].before or {})
    return update
