"""What an input brought: people, events, kicks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Self

from langchain_core.messages import BaseMessage, HumanMessage

from wakeloop.errors import SettingsError
from wakeloop.loop.inbox import WakeEvent, build_owed_reply, find_event_fault
from wakeloop.loop.ledger import Ledger
from wakeloop.platform.computed_once import computed_once
from wakeloop.state import TodoState
from wakeloop.text.characters import fix_surrogates, indent_lines, shorten, to_one_line
from wakeloop.text.marks import HIDDEN, injected_kwargs, new_id, source_of

REMEMBERED_EVENTS = 64
PASSIVE_KINDS = frozenset(("subagent_done", "cron", "kick"))
ANSWER_KINDS = frozenset(("human", "peer_reply", "subagent_done"))
ANSWERED_BY_PERSON = frozenset(
    ("human", "approval")
)  # what a person's word releases: an answer, or a refusal in words
SILENT_KINDS = frozenset(
    ("human", "kick")
)  # without a text these say nothing; of the others the model is told


def find_inbox_fault(state: TodoState) -> str | None:
    """Say what is wrong with the events of an input, or return None."""
    events: object = state.get("todo_inbox") or []
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        return f"todo_inbox must be a list of events, not {shorten(repr(events))}"
    faults = (
        f"todo_inbox event {i}: {fault}" for i, e in enumerate(events, 1) if (fault := find_event_fault(e))
    )
    return next(faults, None)


def merge_settings(channel: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Join a thread's settings and the context's, which rank alike; the context's are newer."""
    given = (
        context.get("todo_settings")
        if isinstance(context, Mapping)
        else getattr(context, "todo_settings", None)
    )
    if given is None:
        return dict(channel)
    if not isinstance(given, Mapping):
        raise SettingsError(
            f"The context's todo_settings must be a mapping of setting to value, not {given!r}."
        )
    return {**channel, **given}


@dataclass(frozen=True)
class ThreadInput:
    """What an input brought, and what the thread waited for before it."""

    new_input: bool
    events: tuple[WakeEvent, ...]
    has_ledger: bool
    waiting_on: tuple[Any, ...] = ()
    from_others: bool = False  # all that is new was put in by a framework or a chat UI

    @classmethod
    def read(cls, state: TodoState, old: Ledger) -> Self:
        """Read the input off the state; an event that was seen before is ignored."""
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
            waiting_on=tuple(state.get("waiting_on") or ()),
            from_others=_came_from_others(messages),
        )

    @property
    def is_passive(self) -> bool:
        """Whether no person and no peer is among what came in."""
        return all(event.get("kind") in PASSIVE_KINDS for event in self.events)

    @property
    def continues_activation(self) -> bool:
        """Whether only subagents' results came in: they continue the activation."""
        kinds = {event.get("kind") for event in self.events}
        return self.has_ledger and not self.new_input and kinds == {"subagent_done"}

    @property
    def needs_reply(self) -> bool:
        """Whether anything came in that the model should see."""
        return self.new_input or bool(self.human_events or self.other_events)

    @property
    def sources(self) -> list[str]:
        """What woke this activation, once each."""
        kinds = [
            *(["human"] if self.new_input and not self.from_others else []),
            *(str(e.get("kind")) for e in self.events),
        ]
        return list(dict.fromkeys(kinds)) or ["kick"]

    # -- what it answers, and what is to be answered -----------------------------------------------------

    @computed_once
    def answered_waits(self) -> list[Any]:
        """The ids of what the thread waited for and has now: by correlation id, or a person's word."""
        answered = {e.get("correlation_id") for e in self.events if e.get("kind") in ANSWER_KINDS}
        person = (self.new_input and not self.from_others) or bool(self.human_events)
        entries = [w if isinstance(w, Mapping) else {"id": w} for w in self.waiting_on]
        here = (
            w for w in entries if w.get("id") in answered or (person and w.get("on") in ANSWERED_BY_PERSON)
        )
        return [w.get("id") for w in here]

    @property
    def is_waiting(self) -> bool:
        """Whether the thread still waits for something."""
        return len(self.answered_waits) < len(self.waiting_on)

    @property
    def finished_subagents(self) -> list[str]:
        """The handles of the subagents whose results came in."""
        done = (e for e in self.events if e.get("kind") == "subagent_done")
        return [e["correlation_id"] for e in done if "correlation_id" in e]

    @property
    def owed_replies(self) -> list[dict[str, Any]]:
        """What the peers' messages that came in want to be answered."""
        return [entry for event in self.events if (entry := build_owed_reply(event))]

    def settle(self, state: TodoState, ledger: Ledger) -> dict[str, Any]:
        """Empty the inbox, remember its ids, take off what is waited for no more, note what is owed."""
        update: dict[str, Any] = {}
        if self.events or state.get("todo_inbox"):
            update["todo_inbox"] = []
            seen = [*ledger.get("events", ()), *(e["id"] for e in self.events if e.get("id"))]
            ledger["events"] = seen[-REMEMBERED_EVENTS:]
        if self.answered_waits:
            update["waiting_on"] = {"drop": self.answered_waits}
        if self.owed_replies:
            update["owed_replies"] = self.owed_replies
        if self.finished_subagents and state.get("todo_subagents"):
            update["todo_subagents"] = {"drop": self.finished_subagents}
        return update

    # -- what the model reads ----------------------------------------------------------------------------

    @computed_once
    def human_events(self) -> list[WakeEvent]:
        """The events that are a person's words."""
        return [e for e in self.events if e.get("kind") == "human" and e.get("text", "").strip()]

    @computed_once
    def other_events(self) -> list[WakeEvent]:
        """The events that are told in one message."""
        told = [e for e in self.events if e.get("kind") not in SILENT_KINDS or e.get("text", "").strip()]
        return [e for e in told if e.get("kind") != "human"]

    def format_events(self, no_text: str) -> str:
        """Return the events that are no person's words, in the order of their arrival."""
        return "\n\n".join(
            f"[{_format_label(e)}] {indent_lines(fix_surrogates(e.get('text', '')).strip()) or no_text}"
            for e in self.other_events
        )

    def build_messages(self, text: str) -> list[BaseMessage]:
        """Turn events into messages: a person's words as they are, the others as one marked message."""
        written: list[BaseMessage] = [
            HumanMessage(fix_surrogates(e["text"]), id=_make_event_id(e)) for e in self.human_events
        ]
        if self.other_events:
            kinds = list(dict.fromkeys(str(e.get("kind")) for e in self.other_events))
            marked = injected_kwargs(
                "event", events=[str(e.get("id", "")) for e in self.other_events], kinds=kinds
            )
            written.append(
                HumanMessage(text, id=HIDDEN + _make_event_id(self.other_events[0]), additional_kwargs=marked)
            )
        return written


def _came_from_others(messages: Sequence[BaseMessage]) -> bool:
    """Tell whether no user's message is among those that wait, but others' are."""
    waiting = takewhile(lambda m: m.type in ("human", "system"), reversed(messages))
    told = [source_of(m) for m in waiting if isinstance(m, HumanMessage)]
    return bool(told) and None not in told


def _make_event_id(event: WakeEvent) -> str:
    return f"event-{event['id']}" if event.get("id") else new_id()


def _format_label(event: WakeEvent) -> str:
    kind = "task" if event.get("wants") == "subagent_done" else str(event.get("kind"))
    sender, time = _escape_brackets(event.get("sender", "")), _escape_brackets(event.get("time", ""))
    return f"{kind}{f' from {sender}' if sender else ''}{f', {time}' if time else ''}"


def _escape_brackets(name: str) -> str:
    """A name that ends neither its line nor the brackets around it."""
    return shorten(to_one_line(fix_surrogates(name)).translate({ord("["): "(", ord("]"): ")"}))
