"""Timeline: items, moments and requests of a thread.

It is read from the checkpoint history, and holds plain values; times are in seconds since 1970.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from wakeloop.channels.reducers import apply_writes
from wakeloop.display.checkpoint_history import Step, SubagentSpan, ThreadHistory
from wakeloop.display.formatting import format_interrupt
from wakeloop.loop.spending import BILLION, Totals
from wakeloop.text.marks import kind_of, source_of
from wakeloop.thread.thread_status import INTERRUPT_KEY
from wakeloop.todos.items import Todo


@dataclass
class MessageEntry:
    """A message, when it came, and whether it was removed from the conversation later."""

    at: float
    message: BaseMessage
    gone: bool = False
    answers: "MessageEntry | None" = None  # for a tool result: the message with the call


@dataclass
class Moment:
    """An event on the timeline.

    `kind` is request, kick, event, wake, nag, guard, cleared, repair, question, failed, dropped, hand, gap or
    end.
    """

    at: float
    kind: str
    text: str = ""
    said: MessageEntry | None = None


@dataclass
class StatusSpan:
    """How long an item had a status; `end` is None if it still has it."""

    status: str
    start: float
    end: float | None = None


@dataclass
class ItemLane:
    """An item with its history; `gone` is when it was taken off the list."""

    todo: Todo
    spans: list[StatusSpan]
    refused: list[float] = field(default_factory=list)
    gone: float | None = None
    said: MessageEntry | None = None  # the message that wrote it last


@dataclass
class RequestUsage:
    """The usage of one request to the model; `cost` is None if its price is unknown."""

    at: float
    input: int
    cached: int
    output: int
    cost: float | None
    seconds: float


# Kinds of injected messages, by the kind of moment that they make.
GUARDS = {"guard": "guard", "retry": "guard", "format": "guard", "wake": "wake", "repair": "repair"}
OPENERS = {"activate": "kick", "event": "event"}


class Timeline:
    """All that the report shows of a thread, read step by step.

    A part of a step that cannot be read becomes a moment, a gap. `messages` and `todos` are the newest state,
    `context` the tokens of the last request and of the model's window.
    """

    def __init__(self, history: ThreadHistory) -> None:
        self.thread, self.times = history.thread, [step.began for step in history.steps]
        self.nested = history.nested
        self.messages: Sequence[Any] = []
        self.todos: Sequence[Todo] = []
        self.entries: dict[str, MessageEntry] = {}
        self.items: dict[Any, ItemLane] = {}
        self.subagents: dict[str, SubagentSpan] = {}
        self.moments: list[Moment] = []
        self.spends: list[RequestUsage] = []
        self.spent = Totals()
        self.refusals: Mapping[str, int] = {}
        self.cleared: Any = None
        self.context: tuple[int, int] | None = None
        self.ending: Any = None
        self.calls: dict[str, MessageEntry] = {}
        for step in history.steps:
            self.read_step(step)
        if history.damaged and not any(one.kind == "gap" for one in self.moments):
            self.moments.append(Moment(self.times[-1], "gap", "Some steps cannot be read."))

    @property
    def said(self) -> list[MessageEntry]:
        """The messages, in the order in which they came."""
        return list(self.entries.values())

    @property
    def lanes(self) -> list[ItemLane]:
        """The items, in the order in which they came."""
        return list(self.items.values())

    @property
    def helpers(self) -> list[SubagentSpan]:
        """Subagents and nested graphs, in the order in which they began."""
        return sorted([*self.subagents.values(), *self.nested], key=lambda one: one.start)

    # -- a step ------------------------------------------------------------------------------------------

    def read_step(self, step: Step) -> None:
        """Take over what a step stored and wrote, as far as it can be read."""
        if step.after_gap:
            self.ending = None
            self.moments.append(Moment(step.began, "gap", "Earlier steps cannot be read."))
        for part in (self.read_stored, self.read_writes):
            try:
                part(step)
            except Exception as error:  # noqa: BLE001 - a damaged step does not hide the others
                text = f"A step cannot be read ({type(error).__name__})."
                self.moments.append(Moment(step.began, "gap", text))

    def read_stored(self, step: Step) -> None:
        """Take over channels that are stored whole, as snapshots or because they store no changes."""
        messages = _unwrap_snapshot(step.stored.get("messages"))
        todos = _unwrap_snapshot(step.stored.get("todos"))
        if messages is not None:
            self.set_messages(apply_writes("messages", messages, []), step.began)
        if todos is not None:
            self.set_todos(apply_writes("todos", todos, []), step.began, hand=step.source == "update")

    def read_writes(self, step: Step) -> None:
        """Apply what was written in a step."""
        at = step.ended or step.began
        writes: dict[str, list[Any]] = {}
        for channel, value in step.writes:
            writes.setdefault(channel, []).append(value)
        asked_at = step.began if step.source == "input" else at
        if "messages" in writes:
            self.set_messages(apply_writes("messages", self.messages, writes["messages"]), asked_at)
        if "todos" in writes:
            new = apply_writes("todos", self.todos, writes["todos"])
            self.set_todos(new, asked_at, self.find_writer(step), hand=step.into == "update")
        for notes in writes.get("todo_ledger", ())[-1:]:
            self.note_ledger(notes, at)
        for entries in writes.get("todo_subagents", ()):
            self.note_subagents(entries, at)
        for session in writes.get("todo_session", ())[-1:]:
            self.note_session(session, at)
        if INTERRUPT_KEY in writes and step.ended is None:
            for asked in writes[INTERRUPT_KEY]:
                self.moments.append(Moment(at, "question", _format_first_question(asked)))

    # -- the conversation --------------------------------------------------------------------------------

    def set_messages(self, new: Sequence[Any], at: float) -> None:
        """Take over a new conversation; only messages that differ from the old one are looked at."""
        old, self.messages = self.messages, new
        if new[: len(old)] == old:
            fresh = new[len(old) :]
        else:
            fresh = [now for was, now in zip(old, new, strict=False) if was is not now]
            fresh += new[len(old) :]
            self.note_removed(old, {message.id for message in new}, at)
        for message in fresh:
            self.note_message(message, at)

    def note_removed(self, old: Sequence[Any], kept: AbstractSet[Any], at: float) -> None:
        """Note the messages that were removed from the conversation."""
        lost = [self.entries[str(message.id)] for message in old if message.id not in kept]
        for one in lost:
            one.gone = True
        if lost:
            self.moments.append(Moment(at, "dropped", f"{len(lost):,} out of the conversation"))

    def note_message(self, message: BaseMessage, at: float) -> None:
        """Note a message that is new or has changed, such as a result to which a reminder was added."""
        key = str(message.id)
        known = self.entries.get(key)
        if known is None:
            self.entries[key] = said = MessageEntry(at, message)
            for kind, text in self.classify(said):
                self.moments.append(Moment(at, kind, text, said))
        else:
            known.gone = False
            if kind_of(message) == "nag" and kind_of(known.message) != "nag":
                self.moments.append(Moment(at, "nag", "", known))
            known.message = message

    def classify(self, said: MessageEntry) -> Iterator[tuple[str, str]]:
        """Yield the kinds of the moments that a new message makes, each with its text."""
        message, kind = said.message, kind_of(said.message)
        if isinstance(message, AIMessage) and kind is None:
            for call in message.tool_calls:
                self.calls[str(call["id"])] = said
        elif isinstance(message, ToolMessage):
            said.answers = self.calls.get(message.tool_call_id)
            if message.status == "error":
                yield "failed", str(message.name or "a tool")
            if kind == "nag":
                yield "nag", ""
        elif message.type == "human":
            if kind:
                yield OPENERS.get(kind, GUARDS.get(kind, kind)), ""
            else:
                yield ("event" if source_of(message) else "request"), ""
        elif kind in GUARDS:
            yield GUARDS[kind], ""
        if kind == "repair" and isinstance(message, ToolMessage):
            yield "repair", ""

    # -- the list ----------------------------------------------------------------------------------------

    def set_todos(
        self, new: Sequence[Todo], at: float, by: MessageEntry | None = None, *, hand: bool
    ) -> None:
        """Take over a new list, and note what changed."""
        if hand and list(new) != list(self.todos):
            self.moments.append(Moment(at, "hand"))
        self.todos = new
        there = set()
        for todo in new:
            key = todo.get("id", todo["content"])
            there.add(key)
            lane = self.items.get(key)
            if lane is None:
                lane = self.items[key] = ItemLane(todo, [StatusSpan(todo["status"], at)], said=by)
            elif todo != lane.todo or lane.gone is not None:
                if todo["status"] != lane.todo["status"] or lane.gone is not None:
                    lane.spans[-1].end = lane.spans[-1].end or at
                    lane.spans.append(StatusSpan(todo["status"], at))
                lane.todo, lane.gone, lane.said = todo, None, by or lane.said
        for key, lane in self.items.items():
            if key not in there and lane.gone is None:
                lane.gone = lane.spans[-1].end = at

    def find_writer(self, step: Step) -> MessageEntry | None:
        """Return the message with the call that wrote the list in a step."""
        for channel, value in step.writes:
            if channel != "messages" or not isinstance(value, list):
                continue
            for message in value:
                if isinstance(message, ToolMessage) and message.tool_call_id in self.calls:
                    return self.calls[message.tool_call_id]
        return None

    # -- the notes ---------------------------------------------------------------------------------------

    def note_ledger(self, notes: Mapping[str, Any], at: float) -> None:
        """Note what was spent and what the verifier refused since the last ledger."""
        now = Totals(*notes.get("spent") or ())
        was = self.spent if now.requests >= self.spent.requests else Totals()  # or a new activation
        if now.requests > was.requests:
            cost = None
            if now.cost is not None:
                cost = (now.cost - (was.cost or 0)) / BILLION
            self.spends.append(
                RequestUsage(
                    at,
                    input=now.input - was.input,
                    cached=now.cached - was.cached,
                    output=now.output - was.output,
                    cost=cost,
                    seconds=max((now.milliseconds - was.milliseconds) / 1000, 0.0),
                )
            )
        self.spent = now
        if "counted" in notes:
            _, tokens, _, window = notes["counted"]
            self.context = tokens, window
        if "cleared" in notes and notes["cleared"] != self.cleared:
            self.cleared = notes["cleared"]
            self.moments.append(Moment(at, "cleared"))
        refusals = notes.get("refusals") or {}
        for key, count in refusals.items():
            if count > self.refusals.get(key, 0):
                for item_id, lane in self.items.items():
                    if str(item_id) == str(key):
                        lane.refused.append(at)
        self.refusals = refusals

    def note_subagents(self, entries: Any, at: float) -> None:
        """Note the subagents that were started or have finished."""
        finished = isinstance(entries, Mapping)  # the channel takes new ones as a list, ended ones as a drop
        if finished:
            entries = entries.get("drop", ())
        for entry in entries or ():
            key = str(entry["id"] if isinstance(entry, Mapping) else entry)
            if not finished:
                self.subagents.setdefault(key, SubagentSpan(key, at))
            elif key in self.subagents:
                self.subagents[key].end = at

    def note_session(self, session: Mapping[str, Any], at: float) -> None:
        """Note the end of a run."""
        state, reason = session.get("state"), session.get("reason")
        ending = (state, reason)
        if state not in (None, "running") and reason and ending != self.ending:
            last = next(reversed(self.entries.values()), None)
            self.moments.append(Moment(at, "end", str(reason), last))
        self.ending = ending


def recover_state(history: ThreadHistory) -> dict[str, Any]:
    """Return the messages and the list of a damaged thread, as far as they can be read."""
    timeline = Timeline(history)
    return {"messages": list(timeline.messages), "todos": list(timeline.todos)}


def _unwrap_snapshot(stored: Any) -> Any:
    """Return a stored value, which a channel that stores changes wraps in a snapshot."""
    return getattr(stored, "value", stored)


def _format_first_question(value: Any) -> str:
    """Format the first question of an interrupt, as the person was asked."""
    first = value[0] if isinstance(value, list | tuple) and value else value
    return " ".join(map(str.strip, format_interrupt(getattr(first, "value", first))))
