"""The rules between requests: opening, rounds, turns, end."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import get_runtime

from wakeloop.dialects.base import Dialect
from wakeloop.loop.case import Case, Costs, compute_hook_costs
from wakeloop.loop.extra_requests import GOAL_ENDS
from wakeloop.loop.goal import build_wait_entry, is_unmet
from wakeloop.loop.ledger import Ledger
from wakeloop.loop.overrides import settings_in_force
from wakeloop.loop.progress import describe_repeats
from wakeloop.loop.replies import ReplyFacts, note_reply, note_step_limit
from wakeloop.loop.spending import add_round
from wakeloop.loop.turn import build_session, drop_run_notes, find_written_reply
from wakeloop.middleware.draft import Draft, remove_placeholder, with_message_ids
from wakeloop.middleware.watched_request import name_end_without_model
from wakeloop.model.reply import misfit_error
from wakeloop.model.tool_results import error_result, find_unanswered
from wakeloop.nodes.activate import Activate
from wakeloop.nodes.finalization_guard import FinalizationGuard
from wakeloop.nodes.validate_todos import ValidateTodos
from wakeloop.nodes.wake import Wake
from wakeloop.platform.runnables import read_step
from wakeloop.platform.traces import emit_event
from wakeloop.routes import after_activate, after_guard, after_round
from wakeloop.settings import LoopSettings
from wakeloop.state import copy_ledger
from wakeloop.text.marks import find_last, mark_no_answer, text_of
from wakeloop.thread.judges import Judges, Play, Query, take_verdict
from wakeloop.todos.items import count_open

CALL_LIMIT = "Tool call limit exceeded."  # how a result of `ToolCallLimitMiddleware` begins
_CHANNELS_ID = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)  # LangChain's and ours look different
END_STEPS = 3  # supersteps of a run's end: the middleware's own, and two hooks of others


@dataclass(frozen=True)
class Turns:
    """The graph's own nodes, called one after the other from an agent's hooks."""

    settings: LoopSettings
    schemas: tuple[dict[str, Any], ...]  # the todo tools' schemas, which are the same for every thread
    activate: Activate
    validate: ValidateTodos
    guard: FinalizationGuard
    wake: Wake

    @classmethod
    def build(cls, dialect: Dialect, settings: LoopSettings, judges: Judges) -> Self:
        """Make the nodes."""
        return cls(
            settings,
            tuple(dialect.tool_schemas(settings)),
            Activate(dialect, settings, judges, todo_tools=True, guarded=False, model=None),
            ValidateTodos(dialect, settings, judges.verifier),
            FinalizationGuard(dialect, settings, judges),
            Wake(dialect, settings),
        )

    # -- before the agent ---------------------------------------------------------------------------------

    @property
    def judges(self) -> Judges:
        """The caller's functions that judge the work."""
        return self.guard.judges

    def open_activation(self, state: Any, opening: Mapping[str, Any], config: RunnableConfig) -> Play[Any]:
        """Return the update that opens an activation, and also ends it if the model has nothing to do."""
        draft = Draft(with_message_ids(state))
        draft.before = state["messages"]
        draft.messages += remove_placeholder(state["messages"])
        draft.apply(opening)
        draft.ledger["hooks"] = [-1, read_step(config), 0]
        if after_activate(draft.state) == "nothing to answer" and "refused" not in draft.ledger:
            word = yield from self.rule_turn(draft, config)
            return draft.build_update(word or "end")
        return draft.build_update()

    # -- after the model ----------------------------------------------------------------------------------

    def follow_reply(self, state: Any, config: RunnableConfig) -> Any:
        """Return what follows a reply: the results of a round's calls, or the ruling on a turn's end."""
        round_ = Round.read(state, config, self.validate)
        if round_ is None:
            return self.judges.finish(self.end_turn(state, config))
        played = self.validate.invoke(round_.state, config) if round_.todo else {}
        return self.judges.finish(self.answer_round(round_, played, config))

    async def afollow_reply(self, state: Any, config: RunnableConfig) -> Any:
        """Do the same as `follow_reply`, awaiting the verifier."""
        round_ = Round.read(state, config, self.validate)
        if round_ is None:
            return await self.judges.afinish(self.end_turn(state, config))
        played = await self.validate.ainvoke(round_.state, config) if round_.todo else {}
        return await self.judges.afinish(self.answer_round(round_, played, config))

    def answer_round(self, round_: "Round", played: Mapping[str, Any], config: RunnableConfig) -> Play[Any]:
        """Return the results of todo calls and faulty calls. If no other is left, the model is next."""
        draft = round_.draft
        if round_.ledger != draft.ledger:
            draft.apply({"todo_ledger": round_.ledger})
        if played:
            draft.apply(played)
        if draft.ledger.get("plan") == "judged":  # stores the verdicts before the person is asked
            return draft.build_update("model")
        if round_.faults:
            draft.apply({"messages": round_.faults})
        if round_.has_calls_left:
            if "step" in played.get("todos", ()):  # a tool may write the list, too
                draft.apply({"todo_ledger": {**draft.ledger, "base": list(draft.first["todos"])}})
            return draft.build_update()
        if after_round(draft.ledger) == "run ends":
            return draft.build_update((yield from self.rule_turn(draft, config)))
        return draft.build_update("model")

    def end_turn(self, state: Any, config: RunnableConfig) -> Play[Any]:
        """Return the update at the end of a turn: the guard's ruling, and where the agent continues."""
        draft = Draft(state)
        reply, ledger = find_last(AIMessage, draft.state["messages"]), draft.ledger
        if "end" not in ledger and reply is not None and was_written_elsewhere(ledger, reply):
            end = name_end_without_model(reply)
            draft.apply({"messages": [mark_no_answer(reply, end)], "todo_ledger": {**ledger, "end": end}})
        elif "end" not in ledger and self.was_blocked_by_limit(draft.state):
            draft.apply({"todo_ledger": {**ledger, "end": "ended_elsewhere"}})
        return draft.build_update((yield from self.rule_turn(draft, config)))

    def was_blocked_by_limit(self, state: Any) -> bool:
        """Tell whether a call limit blocked every call for work of the turn that has just ended.

        Where the model then closed or blocked what was left, that is the end.
        """
        blocked = wrote = False
        for message in reversed(state["messages"]):
            if isinstance(message, HumanMessage):
                break
            if not isinstance(message, ToolMessage):
                continue
            if message.status == "error" and text_of(message).startswith(CALL_LIMIT):
                blocked = True
            elif message.name not in self.validate.dialect.tool_names:
                return False
            else:
                wrote = wrote or message.status != "error"
        return blocked and bool(count_open(state["todos"]) or not wrote)

    def rule_turn(self, draft: Draft, config: RunnableConfig) -> Play[str | None]:
        """Let the guard rule, and wake the model if it says so. Return where the agent continues.

        The session is written in `park`, once the run is really over: other middleware may still continue it.
        """
        ledger = draft.ledger
        update = yield from self.build_guard(ledger, config).rule_turn(draft.state)
        update.pop("todo_session", None)
        draft.apply(update)
        word = after_guard(draft.state)
        if word == "open, within budget":
            draft.apply(self.wake(draft.state, config))
        if word != "stop":
            return "model"
        reply = find_last(AIMessage, draft.state["messages"])
        # after a plain reply the agent ends by itself; else it would run tools, or ask for a format by a tool
        would_continue = reply is None or reply.tool_calls or ledger.get("formats") is True
        return "end" if would_continue else None

    def build_guard(self, ledger: Ledger, config: RunnableConfig) -> FinalizationGuard:
        """Return the guard for this run: whether it asks for a format, and what supersteps cost."""
        return replace(self.guard, formats="formats" in ledger, costs=compute_costs(ledger, config))

    def build_case(self, state: Any, ledger: Ledger, config: RunnableConfig) -> Case:
        """Return the case that the guard would rule on."""
        return self.build_guard(ledger, config).build_case(state, ledger)

    # -- after the agent ----------------------------------------------------------------------------------

    def park(self, state: Any) -> Play[dict[str, Any]]:
        """Return the session of a run that is over: as the guard ruled, or as other middleware ended it."""
        ledger = copy_ledger(state)
        settings = settings_in_force(self.settings, ledger)
        add_round(ledger, state["messages"])
        reason: Any = ledger.get("ruling")
        if reason is None or after_guard({"todo_ledger": ledger}) != "stop":
            reason = "ended_elsewhere"
        waiting_on = list(state.get("waiting_on") or ())
        update: dict[str, Any] = {}
        if reason == "ended_elsewhere" and self.asks_goal(ledger, waiting_on):
            verdict = yield Query(state)
            take_verdict(ledger, verdict)
            reason = GOAL_ENDS.get(verdict.kind, reason)
            if verdict.kind == "wait":
                waiting_on.append(build_wait_entry(verdict, self.guard.clock()))
                update["waiting_on"] = waiting_on[-1:]
        session = build_session(
            ledger, state["todos"], settings, reason, waiting_on, needs_proof=self.guard.needs_proof
        )
        if reason == "looping":
            rounds = ledger.get("idle_rounds", settings.max_idle_rounds)
            session["repeated"] = describe_repeats(state["messages"], rounds)["repeated"]
        rest = drop_run_notes(ledger, state["messages"])
        rest["ruling"] = reason
        emit_event({"type": "parked", "session": session}, ledger)
        return {**update, "todo_session": session, "todo_ledger": rest}

    def asks_goal(self, ledger: Ledger, waiting_on: Sequence[Any]) -> bool:
        """Tell whether `done_when` is asked before a run that other middleware ended."""
        if self.judges.done_when is None or waiting_on or not is_unmet(ledger):
            return False
        return not (ledger.get("judged") or get_runtime().drain_requested)


class Round:
    """A reply's calls as an agent's hook finds them: perhaps edited or answered by a person, or faulty."""

    def __init__(self, draft: Draft, reply: AIMessage, ledger: Ledger, dialect: Dialect) -> None:
        self.ledger, self.draft = ledger, draft
        messages: list[AnyMessage] = draft.state["messages"]
        edits: Mapping[str, Any] = draft.state.get("hitl_edited_tool_calls") or {}
        named = ledger.get("todo_calls", ())
        self.left = find_unanswered(reply.tool_calls, messages)
        todo = [self.apply_edit(call, edits, dialect) for call in self.left if call["id"] in named]
        self.todo = [call for call in todo if call["name"] in dialect.tool_names]
        ids, faults = [call["id"] for call in self.todo], ledger.get("faults", {})
        faulty = [call for call in self.left if call["id"] in faults and call["id"] not in ids]
        self.faults = [error_result(call, faults[call["id"] or ""]) for call in faulty]
        self.state = {**draft.state, "todo_ledger": ledger}
        if todo != [call for call in reply.tool_calls if call["id"] in named]:
            edited = reply.model_copy(update={"tool_calls": self.todo})
            self.state["messages"] = [edited if message is reply else message for message in messages]

    @property
    def has_calls_left(self) -> bool:
        """Whether a call is left for the agent's tools."""
        answered = {getattr(message, "tool_call_id", None) for message in self.draft.messages}
        return any(call["id"] not in answered for call in self.left)

    def apply_edit(self, call: ToolCall, edits: Mapping[str, Any], dialect: Dialect) -> ToolCall:
        """Return a todo call as a person edited it, and check it for faults again."""
        key = call["id"] or ""
        if key not in edits:
            return call
        name, args = edits[key]["name"], edits[key]["args"]
        faults = {other: why for other, why in self.ledger.get("faults", {}).items() if other != key}
        if name in dialect.tool_names and (why := misfit_error(dialect, name, args)):
            faults[key] = why
        self.ledger["faults"] = faults
        return ToolCall(name=name, args=args, id=key, type="tool_call")

    @classmethod
    def read(cls, state: Any, config: RunnableConfig, validate: ValidateTodos) -> Self | None:
        """Read the round of the last reply; None if that ended a turn."""
        ledger, draft = copy_ledger(state), Draft(state)
        ledger.pop("standing", None)
        if gone := remove_placeholder(state["messages"]):
            draft.apply({"messages": gone})
        messages = draft.state["messages"]
        reply = find_last(AIMessage, messages)
        if (written := find_written_reply(ledger, messages, validate.dialect.tool_names)) is not None:
            ledger = note_written_calls(ledger, written, state, config, validate)
        if "nag" not in ledger or reply is None or not reply.tool_calls:
            return None
        if not ledger.get("end"):
            note_step_limit(ledger, state["remaining_steps"], compute_costs(ledger, config))
        return cls(draft, reply, ledger, validate.dialect)


def was_written_elsewhere(ledger: Ledger, reply: AIMessage) -> bool:
    """Tell whether middleware around this one wrote the message that ends a turn, so that it was not seen.

    A reply that was seen took the notes of the last round, or of the last ruling, away.
    """
    was_seen = ledger.get("hooks", (0,))[0] >= 0 and not ledger.keys() & {"nag", "ruling"}
    has_words_only = not (reply.tool_calls or reply.response_metadata or reply.usage_metadata)
    return not was_seen and has_words_only and _CHANNELS_ID.fullmatch(reply.id or "") is not None


def note_written_calls(
    ledger: Ledger, reply: AIMessage, state: Any, config: RunnableConfig, validate: ValidateTodos
) -> Ledger:
    """Return the notes of a reply with calls that somebody wrote in the model's place."""
    dialect, todo, faults = validate.dialect, list[str](), dict[str, str]()
    wrote = False
    for call in reply.tool_calls:
        if call["name"] in dialect.tool_names:
            todo.append(call["id"] or "")
            wrote = wrote or call["name"] in dialect.writes
            if why := misfit_error(dialect, call["name"], call["args"]):
                faults[call["id"] or ""] = why
    facts = ReplyFacts(calls=len(reply.tool_calls), todo_calls=tuple(todo), faults=faults, wrote=wrote)
    return note_reply(
        ledger,
        facts,
        settings_in_force(validate.settings, ledger),
        open_count=count_open(state["todos"]),
        steps_left=state["remaining_steps"],
        costs=compute_costs(ledger, config),
    )


def compute_costs(ledger: Ledger, config: RunnableConfig) -> Costs:
    """Return what supersteps cost, with the hooks of other middleware met around the last request."""
    before, asked_at, _ = ledger.get("hooks", (0, read_step(config) - 1, 0))
    after = read_step(config) - asked_at - 1
    return compute_hook_costs(max(before, 0) + max(after, 0), END_STEPS)
