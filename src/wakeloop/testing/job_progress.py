"""How far a job is, as one request shows it."""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage

from wakeloop.testing.captured_requests import calls_of, is_from_model, role_of
from wakeloop.testing.jobs import Call, Step
from wakeloop.testing.todo_tools import (
    Item,
    TodoTools,
    find_todo_tools,
    read_events,
    updated_ids,
    was_refused,
)


@dataclass(frozen=True)
class JobProgress:
    """What a model can know of its job from one request. Steps are named by their index.

    Attributes:
        todo_tools: The todo tools that are bound, None if there are none.
        items: The list as the conversation shows it.
        done: Steps whose calls were all accepted, with the index of the message that made the last of them.
        failed: Steps of which a call was refused and that are not done, with the index of that message.
        claimed: Texts of items that some call meant to close, accepted or not.
        pushed: The index of the last user message.
        pushes: How many user messages came after a reply without calls.
        replies: How many replies the model has made.
        stopped: Whether the last of them made no call, so that whoever asks now pushes on.
        made: The calls that were made, as `call_key` names them.
    """

    todo_tools: TodoTools | None
    items: Sequence[Item] = ()
    done: Mapping[int, int] = field(default_factory=dict)
    failed: Mapping[int, int] = field(default_factory=dict)
    claimed: Collection[str] = ()
    pushed: int = 0
    pushes: int = 0
    replies: int = 0
    stopped: bool = False
    made: Collection[str] = ()

    def item(self, label: str) -> Item | None:
        """Return the first item with this text."""
        return next((item for item in self.items if item.text == label), None)


@dataclass(frozen=True)
class _Answer:
    """The message that made a call last, whether it was ever accepted, and how often."""

    place: int
    accepted: bool
    times: int


def read_progress(
    request: Sequence[BaseMessage], tools: Collection[str], steps: Sequence[Step], cleared: str = ""
) -> JobProgress:
    """Read a request. Results that hold the text `cleared` count as never seen."""
    todo_tools = find_todo_tools(tools)
    pushed = pushes = replies = 0
    stopped = False
    for place, message in enumerate(request):
        if role_of(message) == "user":
            pushed = place
            pushes += stopped
        if is_from_model(message):
            replies, stopped = replies + 1, not calls_of(message)
    made, answers = _read_calls(request, cleared)
    done, failed = {}, {}
    for number, step in enumerate(steps):
        found = [answers.get(call_key(call)) for call in step.calls]
        answered = [answer for answer in found if answer is not None and answer.times >= step.times]
        last = max((answer.place for answer in answered), default=0)
        if not all(answer.accepted for answer in answered):
            failed[number] = last
        elif len(answered) == len(found):
            done[number] = last
    items = todo_tools.read(read_events(request)) if todo_tools else []
    claimed = _claimed_texts(request, items) if todo_tools else frozenset()
    return JobProgress(todo_tools, items, done, failed, claimed, pushed, pushes, replies, stopped, made)


def call_key(call: Call) -> str:
    """Return a call as one string; `path` and `file_path` are the same argument."""
    args = {"path" if name == "file_path" else name: value for name, value in call.args.items()}
    return f"{call.name} {json.dumps(args, sort_keys=True, default=str)}"


def _read_calls(request: Sequence[BaseMessage], cleared: str) -> tuple[set[str], dict[str, _Answer]]:
    """Return every call that was made, and how those with a visible result were answered."""
    results = {m.tool_call_id: m for m in request if isinstance(m, ToolMessage)}
    made: set[str] = set()
    answers: dict[str, _Answer] = {}
    times: Counter[str] = Counter()
    for place, message in enumerate(request):
        for call in calls_of(message):
            key = call_key(Call(call["name"], call["args"]))
            made.add(key)
            result = results.get(call["id"] or "")
            if result is None or (cleared and cleared in str(result.text)):
                continue
            times[key] += 1
            before = answers.get(key)
            accepted = not was_refused(result) or (before is not None and before.accepted)
            answers[key] = _Answer(place, accepted, times[key])
    return made, answers


def _claimed_texts(request: Sequence[BaseMessage], items: Sequence[Item]) -> frozenset[str]:
    """Return the texts of items that a call meant to close."""
    text = {str(item.key): item.text for item in items}
    claimed: set[str] = set()
    for name, args in _calls_in(request):
        if name == "todo__done" or args.get("status") == "done":
            claimed |= {text.get(str(key), "") for key in updated_ids(args)}
        for row in args.get("todos") or args.get("items") or ():
            if isinstance(row, dict) and row.get("status") == "completed":
                claimed.add(str(row.get("content", row.get("text"))))
    return frozenset(claimed)


def _calls_in(request: Sequence[BaseMessage]) -> Iterator[tuple[str, dict[str, Any]]]:
    for message in request:
        for call in calls_of(message):
            yield call["name"], call["args"]
