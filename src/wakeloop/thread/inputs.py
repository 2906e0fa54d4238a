"""Inputs: messages and events that start a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Self

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from wakeloop.channels.reducers import Goal
from wakeloop.channels.todo_channels import SessionUpdate, read_list_number
from wakeloop.errors import SettingsError
from wakeloop.loop.inbox import WakeEvent, build_owed_reply, find_event_fault
from wakeloop.loop.ledger import Ledger
from wakeloop.loop.silences import HOLD_WAIT, QUESTION_WAIT, SUBAGENTS_WAIT
from wakeloop.loop.waits import CONTINUED_AFTER, read_wait_end, read_wait_kind
from wakeloop.platform.computed_once import computed_once
from wakeloop.state import TodoState
from wakeloop.stream import EchoEvent
from wakeloop.text.characters import fix_surrogates, indent_lines, shorten, to_one_line
from wakeloop.text.marks import HIDDEN, injected_kwargs, new_id, source_of

REMEMBERED_EVENTS = 64
PASSIVE_KINDS = frozenset(("subagent_done", "cron", "kick"))
PEER_KINDS = frozenset(("peer_message", "peer_reply", "subagent_done"))
ANSWER_KINDS = frozenset(("human", "peer_reply", "subagent_done"))
NOBODY = frozenset[str]()
OPEN_WAITS = {  # waits of gate 6, which end with the next words of any of these
    (QUESTION_WAIT, "peer"): frozenset(("human", "peer_message", "peer_reply")),
    (SUBAGENTS_WAIT, "subagent"): frozenset(("human", "peer_message", "peer_reply", "subagent_done")),
}
ANSWERED_BY_PERSON = frozenset(("human", "approval", "limit"))  # to an approval, any other words mean no
SILENT_KINDS = frozenset(("human", "kick"))  # the model does not see these unless they have text


@dataclass(frozen=True)
class InputVersion:
    """Which version of the list an input is based on.

    Some clients send their whole state back with each message, and that state may be older than the thread.
    `thread_version` is the thread's own; `input_version` is None if the input does not say.
    """

    thread_version: int
    input_version: int | None
    fault: str | None

    @classmethod
    def read(cls, state: Any, old: Ledger) -> Self:
        """Read it from the session that came with the input."""
        thread_version = old.get("writes", 0)
        return cls(thread_version, *read_list_number(state.get("todo_session"), thread_version))

    @property
    def echo(self) -> EchoEvent | None:
        """The event that reports an outdated list; None if the list is current."""
        if self.input_version is None or self.input_version >= self.thread_version:
            return None
        return {"type": "echo", "list": self.thread_version, "given": self.input_version}

    @property
    def newest(self) -> int:
        """The version to continue from. The input's may be higher if it was copied from another thread."""
        return max(self.thread_version, self.input_version or 0)


def discard_stale_input(state: Any, version: InputVersion) -> dict[str, Any]:
    """Return the state with the thread's own session, and its own list and goal if the input is stale."""
    own = {**state}
    if isinstance(session := state.get("todo_session"), SessionUpdate):
        own["todo_session"] = dict(session.before)
    if version.echo is None:
        return own
    before = getattr(state["todos"], "before", None)
    if before is not None:
        own["todos"] = before
    if isinstance(state["todo_goal"], Goal):
        own["todo_goal"] = state["todo_goal"].before
    return own


def find_inbox_fault(state: TodoState) -> str | None:
    """Return what is wrong with the events of an input, or None."""
    events: object = state.get("todo_inbox") or []
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        return f"todo_inbox must be a list of events, got {shorten(repr(events))}"
    for number, event in enumerate(events, 1):
        if fault := find_event_fault(event):
            return f"todo_inbox event {number}: {fault}"
    return None


def merge_settings(channel: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Merge a thread's settings with those of the run's context; the context's win."""
    if isinstance(context, Mapping):
        given = context.get("todo_settings")
    else:
        given = getattr(context, "todo_settings", None)
    if given is None:
        return dict(channel)
    if not isinstance(given, Mapping):
        raise SettingsError(f"The context's todo_settings must map settings to values, got {given!r}.")
    return {**channel, **given}


def read_waits(values: Any) -> tuple[Mapping[str, Any], ...]:
    """Return what a thread waits for. An entry that is a string is its own id."""
    waits = (values or {}).get("waiting_on") or ()
    return tuple(wait if isinstance(wait, Mapping) else {"id": wait} for wait in waits)


@dataclass(frozen=True)
class ThreadInput:
    """An input, and what the thread was waiting for when it came."""

    new_input: bool
    events: tuple[WakeEvent, ...]
    has_ledger: bool
    waiting_on: tuple[Mapping[str, Any], ...] = ()
    ends_in_words: bool = True  # the last message is a user's, and not the middle of a run that broke off
    from_others: bool = False  # a framework or a chat UI put in all that is new
    is_unanswered: bool = False  # the last run ended before the model answered what the history ends with
    now: float = 0.0  # seconds since 1970

    @classmethod
    def read(cls, state: TodoState, old: Ledger, now: float) -> Self:
        """Read the input from the state. Events that were seen before are ignored."""
        messages = state["messages"]
        seen = set(old.get("events", ()))
        fresh: dict[str, WakeEvent] = {}
        for place, event in enumerate(state.get("todo_inbox") or ()):
            if event.get("id") not in seen:
                fresh.setdefault(event.get("id") or f"#{place}", event)
        return cls(
            new_input=bool(messages) and messages[-1].id != old.get("tail"),
            events=tuple(fresh.values()),
            has_ledger=bool(old),
            waiting_on=read_waits(state),
            ends_in_words=bool(messages) and messages[-1].type in ("human", "system"),
            from_others=_came_from_others(messages),
            is_unanswered=_ended_early(state),
            now=now,
        )

    @computed_once
    def kinds(self) -> list[str]:
        """The kinds of the events, in the order of their arrival."""
        return [str(event.get("kind")) for event in self.events]

    @property
    def is_passive(self) -> bool:
        """Whether the input comes from neither a person nor a peer."""
        return PASSIVE_KINDS.issuperset(self.kinds)

    @property
    def continues_activation(self) -> bool:
        """Whether the input is only results of subagents, or a clock, which continue the activation."""
        continues = set(self.kinds) == {"subagent_done"} or self.is_clock
        return self.has_ledger and not self.new_input and continues

    @property
    def is_clock(self) -> bool:
        """Whether a host's clock says that the time of a wait is over."""
        ended = {str(wait.get("id")) for wait in self.late_waits}
        named = {event.get("correlation_id") for event in self.events}
        return self.is_kick and bool(named) and ended.issuperset(named)

    @property
    def is_kick(self) -> bool:
        """Whether the input says nothing at all."""
        return not self.needs_reply and {"kick"}.issuperset(self.kinds)

    @property
    def repeats_request(self) -> bool:
        """Whether the input only ends the wait for a limit: the request that was refused is made again."""
        kinds = [read_wait_kind(wait) for wait in self.ended_waits]
        return self.has_ledger and self.is_kick and "limit" in kinds

    @property
    def needs_reply(self) -> bool:
        """Whether the input has anything that the model should see."""
        return self.new_input or bool(self.human_events or self.other_events)

    @property
    def sources(self) -> list[str]:
        """What started this activation, without repetitions."""
        kinds = list(self.kinds)
        if self.new_input and not self.from_others:
            kinds.insert(0, "human")
        return list(dict.fromkeys(kinds)) or ["kick"]

    @property
    def by_peers(self) -> bool:
        """Whether only peers and subagents started this activation: no person, no clock."""
        return PEER_KINDS.issuperset(self.sources)

    # -- waits and replies -------------------------------------------------------------------------------

    @computed_once
    def ended_waits(self) -> list[Any]:
        """The waits that this input ends: by a correlation id, a person's words, a kick, or their time."""
        if self.is_held:
            return []
        return [wait for wait in self.waiting_on if self.answers(wait) or self.ends(wait)]

    def answers(self, wait: Any) -> bool:
        """Tell whether somebody who speaks in this input ends a wait."""
        answered = {e.get("correlation_id") for e in self.events if e.get("kind") in ANSWER_KINDS}
        key, on = wait.get("id"), read_wait_kind(wait)
        by_person = self.is_spoken and (on in ANSWERED_BY_PERSON or key == HOLD_WAIT)
        voices = {*self.kinds, "human"} if self.is_spoken else {*self.kinds}
        by_voice = OPEN_WAITS.get((str(key), on), NOBODY) & voices
        return key in answered or by_person or bool(by_voice)

    def ends(self, wait: Any) -> bool:
        """Tell whether a wait ends with this input though nobody has answered (rule 29)."""
        if self.leaves_question and wait.get("id") == QUESTION_WAIT:
            return True
        match read_wait_kind(wait):
            case "condition":  # the goal is asked whether it still holds
                return not self.by_peers
            case "limit":
                return self.is_kick or self.is_late(wait)
            case "work":
                return True
            case kind:
                return kind in CONTINUED_AFTER and self.is_late(wait)

    def is_late(self, wait: Any) -> bool:
        """Tell whether the time of a wait is over."""
        until = read_wait_end(wait)
        return until is not None and until <= self.now

    @computed_once
    def late_waits(self) -> list[Any]:
        """The waits that end because their time is over, although nothing has come."""
        late: list[Any] = []
        for wait in self.ended_waits:
            came = self.answers(wait) or (read_wait_kind(wait) == "work" and not self.is_kick)
            if read_wait_kind(wait) in CONTINUED_AFTER and self.is_late(wait) and not came:
                late.append(wait)
        return late

    @property
    def kicked_work(self) -> list[Any]:
        """The background work that a kick reports on before its time is over."""
        if not self.is_kick:
            return []
        ended = [wait for wait in self.ended_waits if read_wait_kind(wait) == "work"]
        return [wait for wait in ended if wait not in self.late_waits]

    @property
    def condition_since(self) -> float | None:
        """Since when a condition is waited for in a row; None if it is not, or was not asked about again."""
        conditions = [wait for wait in self.ended_waits if read_wait_kind(wait) == "condition"]
        return min((wait["since"] for wait in conditions if "since" in wait), default=None)

    @property
    def waits_for_limit(self) -> bool:
        """Whether the thread still waits for a limit after this input: only a person is worth a request."""
        left = [wait for wait in self.waiting_on if wait not in self.ended_waits]
        return "limit" in map(read_wait_kind, left) and not self.is_spoken

    @property
    def is_spoken(self) -> bool:
        """Whether a person has spoken, and not only a framework, a chat UI or an event."""
        return (self.new_input and self.ends_in_words and not self.from_others) or bool(self.human_events)

    @property
    def is_held(self) -> bool:
        """Whether the thread is on hold and stays so, because no person has spoken."""
        return any(wait.get("id") == HOLD_WAIT for wait in self.waiting_on) and not self.is_spoken

    @property
    def leaves_question(self) -> bool:
        """Whether a kick says that nobody will answer the question that the thread waits with."""
        kicks = [e.get("correlation_id") for e in self.events if e.get("kind") == "kick"]
        return QUESTION_WAIT in kicks and QUESTION_WAIT in [wait.get("id") for wait in self.waiting_on]

    @property
    def answers_person_wait(self) -> bool:
        """Whether a person's words in this input are the answer to a question or an approval."""
        kinds = [read_wait_kind(wait) for wait in self.waiting_on]
        asks = "human" in kinds or "approval" in kinds
        return self.is_spoken and (asks or any(wait.get("id") == QUESTION_WAIT for wait in self.waiting_on))

    @property
    def is_waiting(self) -> bool:
        """Whether the thread still waits for something after this input."""
        return len(self.ended_waits) < len(self.waiting_on)

    @property
    def finished_subagents(self) -> list[str]:
        """The ids of the subagents whose results came in."""
        done = [event for event in self.events if event.get("kind") == "subagent_done"]
        return [event["correlation_id"] for event in done if "correlation_id" in event]

    @property
    def owed_replies(self) -> list[dict[str, Any]]:
        """The replies that peers expect to messages of this input."""
        return list(filter(None, map(build_owed_reply, self.events)))

    def settle(self, state: TodoState, ledger: Ledger) -> dict[str, Any]:
        """Empty the inbox, remember its ids, end the waits that it answers, and note the replies owed."""
        update: dict[str, Any] = {}
        if self.events or state.get("todo_inbox"):
            update["todo_inbox"] = []
            seen = [*ledger.get("events", ()), *(e["id"] for e in self.events if e.get("id"))]
            ledger["events"] = seen[-REMEMBERED_EVENTS:]
        if self.ended_waits:
            update["waiting_on"] = {"drop": [wait.get("id") for wait in self.ended_waits]}
        if self.owed_replies:
            update["owed_replies"] = self.owed_replies
        if self.finished_subagents and state.get("todo_subagents"):
            update["todo_subagents"] = {"drop": self.finished_subagents}
        return update

    # -- what the model reads ----------------------------------------------------------------------------

    @computed_once
    def human_events(self) -> list[WakeEvent]:
        """The events with a person's words, each of which becomes a message."""
        return [e for e in self.events if e.get("kind") == "human" and e.get("text", "").strip()]

    @computed_once
    def other_events(self) -> list[WakeEvent]:
        """The other events, which become one message together."""
        others: list[WakeEvent] = []
        for event in self.events:
            kind, text = event.get("kind"), event.get("text", "").strip()
            if kind != "human" and (text or kind not in SILENT_KINDS):
                others.append(event)
        return others

    def format_events(self, no_text: str) -> str:
        """Format the events that are not a person's words, in the order of their arrival."""
        paragraphs = []
        for event in self.other_events:
            text = indent_lines(fix_surrogates(event.get("text", "")).strip())
            paragraphs.append(f"[{_format_label(event)}] {text or no_text}")
        return "\n\n".join(paragraphs)

    def build_messages(self, text: str) -> list[BaseMessage]:
        """Turn events into messages: a person's words as they are, the others as one marked message."""
        written: list[BaseMessage] = [
            HumanMessage(fix_surrogates(e["text"]), id=_make_event_id(e)) for e in self.human_events
        ]
        if self.other_events:
            ids = [str(event.get("id", "")) for event in self.other_events]
            kinds = list(dict.fromkeys(str(event.get("kind")) for event in self.other_events))
            marked = injected_kwargs("event", events=ids, kinds=kinds)
            key = HIDDEN + _make_event_id(self.other_events[0])
            written.append(HumanMessage(text, id=key, additional_kwargs=marked))
        return written


def _came_from_others(messages: Sequence[BaseMessage]) -> bool:
    """Tell whether all waiting user messages were put in by a framework or a chat UI."""
    waiting = takewhile(lambda m: m.type in ("human", "system"), reversed(messages))
    sources = [source_of(m) for m in waiting if isinstance(m, HumanMessage)]
    return bool(sources) and None not in sources


def _ended_early(state: TodoState) -> bool:
    """Tell whether the last run ended, by a fault or from outside, before the model had the last word."""
    reason, messages = (state.get("todo_session") or {}).get("reason"), state["messages"]
    if reason not in ("failed", "drained") or not messages:
        return False
    return not isinstance(messages[-1], AIMessage) or bool(messages[-1].tool_calls)


def _make_event_id(event: WakeEvent) -> str:
    return f"event-{event['id']}" if event.get("id") else new_id()


def _format_label(event: WakeEvent) -> str:
    kind = "task" if event.get("wants") == "subagent_done" else str(event.get("kind"))
    if sender := _escape_brackets(event.get("sender", "")):
        kind += f" from {sender}"
    if time := _escape_brackets(event.get("time", "")):
        kind += f", {time}"
    return kind


def _escape_brackets(name: str) -> str:
    """Make a name safe inside brackets: on one line, with parentheses for its own brackets."""
    return shorten(to_one_line(fix_surrogates(name)).translate({ord("["): "(", ord("]"): ")"}))
