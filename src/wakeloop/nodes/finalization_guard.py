"""Rules on a turn's end: wake, correct, ask again, or end."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.runtime import get_runtime
from langgraph.types import Command

from wakeloop.dialects.base import Dialect
from wakeloop.loop.ending import at_rest, session_from
from wakeloop.loop.gates import Case, Costs, costs_of
from wakeloop.loop.idle_rounds import repeats
from wakeloop.loop.inbox import replies_owed
from wakeloop.loop.ledger import Ledger
from wakeloop.loop.nudge import closing_line
from wakeloop.loop.overrides import in_force
from wakeloop.loop.progress import measured
from wakeloop.loop.ruling import rule, stop, unreported
from wakeloop.loop.spending import note_round
from wakeloop.loop.turn import GUARD, case_of
from wakeloop.platform.runnables import Node
from wakeloop.platform.traces import tell, write
from wakeloop.prompts import fill
from wakeloop.settings import LoopSettings
from wakeloop.state import before_of, ledger_of, taken_in
from wakeloop.stream import Ending, Session
from wakeloop.text.marks import as_user
from wakeloop.thread.handing_over import handed_over
from wakeloop.thread.other_runs import Run, acheck, check, run_of
from wakeloop.todos.changes import todos_changed


@dataclass(frozen=True, eq=False)
class FinalizationGuard(Node):
    """Rule on the end of a turn, or of a run that `call_model` or a tool has ended."""

    dialect: Dialect
    settings: LoopSettings
    formats: bool = False
    saver: BaseCheckpointSaver[Any] | None = None  # the one that the graph was compiled with
    costs: Costs | None = None  # where they are not the graph's own

    def __call__(self, state: Any, config: RunnableConfig) -> Any:
        """Return the update that the ruling brings; the fork reads the ruling in it."""
        update = self.ruled(state)
        if session := _ending(update):
            check(self.saver, _run(state, config))
            tell({"type": "parked", "session": session}, ledger_of(state))
        return update

    async def acall(self, state: Any, config: RunnableConfig) -> Any:
        """Return the same; the saver is awaited where the run ends."""
        update = self.ruled(state)
        if session := _ending(update):
            await acheck(self.saver, _run(state, config))
            tell({"type": "parked", "session": session}, ledger_of(state))
        return update

    def ruled(self, state: Any) -> Any:
        """Take in a list that a tool wrote, then rule, and do as the ruling says."""
        ledger = ledger_of(state)
        ledger.pop("asked_at", None)
        note_round(ledger, state["messages"])
        ledger.pop("nag", None)
        written = taken_in(state["todos"], ledger)
        if written is None:
            return self.followed(state, ledger)
        write(todos_changed(before_of(state["todos"]), written))
        update = self.followed({**state, "todos": written}, ledger)
        return update if isinstance(update, Command) else {**update, "todos": {"all": written}}

    def followed(self, state: Any, ledger: Ledger) -> Any:
        """Rule, and return the update that follows: what the fork behind reads is the ruling."""
        case = self.case(state, ledger)
        ledger["ruling"] = ruling = rule(case)
        match ruling:
            case "wake":
                return {"todo_ledger": ledger}
            case "retry":
                return self.retry(ledger, case)
            case "correct":
                return self.correct(state, ledger, case)
            case "explain" | "report":
                return self.last_word(state, ledger, case, ruling)
            case "format" | "ask":
                return self.one_more(ledger, case, ruling)
            case _:
                return self.end(state, ledger, case, ruling)

    def case(self, state: Any, ledger: Ledger) -> Case:
        """Count what the turn brought, and put together what the ruling reads."""
        settings = in_force(self.settings, ledger)
        return case_of(
            ledger,
            state["messages"],
            state["todos"],
            settings,
            waiting=bool(state.get("waiting_on")),
            owed=bool(replies_owed(state)),
            drained=get_runtime().drain_requested,
            steps_left=state["remaining_steps"],
            costs=self.costs or costs_of(settings),
            unformatted=self.formats and ledger.get("asking") != "format" and ledger.get("spoke", False),
        )

    def retry(self, ledger: Ledger, case: Case) -> dict[str, Any]:
        """Ask for a reply again: the same request for an empty one, a few words for a cut or unfit one."""
        why = ledger.pop("again")
        if why in ("empty", "unread"):
            return {"todo_ledger": ledger}
        if why == "cut":
            return self.asked(ledger, case, "go_on", "retry")
        return self.asked(ledger, case, "format_again", "retry", problem=why.removeprefix("format: "))

    def correct(self, state: Any, ledger: Ledger, case: Case) -> dict[str, Any]:
        """Ask for the list to be brought up to date, in place of the end that called the guard."""
        reason, spent = case.end or stop(case), case.retries + 1
        assert reason is not None  # noqa: S101 - the ruling would be to wake
        ledger["todo_guard_retries"] = {**ledger.get("todo_guard_retries", {}), GUARD: spent}
        ledger |= {"called_by": reason, "worked": False, "todo_finalization_correction": True}
        if case.settings.guard_rearms:
            ledger |= measured(ledger, state["todos"])
        _report("correct", spent, case, reason, ledger)
        if ledger.pop("end", None) is None:
            return self.shown(state, ledger, case, "correction")
        blanks = repeats(state["messages"], ledger.get("idle_rounds", 0))
        return self.shown(state, ledger, case, "looping", **blanks)

    def last_word(self, state: Any, ledger: Ledger, case: Case, asking: Any) -> dict[str, Any]:
        """Demand a plain explanation of what is left open, or a closing report behind a spent budget."""
        reason: Any = stop(case) if asking == "explain" else unreported(case)
        _report(asking, case.retries, case, reason, ledger)
        update = self.shown(state, ledger, case, asking)
        ledger["asking"] = asking
        if asking == "explain":
            ledger["todo_guard_blocked"] = {"guard": GUARD, "message": update["messages"][-1].content}
        else:
            ledger |= {"reported": True, "end": reason}  # whatever the request spends
        return update

    def one_more(self, ledger: Ledger, case: Case, ruling: Any) -> dict[str, Any]:
        """Ask for the answer in its format, or, where there never was a list, for what is left."""
        if ruling == "format":
            return self.asked({**ledger, "asking": "format"}, case, "format", "format")
        _report("ask", case.retries, case, "settled", ledger)
        return self.asked({**ledger, "unlisted": "asked"}, case, "no_list", "guard")

    def shown(self, state: Any, ledger: Ledger, case: Case, prompt: str, **blanks: Any) -> dict[str, Any]:
        """Inject the guard's message with the live list, and before it the line that closes a round."""
        listing = self.dialect.listing(state["todos"], state["todo_goal"], case.settings)
        update = self.asked(ledger, case, prompt, "guard", open=case.open, list=listing, **blanks)
        update["messages"][:0] = closing_line(state["messages"], self.dialect, case.settings)
        return update

    def asked(self, ledger: Ledger, case: Case, prompt: str, kind: Any, **blanks: Any) -> dict[str, Any]:
        """Inject a user message and go back to the model."""
        message = as_user(kind, fill(prompt, self.dialect.texts, case.settings.prompts, **blanks))
        ledger["injected"] = [message.id or ""]
        if "list" in blanks:
            ledger["shown"] = message.id or ""
        return {"messages": [message], "todo_ledger": ledger}

    def end(self, state: Any, ledger: Ledger, case: Case, reason: Ending) -> Any:
        """End the run, by way of the parent if it is handed over."""
        session = session_from(ledger, state["todos"], case.settings, reason, state.get("waiting_on") or ())
        if reason == "handed_over":
            return handed_over(state, session)
        if ledger.get("asking") == "explain":
            ledger |= {"todo_guard_blocked": None, "todo_guard_suppressed": True}
        messages: list[BaseMessage] = state["messages"]
        rest = at_rest(ledger, tail=(messages[-1].id or "") if messages else None)
        unformatted = self.formats and "structured_response" not in state
        value = {"structured_response": None} if unformatted else {}
        return {"todo_session": session, "todo_ledger": rest, **value}


def _run(state: Any, config: RunnableConfig) -> Run | None:
    return run_of(config, state["remaining_steps"], ledger_of(state))


def _ending(update: Any) -> Session | None:
    """Return the session that an update ends its run with, if it does."""
    written = update.update if isinstance(update, Command) else update
    return written.get("todo_session") if isinstance(written, Mapping) else None


def _report(action: str, retry: int, case: Case, reason: Ending | None, ledger: Ledger) -> None:
    counts = {"retry": retry, "retries": case.settings.guard_retries, "open": case.open}
    tell({"type": "guard", "action": action, **counts, "reason": reason}, ledger)
