"""What a model can know of its job: what its request shows."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage

from wakeloop.bench.task import Call, Step
from wakeloop.testing.captured_requests import calls_of, is_from_model, role_of
from wakeloop.testing.todo_tools import (
    Item,
    TodoTools,
    find_todo_tools,
    read_events,
    updated_ids,
    was_refused,
)


@dataclass(frozen=True)
class Belief:
    """A reading of one request. Steps go by their places; `at` of a step is where its last call was answered.

    Attributes:
        vocabulary: The list's tools that are bound, None if there are none.
        items: The list as the conversation shows it.
        done: Steps whose calls were all accepted, with the place of the last of them.
        failed: Steps of which a call was refused and that are not done, with the place of the refusal.
        claimed: Texts of items that some call meant to close, accepted or not.
        pushed: Where the last user message stands.
        replies: How many replies of the model there are.
        stopped: Whether the last of them made no call: whoever asks then pushes on.
        made: The calls that were made, as `key_of` names them.
    """

    vocabulary: TodoTools | None
    items: Sequence[Item] = ()
    done: Mapping[int, int] = field(default_factory=dict)
    failed: Mapping[int, int] = field(default_factory=dict)
    claimed: Collection[str] = ()
    pushed: int = 0
    replies: int = 0
    stopped: bool = False
    made: Collection[str] = ()

    def item(self, label: str) -> Item | None:
        """The first item of this text."""
        return next((item for item in self.items if item.text == label), None)


def believed(request: Sequence[BaseMessage], tools: Collection[str], steps: Sequence[Step]) -> Belief:
    """Read a request; `steps` say which calls do what."""
    vocabulary = find_todo_tools(tools)
    answered: dict[str, tuple[int, bool]] = {}
    made = set()
    pushed, replies, stopped = 0, 0, False
    results = {m.tool_call_id: m for m in request if isinstance(m, ToolMessage)}
    for place, message in enumerate(request):
        if role_of(message) == "user":
            pushed = place
        if is_from_model(message):
            replies, stopped = replies + 1, not calls_of(message)
        for call in calls_of(message):
            key = call_key(Call(call["name"], call["args"]))
            made.add(key)
            if (result := results.get(call["id"] or "")) is not None:
                accepted = not was_refused(result) or answered.get(key, (0, False))[1]
                answered[key] = (place, accepted)
    done, failed = {}, {}
    for number, step in enumerate(steps):
        found = [answered.get(call_key(call)) for call in step.calls]
        places = [one[0] for one in found if one]
        if any(one is not None and not one[1] for one in found):
            failed[number] = max(places)
        elif len(places) == len(found):
            done[number] = max(places, default=0)
    items = vocabulary.read(read_events(request)) if vocabulary else []
    claimed = _claimed(request, items) if vocabulary else frozenset()
    return Belief(vocabulary, items, done, failed, claimed, pushed, replies, stopped, made)


def call_key(call: Call) -> str:
    """A call as one text; another toolbox's word for a path is the same."""
    args = {"path" if name == "file_path" else name: value for name, value in call.args.items()}
    return f"{call.name} {json.dumps(args, sort_keys=True, default=str)}"


def _claimed(request: Sequence[BaseMessage], items: Sequence[Item]) -> frozenset[str]:
    """The texts of items that a call meant to close."""
    text = {str(item.key): item.text for item in items}
    claimed = set()
    for call in (call for message in request for call in calls_of(message)):
        args: dict[str, Any] = call["args"]
        if call["name"] == "todo__done" or args.get("status") == "done":
            claimed |= {text.get(str(key), "") for key in updated_ids(args)}
        for row in args.get("todos") or args.get("items") or ():
            if isinstance(row, dict) and row.get("status") == "completed":
                claimed.add(str(row.get("content", row.get("text"))))
    return frozenset(claimed)
