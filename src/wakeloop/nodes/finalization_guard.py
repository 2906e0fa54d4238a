"""Rules on a turn's end: wake, correct, ask again, or end."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import get_runtime
from langgraph.types import Command, Send

from wakeloop.dialects.base import Dialect
from wakeloop.loop.gates import (
    CORRECTION_STEPS,
    GATES,
    REQUEST_STEPS,
    Case,
    first_stop,
    hindered,
    made_progress,
    may_correct,
    same_again,
    yields,
)
from wakeloop.model.wire_order import text_of
from wakeloop.platform.runnables import Node
from wakeloop.prompts import fill
from wakeloop.settings import LoopSettings, effective
from wakeloop.state import PASSING, Ledger, TodoState, ledger_of, replies_owed, taken_in
from wakeloop.stream import Ending, Session, todos_changed
from wakeloop.text.marks import as_user
from wakeloop.thread.other_runs import Run, Witness, run_of
from wakeloop.todos.items import count_open, is_open

GUARD = "open_todos"  # the name of this guard in the ledger


@dataclass(frozen=True, eq=False)
class FinalizationGuard(Node):
    """Rule on the end of a turn, or of a run that `call_model` or a tool has ended."""

    dialect: Dialect
    settings: LoopSettings
    formats: bool = False
    witness: Witness = field(default_factory=Witness)

    def __call__(self, state: Any, config: RunnableConfig) -> Any:
        """Return the update that the ruling brings; the fork reads `next` in it."""
        update = self.ruled(state)
        if session := _ending(update):
            self.witness.check(_run(state, config))
            _report_end(session)
        return update

    async def acall(self, state: Any, config: RunnableConfig) -> Any:
        """Return the same; the saver is awaited where the run ends."""
        update = self.ruled(state)
        if session := _ending(update):
            await self.witness.acheck(_run(state, config))
            _report_end(session)
        return update

    def ruled(self, state: Any) -> Any:
        """Take in a list that a tool wrote, then rule."""
        ledger = ledger_of(state)
        ledger.pop("asked_at", None)
        written = taken_in(state["todos"], ledger)
        if written is None:
            return self.ruling(state, ledger)
        get_runtime().stream_writer(todos_changed(state["todos"].before, written))
        ruling = self.ruling({**state, "todos": written}, ledger)
        return ruling if isinstance(ruling, Command) else {**ruling, "todos": {"all": written}}

    def ruling(self, state: Any, ledger: Ledger) -> Any:
        """Ask in order: what has ended the run, what is asked again, the guard's own turn, the gates."""
        settings = effective(self.settings, ledger.get("settings"))
        case = self.turn_ended(state, ledger, settings)
        if ending := already_over(ledger):
            return self.ended(state, ledger, case, ending)
        if ledger.get("again"):
            return self.again(state, ledger, case)
        if ledger.get("called_by"):
            return self.corrected(state, ledger, case)
        reason = first_stop(case)
        if reason is None:
            return {"todo_ledger": {**ledger, "next": "wake"}}
        if may_correct(reason, case) and not ledger.get("todo_guard_suppressed"):
            return self.correct_or_end(state, ledger, case, reason)
        return self.ended(state, ledger, case, reason)

    def turn_ended(self, state: Any, ledger: Ledger, settings: LoopSettings) -> Case:
        """Count what the turn brought, and put together what the gates read."""
        todos = state["todos"]
        turn = not ledger.get("again") and ledger.get("asking") != "format"
        if turn and ledger.pop("waking", False):
            progress = made_progress(
                todos,
                ledger.pop("open_at_wake", ()),
                ledger.get("peak", 0),
                worked=ledger.get("worked", False),
            )
            ledger["idle_wakes"] = 0 if progress else ledger.get("idle_wakes", 0) + 1
        ledger["peak"] = max(ledger.get("peak", 0), sum(not is_open(todo) for todo in todos))
        repeated = bool(
            settings.stop_on_repeat
            and ledger.get("last_wake")
            and same_again(text_of(state["messages"][-1]), todos) == ledger["last_wake"]
        )
        return Case(
            open=count_open(todos),
            settings=settings,
            wakes=ledger.get("wake_cycles", 0),
            idle_wakes=ledger.get("idle_wakes", 0),
            waiting=bool(state.get("waiting_on")),
            owed=bool(replies_owed(state)),
            drained=get_runtime().drain_requested,
            steps_left=state["remaining_steps"],
            repeated=repeated,
        )

    def again(self, state: Any, ledger: Ledger, case: Case) -> Any:
        """Ask for a reply again: the same request for an empty one, a few words for a cut or unfit one."""
        what = ledger.pop("again")
        if hindrance := hindered(case, CORRECTION_STEPS):
            return self.ended(state, ledger, case, hindrance)
        ledger["next"] = "call_model"
        if what == "empty":
            return {"todo_ledger": ledger}
        blanks = {"problem": what.removeprefix("format: ")} if what.startswith("format: ") else {}
        return self.asked(ledger, case, "format_again" if blanks else "go_on", "retry", **blanks)

    def corrected(self, state: Any, ledger: Ledger, case: Case) -> Any:
        """A correction's turn has ended: only the first two gates have a say, then the guard goes on."""
        if reason := next((r for gate in GATES[:2] if (r := gate(case))), None):
            return self.ended(state, ledger, case, reason)
        return self.correct_or_end(state, ledger, case, ledger["called_by"])

    def correct_or_end(self, state: Any, ledger: Ledger, case: Case, reason: Ending) -> Any:
        """Ask for the list to be brought up to date while retries last, then end or demand an explanation."""
        spent, allowed = ledger.get("todo_guard_retries", {}).get(GUARD, 0), case.settings.guard_retries
        listing = self.dialect.listing(state["todos"], state["todo_goal"], case.settings)
        blanks = {"open": case.open, "list": listing}
        if spent < allowed:
            if hindrance := hindered(case, CORRECTION_STEPS):
                return self.ended(state, ledger, case, hindrance)
            ledger["todo_guard_retries"] = {**ledger.get("todo_guard_retries", {}), GUARD: spent + 1}
            ledger |= {"called_by": reason, "worked": False, "todo_finalization_correction": True}
            _report("correct", spent + 1, case, reason)
            return self.asked(ledger, case, "correction", "guard", **blanks)
        if not allowed or case.settings.on_guard_exhausted == "proceed" or case.drained:
            return self.ended(state, ledger, case, reason)
        if case.steps_left < REQUEST_STEPS:
            return self.ended(state, ledger, case, "step_limit")
        _report("explain", spent, case, reason)
        update = self.asked(ledger, case, "explain", "guard", **blanks)
        words = update["messages"][0].content
        update["todo_ledger"] |= {
            "asking": "explain",
            "todo_guard_blocked": {"guard": GUARD, "message": words},
        }
        return update

    def asked(self, ledger: Ledger, case: Case, prompt: str, kind: Any, **blanks: Any) -> dict[str, Any]:
        """Inject a user message and go back to the model."""
        message = as_user(kind, fill(prompt, self.dialect.name, case.settings.prompts, **blanks))
        ledger |= {"next": "call_model", "injected": [message.id or ""]}
        if "list" in blanks:
            ledger["shown"] = message.id or ""
        return {"messages": [message], "todo_ledger": ledger}

    def ended(self, state: Any, ledger: Ledger, case: Case, reason: Ending) -> Any:
        """End the run: first in the format where it is settled, by way of the parent if handed over."""
        unformatted = self.formats and ledger.get("asking") != "format" and ledger.get("spoke")
        if reason == "settled" and unformatted:
            if (hindrance := hindered(case, REQUEST_STEPS)) is None:
                ledger["asking"] = "format"
                return self.asked(ledger, case, "format", "format")
            reason = hindrance
        session: Session = {
            "state": yields(reason, case.open),
            "reason": reason,
            "open": case.open,
            "wakes": case.wakes,
            "budget": case.settings.max_wake_cycles,
        }
        if session["state"] == "waiting":
            session["on"] = _waits_on(state)
        for key in PASSING:
            ledger.pop(key, None)  # type: ignore[misc]
        ledger["next"] = "__end__"
        messages: list[BaseMessage] = state["messages"]
        if messages:
            ledger["tail"] = messages[-1].id or ""
        if reason == "handed_over":
            return _handed_over(state, session)
        return {"todo_session": session, "todo_ledger": ledger}


def already_over(ledger: Ledger) -> Ending | None:
    """Tell how a run has ended already, before any gate is asked."""
    if end := ledger.get("end"):
        return end
    if ledger.get("asking") == "format" and not ledger.get("again"):
        return "settled"
    if ledger.get("asking") == "explain":
        ledger["todo_guard_blocked"], ledger["todo_guard_suppressed"] = None, True
        return "guard_blocked"
    return None


def _run(state: Any, config: RunnableConfig) -> Run | None:
    return run_of(config, state["remaining_steps"], ledger_of(state))


def _ending(update: Any) -> Session | None:
    """Return the session that an update ends its run with, if it does."""
    written = update.update if isinstance(update, Command) else update
    return written.get("todo_session") if isinstance(written, Mapping) else None


def _report_end(session: Session) -> None:
    get_runtime().stream_writer({"type": "parked", "session": session})


def _report(action: str, retry: int, case: Case, reason: str) -> None:
    counts = {"retry": retry, "retries": case.settings.guard_retries, "open": case.open}
    get_runtime().stream_writer({"type": "guard", "action": action, **counts, "reason": reason})


def _waits_on(state: TodoState) -> str:
    first = next(iter(state.get("waiting_on") or ()), None)
    return str(first.get("on", "peer")) if isinstance(first, Mapping) else "peer"


def _handed_over(state: Any, session: Session) -> Command[Any]:
    """Send a tool's way to the parent with all of this run: history, siblings, list, session."""
    goto: list[Any] = []
    update: dict[str, Any] = {}
    for entry in state.get("todo_handoff") or ():
        goto += [Send(g["node"], g["arg"]) if "arg" in g else g["node"] for g in entry["goto"]]
        update |= entry["update"]
    run = {"messages": list(state["messages"]), "todos": list(state["todos"]), "todo_session": session}
    return Command(graph=Command.PARENT, goto=goto, update={**run, **update})
