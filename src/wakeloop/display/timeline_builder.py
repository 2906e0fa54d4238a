"""Folds a thread's past into what a page shows of it."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from wakeloop.channels.apply_writes import apply_writes
from wakeloop.display.checkpoint_history import Step, ThreadHistory
from wakeloop.display.formatting import format_interrupt
from wakeloop.display.timeline import (
    ItemLane,
    MessageEntry,
    Moment,
    RequestUsage,
    StatusSpan,
    SubagentSpan,
    Timeline,
)
from wakeloop.loop.spending import BILLION, Totals
from wakeloop.text.marks import kind_of, source_of
from wakeloop.thread.thread_views import INTERRUPT_KEY
from wakeloop.todos.items import Todo

GUARDS = {"guard": "guard", "retry": "guard", "format": "guard", "wake": "wake", "repair": "repair"}
OPENED = {"activate": "kick", "event": "event"}


def build_timeline(past: ThreadHistory) -> Timeline:
    """Fold a past, step by step; what cannot be read of a step is a moment of its own."""
    fold = _build(past)
    helpers = [SubagentSpan(one.name, one.began, one.ended) for one in past.nested]
    if past.damaged and not any(one.kind == "gap" for one in fold.moments):
        fold.moments.append(Moment(past.steps[-1].began, "gap", "Some steps cannot be read."))
    times = [step.began for step in past.steps]
    return Timeline(
        thread=past.thread,
        began=times[0],
        ended=times[-1],
        lanes=list(fold.lanes.values()),
        moments=fold.moments,
        said=list(fold.said.values()),
        spends=fold.spends,
        helpers=sorted([*fold.helpers.values(), *helpers], key=lambda one: one.start),
        times=times,
    )


def recover_state(past: ThreadHistory) -> dict[str, Any]:
    """Return the conversation and the list as far as they can be read, of a thread that is damaged."""
    fold = _build(past)
    return {"messages": list(fold.messages), "todos": list(fold.todos)}


def _build(past: ThreadHistory) -> "_TimelineBuilder":
    fold = _TimelineBuilder()
    for step in past.steps:
        if step.behind_gap:
            fold.ending = None
            fold.moments.append(Moment(step.began, "gap", "Earlier steps cannot be read."))
        for part in (fold.found, fold.wrote):
            try:
                part(step)
            except Exception as error:  # noqa: BLE001 - a damaged step does not hide the others
                told = f"A step cannot be read ({type(error).__name__})."
                fold.moments.append(Moment(step.began, "gap", told))
    return fold


class _TimelineBuilder:
    """A thread as far as it has been folded."""

    def __init__(self) -> None:
        self.messages: Sequence[Any] = []
        self.todos: Sequence[Todo] = []
        self.said: dict[str, MessageEntry] = {}
        self.lanes: dict[Any, ItemLane] = {}
        self.moments: list[Moment] = []
        self.spends: list[RequestUsage] = []
        self.helpers: dict[str, SubagentSpan] = {}
        self.spent = Totals()
        self.refusals: Mapping[str, int] = {}
        self.ending: Any = None
        self.calls: dict[str, MessageEntry] = {}

    # -- a step ------------------------------------------------------------------------------------------

    def found(self, step: Step) -> None:
        """Take over what is stored whole: a snapshot of a channel, or one that keeps no changes."""
        messages, todos = (_unwrap_snapshot(step.stored.get(name)) for name in ("messages", "todos"))
        if messages is not None:
            self.converse(apply_writes("messages", messages, []), step.began)
        if todos is not None:
            self.list_as(apply_writes("todos", todos, []), step.began, hand=step.source == "update")

    def wrote(self, step: Step) -> None:
        """Add what a step has written."""
        at = step.ended or step.began
        writes: dict[str, list[Any]] = {}
        for channel, value in step.writes:
            writes.setdefault(channel, []).append(value)
        asked_at = step.began if step.source == "input" else at
        if "messages" in writes:
            self.converse(apply_writes("messages", self.messages, writes["messages"]), asked_at)
        if "todos" in writes:
            new = apply_writes("todos", self.todos, writes["todos"])
            self.list_as(new, asked_at, self.author(step), hand=step.into == "update")
        for notes in writes.get("todo_ledger", ())[-1:]:
            self.note(notes, at)
        for entries in writes.get("todo_subagents", ()):
            self.help(entries, at)
        for session in writes.get("todo_session", ())[-1:]:
            self.stand(session, at)
        if INTERRUPT_KEY in writes and step.ended is None:
            self.moments += [
                Moment(at, "question", _format_first_question(one)) for one in writes[INTERRUPT_KEY]
            ]

    # -- the conversation --------------------------------------------------------------------------------

    def converse(self, new: Sequence[Any], at: float) -> None:
        """Compare the conversation with what it was; only what differs is looked at."""
        old, self.messages = self.messages, new
        if new[: len(old)] == old:
            fresh = new[len(old) :]
        else:
            fresh = [b for a, b in zip(old, new, strict=False) if a is not b] + list(new[len(old) :])
            self.lose(old, {message.id for message in new}, at)
        for message in fresh:
            self.hear(message, at)

    def lose(self, old: Sequence[Any], kept: AbstractSet[Any], at: float) -> None:
        """Note the messages that were taken out of the conversation."""
        lost = [self.said[str(message.id)] for message in old if message.id not in kept]
        for one in lost:
            one.gone = True
        if lost:
            self.moments.append(Moment(at, "dropped", f"{len(lost):,} out of the conversation"))

    def hear(self, message: BaseMessage, at: float) -> None:
        """Note a message that is new, or that has changed, as a result with a reminder behind it has."""
        key = str(message.id)
        known = self.said.get(key)
        if known is None:
            self.said[key] = said = MessageEntry(at, message)
            self.moments += [Moment(at, kind, text, said) for kind, text in self.meant(said)]
        else:
            known.gone = False
            if kind_of(message) == "nag" and kind_of(known.message) != "nag":
                self.moments.append(Moment(at, "nag", "", known))
            known.message = message

    def meant(self, said: MessageEntry) -> Iterator[tuple[str, str]]:
        """What a new message is, beside its words."""
        message, kind = said.message, kind_of(said.message)
        if isinstance(message, AIMessage) and kind is None:
            self.calls.update({str(call["id"]): said for call in message.tool_calls})
        elif isinstance(message, ToolMessage):
            said.answers = self.calls.get(message.tool_call_id)
            if message.status == "error":
                yield "failed", str(message.name or "a tool")
            if kind == "nag":
                yield "nag", ""
        elif message.type == "human":
            others = "event" if source_of(message) else "request"
            yield (OPENED.get(kind, GUARDS.get(kind, kind)) if kind else others), ""
        elif kind in GUARDS:
            yield GUARDS[kind], ""
        if kind == "repair" and isinstance(message, ToolMessage):
            yield "repair", ""

    # -- the list ----------------------------------------------------------------------------------------

    def list_as(self, new: Sequence[Todo], at: float, by: MessageEntry | None = None, *, hand: bool) -> None:
        """Compare the list with what it was."""
        if hand and list(new) != list(self.todos):
            self.moments.append(Moment(at, "hand"))
        self.todos = new
        there = set()
        for todo in new:
            key = todo.get("id", todo["content"])
            there.add(key)
            lane = self.lanes.get(key)
            if lane is None:
                lane = self.lanes[key] = ItemLane(todo, [StatusSpan(todo["status"], at)], said=by)
            elif todo != lane.todo or lane.gone is not None:
                if todo["status"] != lane.todo["status"] or lane.gone is not None:
                    lane.spans[-1].end = lane.spans[-1].end or at
                    lane.spans.append(StatusSpan(todo["status"], at))
                lane.todo, lane.gone, lane.said = todo, None, by or lane.said
        for key, lane in self.lanes.items():
            if key not in there and lane.gone is None:
                lane.gone = lane.spans[-1].end = at

    def author(self, step: Step) -> MessageEntry | None:
        """The message with the call that wrote the list in a step."""
        for channel, value in step.writes:
            for message in value if channel == "messages" and isinstance(value, list) else ():
                if isinstance(message, ToolMessage) and message.tool_call_id in self.calls:
                    return self.calls[message.tool_call_id]
        return None

    # -- the notes ---------------------------------------------------------------------------------------

    def note(self, notes: Mapping[str, Any], at: float) -> None:
        """Compare what is spent, and what the verifier refused."""
        now = Totals(*notes.get("spent") or ())
        was = self.spent if now.requests >= self.spent.requests else Totals()
        if now.requests > was.requests:
            cost = None if now.cost is None else (now.cost - (was.cost or 0)) / BILLION
            took = (now.milliseconds - was.milliseconds) / 1000
            self.spends.append(
                RequestUsage(
                    at,
                    now.input - was.input,
                    now.cached - was.cached,
                    now.output - was.output,
                    cost,
                    max(took, 0.0),
                )
            )
        self.spent = now
        refusals = notes.get("refusals") or {}
        for key, count in refusals.items():
            if count > self.refusals.get(key, 0):
                for lane in (lane for at_id, lane in self.lanes.items() if str(at_id) == str(key)):
                    lane.refused.append(at)
        self.refusals = refusals

    def help(self, entries: Any, at: float) -> None:
        """Note subagents that were started, and those that have finished."""
        if isinstance(entries, Mapping):
            for entry in entries.get("drop", ()):
                key = str(entry["id"] if isinstance(entry, Mapping) else entry)
                if key in self.helpers:
                    self.helpers[key].end = at
            return
        for entry in entries or ():
            key = str(entry["id"] if isinstance(entry, Mapping) else entry)
            self.helpers.setdefault(key, SubagentSpan(key, at))

    def stand(self, session: Mapping[str, Any], at: float) -> None:
        """Note a run's end."""
        state, reason = session.get("state"), session.get("reason")
        ending = (state, reason)
        if state not in (None, "running") and reason and ending != self.ending:
            last = next(reversed(self.said.values()), None)
            self.moments.append(Moment(at, "end", str(reason), last))
        self.ending = ending


def _unwrap_snapshot(stored: Any) -> Any:
    """A channel's value as it is stored whole: by itself, or as a snapshot among changes."""
    return getattr(stored, "value", stored)


def _format_first_question(value: Any) -> str:
    """The first of the questions of an interrupt, as a person was asked."""
    first = value[0] if isinstance(value, list | tuple) and value else value
    return " ".join(map(str.strip, format_interrupt(getattr(first, "value", first))))
