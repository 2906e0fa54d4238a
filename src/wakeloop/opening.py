"""What an input brought: people, events, kicks."""

from dataclasses import dataclass
from typing import Self

from langchain_core.messages import BaseMessage, HumanMessage

from wakeloop.marks import mark, new_id
from wakeloop.state import Ledger, TodoState, WakeEvent
from wakeloop.todos import shorten
from wakeloop.unicode import indented, one_line

PASSIVE = frozenset(("subagent_done", "cron", "kick"))


def inbox_fault(state: TodoState) -> str | None:
    """Say what is wrong with the events of an input, or return None."""
    events: object = state.get("todo_inbox") or []
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        return f"todo_inbox must be a list of events, not {shorten(repr(events))}"
    for place, event in enumerate(events, 1):
        for key in WakeEvent.__annotations__:
            if not isinstance(event.get(key, ""), str):
                return f"todo_inbox event {place}: {key} must be a text, not {shorten(repr(event[key]))}"
    return None


@dataclass(frozen=True)
class Opening:
    """What an input brought."""

    new_input: bool
    events: tuple[WakeEvent, ...]
    waiting: bool
    known: bool

    @classmethod
    def of(cls, state: TodoState, old: Ledger) -> Self:
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
            waiting=bool(state.get("waiting_on")),
            known=bool(old),
        )

    @property
    def passive(self) -> bool:
        """Whether no person and no peer is among what came in."""
        return all(event.get("kind") in PASSIVE for event in self.events)

    @property
    def continues(self) -> bool:
        """Whether only subagents' results came in: they continue the activation."""
        kinds = {event.get("kind") for event in self.events}
        return self.known and not self.new_input and kinds == {"subagent_done"}

    @property
    def came_in(self) -> bool:
        """Whether anything came in that the model should see."""
        return self.new_input or bool(self.messages())

    @property
    def sources(self) -> list[str]:
        """What woke this activation, once each."""
        kinds = [*(["human"] if self.new_input else []), *(str(e.get("kind")) for e in self.events)]
        return list(dict.fromkeys(kinds)) or ["kick"]

    def messages(self) -> list[BaseMessage]:
        """Turn events into messages: a person's words as they are, the others as one marked message."""
        people = [e for e in self.events if e.get("kind") == "human" and e.get("text")]
        others = [e for e in self.events if e.get("kind") != "human" and e.get("text")]
        written: list[BaseMessage] = [HumanMessage(e["text"], id=_event_id(e)) for e in people]
        if others:
            text = "\n\n".join(f"[{_label(e)}] {indented(e['text'])}" for e in others)
            kinds = list(dict.fromkeys(str(e.get("kind")) for e in others))
            marked = mark("event", events=[str(e.get("id", "")) for e in others], kinds=kinds)
            written.append(HumanMessage(text, id=_event_id(others[0]), additional_kwargs=marked))
        return written


def _event_id(event: WakeEvent) -> str:
    return f"event-{event['id']}" if event.get("id") else new_id()


def _label(event: WakeEvent) -> str:
    kind, sender = _in_brackets(event.get("kind") or "event"), _in_brackets(event.get("sender") or "")
    return f"{kind} from {sender}" if sender else kind


def _in_brackets(name: str) -> str:
    """A name that ends neither its line nor the brackets around it."""
    return shorten(one_line(name).translate({ord("["): "(", ord("]"): ")"}))
