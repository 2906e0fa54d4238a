"""Rules on the end of a turn: wake, correct, retry, or end."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import time
from typing import Any, cast

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.runtime import get_runtime
from langgraph.types import Command

from wakeloop.dialects.base import Dialect
from wakeloop.loop import turn
from wakeloop.loop.before_request import Notices, announce, place_notices
from wakeloop.loop.case import Case, Costs, choose_costs
from wakeloop.loop.extra_requests import may_steer
from wakeloop.loop.gates import find_stop
from wakeloop.loop.goal import asks_goal, build_wait_entry
from wakeloop.loop.inbox import find_owed_replies
from wakeloop.loop.item_notes import find_due, find_suspects, has_given_up, note_writes, precedes_end
from wakeloop.loop.ledger import Ledger
from wakeloop.loop.list_changes import VERIFIER, note_changes
from wakeloop.loop.nudge import close_round, render_reopened
from wakeloop.loop.overrides import settings_in_force
from wakeloop.loop.progress import begin_measuring, describe_repeats
from wakeloop.loop.replies import RETRY_PROMPTS, has_said_something
from wakeloop.loop.ruling import rule, rule_without_report
from wakeloop.loop.silences import begin_push, build_wait, ends_by_asking, restart_counts
from wakeloop.loop.spending import add_round
from wakeloop.loop.waits import set_ceilings
from wakeloop.platform.runnables import Node
from wakeloop.platform.traces import emit_event, stream_event
from wakeloop.prompts import fill_prompt
from wakeloop.settings import LoopSettings
from wakeloop.state import adopt_list, copy_ledger, list_before
from wakeloop.stream import EndReason, Session
from wakeloop.text.marks import make_user_message, with_list_stamp
from wakeloop.thread import concurrent_runs, steering
from wakeloop.thread.handoff import build_handoff
from wakeloop.thread.judges import Judges, Play, Query, ask_about_items, take_verdict
from wakeloop.todos.changes import make_todos_event, stamp_of, write_all
from wakeloop.todos.items import Todo, count_open
from wakeloop.todos.operations import Board, Change, Outcome, ask_verifier, prune_refusals, with_status


@dataclass(frozen=True, eq=False)
class FinalizationGuard(Node):
    """Rule on the end of a turn, or of a run that `call_model` or a tool has ended."""

    dialect: Dialect
    settings: LoopSettings
    judges: Judges = field(default_factory=Judges)
    formats: bool = False
    saver: BaseCheckpointSaver[Any] | None = None  # the one that the graph was compiled with
    costs: Costs | None = None  # where they are not the graph's own
    reviews: bool = False  # whether a person may decide calls together
    clock: Callable[[], float] = time

    @property
    def needs_proof(self) -> bool:
        """Whether only a verifier says that work is done, so that an item has to pass it (rule 21)."""
        return self.judges.verifier.verify is not None and self.judges.done_when is None

    def __call__(self, state: Any, config: RunnableConfig) -> Any:
        """Return the update for the ruling, which the router reads."""
        update = self.judges.finish(self.rule_turn(state))
        if session := _find_session(update):
            concurrent_runs.check_concurrent_runs(self.saver, _read_run(state, config))
            emit_event({"type": "parked", "session": session}, copy_ledger(state))
        return update

    async def acall(self, state: Any, config: RunnableConfig) -> Any:
        """Return the same; judges are awaited, and the saver if the run ends."""
        update = await self.judges.afinish(self.rule_turn(state))
        if session := _find_session(update):
            await concurrent_runs.acheck_concurrent_runs(self.saver, _read_run(state, config))
            emit_event({"type": "parked", "session": session}, copy_ledger(state))
        return update

    def rule_turn(self, state: Any) -> Play[Any]:
        """Take over a list that a tool wrote, then rule, and do what the ruling says."""
        ledger = copy_ledger(state)
        ledger.pop("asked_at", None)
        if turn.waits_for_limit(ledger):  # nothing is judged or counted: the same request is made again later
            settings = settings_in_force(self.settings, ledger)
            ledger["ruling"] = "waiting"
            return self.end_run(state, ledger, Case(count_open(state["todos"]), settings), "waiting")
        if turn.is_unanswered(ledger, state["messages"]):
            ledger["again"] = "unread"
        else:
            add_round(ledger, state["messages"])
            ledger.pop("nag", None)
        written = adopt_list(state["todos"], ledger)
        if written is None:
            return (yield from self.judge_turn(state, ledger))
        stream_event(make_todos_event(list_before(state["todos"]), written))
        update = yield from self.judge_turn({**state, "todos": written}, ledger)
        return update if isinstance(update, Command) else {"todos": write_all(written), **update}

    def judge_turn(self, state: Any, ledger: Ledger) -> Play[Any]:
        """Take what a person has steered in meanwhile, then rule."""
        measured = ledger.get("waking", False)
        case = self.build_case(state, ledger)
        if case.again is not None or ledger.get("unasked"):  # the store has been read in this superstep
            return (yield from self.judge_goal(state, ledger, case, measured=measured))
        entries = yield from steering.query_store(steering.plan_read(ledger, wanted=may_steer(case)))
        update = steering.take_entries(entries, ledger, state["todos"], self.dialect)
        if "todos" in update:
            state = {**state, "todos": update["todos"]["all"]}
            gave_up = has_given_up(ledger, state["todos"])
            case = replace(case, open=count_open(state["todos"]), gave_up=gave_up)
        filler = fill_prompt("continued", self.dialect.prompt_folder, case.settings.prompts)
        if words := steering.build_steered_messages(entries, state["messages"], filler):
            restart_counts(ledger, case.settings, some_open=case.open)
            case = replace(case, steered=True, called_by=None, idle_wakes=0)
            update |= {"messages": words, **steering.find_ended_waits(state.get("waiting_on"))}
        ruled = yield from self.judge_goal(state, ledger, case, measured=measured)
        return {**update, **ruled} if update else ruled

    def judge_goal(self, state: Any, ledger: Ledger, case: Case, *, measured: bool) -> Play[Any]:
        """Ask for the goal where it is time to, then rule. `measured`: the turn was that of a wake."""
        if not asks_goal(case):
            return (yield from self.look_again(state, ledger, case))
        verdict = yield Query(state)
        if take_verdict(ledger, verdict) and measured:  # something else is missing than before: progress
            ledger["idle_wakes"] = 0
            ledger.pop("called_by", None)
            case = replace(case, idle_wakes=0, called_by=None)
        case = replace(case, goal=verdict.kind, judged=True)
        if verdict.kind != "wait":
            return self.follow_ruling(state, ledger, case)
        entry = build_wait_entry(verdict, self.clock())
        waiting = {**state, "waiting_on": [*(state.get("waiting_on") or ()), entry]}
        return {**self.follow_ruling(waiting, ledger, case), "waiting_on": [entry]}

    def look_again(self, state: Any, ledger: Ledger, case: Case) -> Play[Any]:
        """Put items to the verifier once more where a call ran after their verdict, then rule."""
        verifier, todos = self.judges.verifier, state["todos"]
        due = find_due(ledger, todos) if verifier.verify is not None else []
        if not due or not precedes_end(case, rule(case)):
            return self.follow_ruling(state, ledger, case)
        before = board = Board(todos=todos, refusals={**ledger.get("refusals", {})})
        outcomes: list[Outcome] = []
        for todo in due:
            ledger["looks"] = {**ledger["looks"], str(todo["id"]): "had"}
            look = ask_verifier(board, todo, 0, {}, fallback=with_status(todo, "pending"))
            new, why = yield from ask_about_items(look, state)
            if why is not None:
                board, key = board.with_item(new), todo["id"]
                outcomes.append(Outcome(Change(key, new["status"]), board, touched=(key,), denied={key: why}))
        if not outcomes:
            return self.follow_ruling(state, ledger, case)
        after = list(board.todos)
        self.note_refusals(ledger, before, outcomes)
        gave_up = has_given_up(ledger, after)
        case = replace(case, open=count_open(after), gave_up=gave_up, suspects=0)
        update = self.follow_ruling({**state, "todos": after}, ledger, case)
        return {**update, "todos": write_all(after)}

    def note_refusals(self, ledger: Ledger, before: Board, outcomes: Sequence[Outcome]) -> None:
        """Note the items that a second look refused: they count, and are said before the next request."""
        after = outcomes[-1].board
        ledger["refusals"] = prune_refusals(after)
        ledger["writes"] = ledger.get("writes", 0) + 1
        note_writes(ledger, before, outcomes, verified=True)
        refused = [cast(Todo, after.find(outcome.touched[0])) for outcome in outcomes]
        whys = [outcome.denied[outcome.touched[0]] for outcome in outcomes]
        ledger["reopened"] = list(map(self.dialect.render_refused, refused, whys))
        note_changes(ledger, before.todos, after.todos, VERIFIER)
        self.judges.verifier.stream_verdicts(outcomes, after)
        stream_event(make_todos_event(before.todos, after.todos))

    def follow_ruling(self, state: Any, ledger: Ledger, case: Case) -> Any:
        """Note the ruling for the router, and return the update that follows."""
        ledger["ruling"] = ruling = rule(case)
        match ruling:
            case "wake" | "steer":
                return {"todo_ledger": ledger}
            case "retry":
                return self.retry_reply(state["messages"], ledger, case)
            case "correct":
                return self.request_correction(state, ledger, case)
            case "explain" | "report":
                return self.request_last_word(state, ledger, case, ruling)
            case "format" | "ask" | "audit":
                return self.request_answer(state, ledger, case, ruling)
            case _:
                return self.end_run(state, ledger, case, ruling)

    def build_case(self, state: Any, ledger: Ledger) -> Case:
        """Count what the turn achieved, and return the case to rule on."""
        settings = settings_in_force(self.settings, ledger)
        return turn.build_case(
            ledger,
            state["messages"],
            state["todos"],
            settings,
            goal=ledger.get("goal") if self.judges.done_when is not None else None,
            waiting=bool(state.get("waiting_on")),
            closed=steering.is_steering_blocked(state.get("waiting_on")),
            owed=bool(find_owed_replies(state)),
            subagents=bool(state.get("todo_subagents")),
            drained=get_runtime().drain_requested,
            steps_left=state["remaining_steps"],
            costs=self.costs or choose_costs(settings, reviews=self.reviews),
            unformatted=self.formats and ledger.get("asking") != "format" and has_said_something(ledger),
        )

    def retry_reply(self, messages: Sequence[BaseMessage], ledger: Ledger, case: Case) -> dict[str, Any]:
        """Request a reply again: unchanged, or with a few words on what was wrong.

        Those on a reply that is not stored come after the line that stands for it.
        """
        why = ledger["again"] if ledger["again"] == "copied" else ledger.pop("again")  # which may be meant
        if why in ("empty", "unread"):
            return {"todo_ledger": ledger}
        if why not in RETRY_PROMPTS:
            return self.inject(ledger, case, "format_again", "retry", problem=why.removeprefix("format: "))
        folder, prompts = self.dialect.prompt_folder, case.settings.prompts
        text = announce(fill_prompt(RETRY_PROMPTS[why], folder, prompts), case.settings, RETRY_PROMPTS[why])
        filler = fill_prompt("continued", folder, prompts)
        written = place_notices(messages, Notices(nudge=text), "retry", filler=filler, sent=True)
        ledger["injected"] = [written[-1].id or ""]
        return {"messages": written, "todo_ledger": ledger}

    def request_correction(self, state: Any, ledger: Ledger, case: Case) -> dict[str, Any]:
        """Ask the model to update its list, in place of the end that called the guard."""
        reason, spent = case.end or find_stop(case), case.retries + 1
        assert reason is not None  # noqa: S101 - the ruling would be to wake
        ledger["todo_guard_retries"] = {**ledger.get("todo_guard_retries", {}), turn.GUARD: spent}
        ledger.pop("woken", None)
        ledger |= {"called_by": reason, "worked": False, "todo_finalization_correction": True}
        # as insistent as the last wake was, whatever that brought, unless the model waits for an answer
        asked = ends_by_asking(state["messages"])
        begin_push(ledger, forced=ledger.get("push") == "call" and not asked)
        if case.settings.guard_rearms:
            ledger |= begin_measuring(ledger, state["todos"])
        _send_event("correct", spent, case, reason, ledger)
        if ledger.pop("end", None) is None:
            return self.inject_with_list(state, ledger, case, "correction")
        blanks = describe_repeats(state["messages"], ledger.get("idle_rounds", 0))
        return self.inject_with_list(state, ledger, case, "looping", **blanks)

    def request_last_word(self, state: Any, ledger: Ledger, case: Case, asking: Any) -> dict[str, Any]:
        """Demand an explanation of what is left open, or a closing report after a spent budget."""
        reason: Any = find_stop(case) if asking == "explain" else rule_without_report(case)
        _send_event(asking, case.retries, case, reason, ledger)
        update = self.inject_with_list(state, ledger, case, asking)
        ledger["asking"] = asking
        if asking == "explain":
            ledger["todo_guard_blocked"] = {"guard": turn.GUARD, "message": update["messages"][-1].content}
        else:
            ledger |= {"reported": True, "end": reason}  # whatever the request spends
        return update

    def request_answer(self, state: Any, ledger: Ledger, case: Case, ruling: Any) -> dict[str, Any]:
        """Ask for the answer in its format, for what is left if there never was a list, or about suspects."""
        if ruling == "format":
            return self.inject({**ledger, "asking": "format"}, case, "format", "format")
        _send_event(ruling, case.retries, case, find_stop(case), ledger)
        if ruling == "ask":
            return self.inject({**ledger, "unlisted": "asked"}, case, "no_list", "guard")
        suspects = find_suspects(ledger, state["todos"], case.settings)[: case.settings.nudge_items]
        ledger.pop("suspects", None)
        items = self.dialect.quote_items(suspects, case.settings)
        return self.inject({**ledger, "audited": True}, case, "audit", "guard", items=items)

    def inject_with_list(
        self, state: Any, ledger: Ledger, case: Case, prompt: str, **blanks: Any
    ) -> dict[str, Any]:
        """Inject the guard's message with the live list; before it the line that closes a round."""
        listing = self.dialect.quote_list(state["todos"], state["todo_goal"], case.settings)
        update = self.inject(ledger, case, prompt, "guard", open=case.open, list=listing, **blanks)
        update["messages"][-1] = with_list_stamp(update["messages"][-1], stamp_of(state["todos"]))
        update["messages"][:0] = close_round(state["messages"], self.dialect, case.settings)
        return update

    def inject(self, ledger: Ledger, case: Case, prompt: str, kind: Any, **blanks: Any) -> dict[str, Any]:
        """Inject a user message and go back to the model."""
        text = fill_prompt(prompt, self.dialect.prompt_folder, case.settings.prompts, **blanks)
        changes = render_reopened(self.dialect, case.settings, ledger)
        notices = Notices(changes=changes, nudge=announce(text, case.settings, prompt))
        message = make_user_message(kind, notices.compose())
        ledger["injected"] = [message.id or ""]
        if "list" in blanks:
            ledger["shown"] = message.id or ""
        return {"messages": [message], "todo_ledger": ledger}

    def end_run(self, state: Any, ledger: Ledger, case: Case, reason: EndReason) -> Any:
        """End the run; hand over to the parent if a tool asked for that."""
        waits, begun = state.get("waiting_on") or [], list[Any]()
        if reason == "waiting" and not waits and case.awaited is not None:
            begun = [build_wait(case.awaited, state["messages"], state.get("owed_replies") or ())]
        timed = set_ceilings([*waits, *begun], self.clock()) if reason == "waiting" else waits
        session = turn.build_session(
            ledger, state["todos"], case.settings, reason, timed, needs_proof=self.needs_proof
        )
        if reason == "looping":
            blanks = describe_repeats(state["messages"], ledger.get("idle_rounds", 0))
            session["repeated"] = blanks["repeated"]
        if reason == "handed_over":
            return build_handoff(state, session)
        if ledger.get("asking") == "explain" and reason != "waiting":
            ledger |= {"todo_guard_blocked": None, "todo_guard_suppressed": True}
        messages: list[BaseMessage] = state["messages"]
        update: dict[str, Any] = {
            "todo_session": session,
            "todo_ledger": turn.drop_run_notes(ledger, messages),
        }
        if timed != waits:
            update["waiting_on"] = {"drop": waits, "add": timed}
        if self.formats and "structured_response" not in state:  # so that every result has the key
            update["structured_response"] = None
        return update


def _read_run(state: Any, config: RunnableConfig) -> concurrent_runs.RunPosition | None:
    return concurrent_runs.find_run_position(config, state["remaining_steps"], copy_ledger(state))


def _find_session(update: Any) -> Session | None:
    """Return the session with which an update ends the run; None if it does not."""
    written = update.update if isinstance(update, Command) else update
    return written.get("todo_session") if isinstance(written, Mapping) else None


def _send_event(action: str, retry: int, case: Case, reason: EndReason | None, ledger: Ledger) -> None:
    counts = {"retry": retry, "retries": case.settings.guard_retries, "open": case.open}
    emit_event({"type": "guard", "action": action, **counts, "reason": reason}, ledger)
