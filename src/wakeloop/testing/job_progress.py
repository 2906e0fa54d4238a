"""The progress of a job, as one request shows it."""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from wakeloop.testing.captured_requests import calls_of, is_from_model, role_of
from wakeloop.testing.jobs import Call, Step
from wakeloop.testing.todo_tools import (
    COMPLETED,
    DEFAULT_STATUS,
    Item,
    TodoTools,
    find_todo_tools,
    read_events,
    updated_ids,
    was_refused,
)


@dataclass(frozen=True)
class JobProgress:
    """What a model can know about its job from one request. Steps are identified by their index.

    Attributes:
        todo_tools: The bound todo tools, or None.
        items: The list as the conversation shows it.
        done: Steps whose calls were all accepted, each with the index of the message that made the last call.
        failed: Steps that are not done and had a call refused, each with the index of that message.
        claimed: Texts of items that some call tried to close, accepted or not.
        pushed: The index of the last user message.
        pushes: The user messages that came after a reply without calls.
        replies: How many replies the model has made.
        stopped: Whether the last reply made no call, so this request pushes the model on.
        made: The keys of all calls so far, see `call_key`.
    """

    todo_tools: TodoTools | None
    items: Sequence[Item] = ()
    done: Mapping[int, int] = field(default_factory=dict)
    failed: Mapping[int, int] = field(default_factory=dict)
    claimed: Collection[str] = ()
    pushed: int = 0
    pushes: Sequence[str] = ()
    replies: int = 0
    stopped: bool = False
    made: Collection[str] = ()

    def item(self, label: str) -> Item | None:
        """Return the first item with this text."""
        return next((item for item in self.items if item.text == label), None)


@dataclass(frozen=True)
class _Answer:
    """The last message that made a call, whether the call was ever accepted, and how often it was made."""

    place: int
    accepted: bool
    times: int


def read_progress(
    request: Sequence[BaseMessage], tools: Collection[str], steps: Sequence[Step], cleared: str = ""
) -> JobProgress:
    """Return the progress that a request shows. Results that contain the text `cleared` count as unseen."""
    todo_tools = find_todo_tools(tools)
    pushed = replies = 0
    pushes: list[str] = []
    stopped = False
    for place, message in enumerate(request):
        if role_of(message) == "user":
            pushed = place
            if stopped:
                pushes.append(str(message.text))
        if isinstance(message, AIMessage):  # a blank reply, or the line in its place, is a stop too
            replies, stopped = replies + is_from_model(message), not calls_of(message)
    made, answers = _read_calls(request, cleared)
    done, failed = _finished_steps(steps, answers)
    items: list[Item] = []
    claimed: frozenset[str] = frozenset()
    if todo_tools:
        items = todo_tools.read(read_events(request))
        claimed = _claimed_texts(request, items)
    return JobProgress(todo_tools, items, done, failed, claimed, pushed, pushes, replies, stopped, made)


def call_key(call: Call) -> str:
    """Return a call as one string; `path` and `file_path` are the same argument."""
    args = dict(call.args)
    if "file_path" in args:
        args["path"] = args.pop("file_path")
    return f"{call.name} {json.dumps(args, sort_keys=True, default=str)}"


def _finished_steps(
    steps: Sequence[Step], answers: Mapping[str, _Answer]
) -> tuple[dict[int, int], dict[int, int]]:
    """Return the steps that are done and those that failed, each with the index of its last message."""
    done, failed = {}, {}
    for number, step in enumerate(steps):
        last, is_refused, is_complete = 0, False, True
        for call in step.calls:
            answer = answers.get(call_key(call))
            if answer is None or answer.times < step.times:
                is_complete = False
                continue
            last = max(last, answer.place)
            is_refused = is_refused or not answer.accepted
        if is_refused:
            failed[number] = last
        elif is_complete:
            done[number] = last
    return done, failed


def _read_calls(request: Sequence[BaseMessage], cleared: str) -> tuple[set[str], dict[str, _Answer]]:
    """Return the keys of all calls, and the answers of those with a visible result."""
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
    """Return the texts of items that some call tried to close."""
    text = {str(item.key): item.text for item in items}
    claimed: set[str] = set()
    for call in chain.from_iterable(map(calls_of, request)):
        name, args = call["name"], call["args"]
        if name == "todo__done" or args.get("status", DEFAULT_STATUS) == DEFAULT_STATUS:
            claimed |= {text.get(str(key), "") for key in updated_ids(args)}
        claimed |= set(args.get(COMPLETED) or ())
        for row in args.get("todos") or args.get("items") or ():
            if isinstance(row, dict) and row.get("status") == "completed":
                claimed.add(str(row.get("content", row.get("text"))))
    return frozenset(claimed)
