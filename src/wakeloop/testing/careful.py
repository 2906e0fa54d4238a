"""What a careful model would do next."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

from wakeloop.testing.captured_requests import calls_of, malformed_of, role_of
from wakeloop.testing.schema_examples import make_example
from wakeloop.testing.todo_tools import (
    Item,
    PlannedCall,
    TodoTools,
    find_todo_tools,
    read_events,
    was_refused,
)

_PATIENCE = 3


@dataclass(frozen=True)
class Intent:
    """The next reply: what it is for, its text, its calls."""

    kind: Literal["plan", "work", "update", "end"]
    text: str = ""
    moves: tuple[PlannedCall, ...] = ()


@dataclass(frozen=True)
class Desk:
    """A conversation and the tools at hand."""

    messages: Sequence[BaseMessage]
    tools: dict[str, dict[str, Any]]
    vocabulary: TodoTools | None
    items: list[Item]

    @property
    def open(self) -> list[Item]:
        """What is still to be done, the items in progress first."""
        waiting = [item for item in self.items if item.is_open]
        return sorted(waiting, key=lambda item: item.status != "in_progress")

    @property
    def others(self) -> list[str]:
        """The tools that are not for the list."""
        return sorted(self.tools.keys() - (self.vocabulary.names if self.vocabulary else frozenset()))


def desk_of(messages: Sequence[BaseMessage], tools: Sequence[dict[str, Any]]) -> Desk:
    """Read the conversation; `tools` in OpenAI's format, a provider's own are passed over."""
    known = {tool["function"]["name"]: tool["function"] for tool in tools if "function" in tool}
    vocabulary = find_todo_tools(known)
    return Desk(messages, known, vocabulary, vocabulary.read(read_events(messages)) if vocabulary else [])


def next_intent(desk: Desk, rng: Random, size: int) -> Intent:
    """Plan what was asked for, do each item with another tool, close it, end with a text.

    After three rounds in a row that were refused whole it gives up with a text.
    """
    rounds = _rounds(desk.messages)
    if len(rounds) >= _PATIENCE and not any(any(accepted) for accepted in rounds[-_PATIENCE:]):
        return Intent("end", "I cannot go on: my calls are refused.")
    worked = bool(rounds) and any(name in desk.others for name in rounds[-1])
    if desk.vocabulary is None:
        done = worked or not desk.others
        return Intent("end", "Done.") if done else work(desk, rng, "the request")
    if not desk.open:
        if _is_planned(desk):
            return Intent("end", f"Finished: all {len(desk.items)} items are settled.")
        texts = [f"part {number} of {size}" for number in range(1, size + 1)]
        return Intent("plan", moves=tuple(desk.vocabulary.plan(texts)))
    item = desk.open[0]
    if worked or not desk.others:
        return Intent("update", moves=(desk.vocabulary.close(desk.items, item),))
    return work(desk, rng, item.text)


def work(desk: Desk, rng: Random, text: str) -> Intent:
    """A call of one of the other tools, with arguments that fit its schema."""
    name = rng.choice(desk.others)
    shape = {"type": "object", **desk.tools[name].get("parameters", {})}
    return Intent("work", moves=(PlannedCall(name, make_example(shape, rng, text)),))


def _rounds(messages: Sequence[BaseMessage]) -> list[list[str]]:
    """The names that were accepted in each round since the last user message, one list a round."""
    refused = {m.tool_call_id for m in messages if isinstance(m, ToolMessage) and was_refused(m)}
    rounds: list[list[str]] = []
    for message in reversed(messages):
        if role_of(message) == "user":
            break
        if calls_of(message) or malformed_of(message):
            rounds.insert(0, [call["name"] for call in calls_of(message) if call["id"] not in refused])
    return rounds


def _is_planned(desk: Desk) -> bool:
    """Whether the list was written since the user last asked; what others put in is no request."""
    asked = max(
        (
            place
            for place, message in enumerate(desk.messages)
            if isinstance(message, HumanMessage)
            and not message.additional_kwargs.keys() & {"wakeloop", "lc_source"}
        ),
        default=-1,
    )
    writes = desk.vocabulary.writes if desk.vocabulary else frozenset()
    since = desk.messages[asked + 1 :]
    return bool(desk.items) and any(call["name"] in writes for message in since for call in calls_of(message))
