"""Rule 23 as a property: what a request says of the list is the stored list, whoever wrote it.

A reader goes through the messages of each request as a model would: results, whole lists, updates. What it
knows in the end must be the list with which the request was made. 20,000 sequences: `NEWEST_LIST=20000 pytest
-n0 tests/graph/core/test_newest_list_machine.py`
"""

import json
import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from random import Random
from typing import Annotated, Any, TypedDict
from uuid import uuid4

from agents import budget
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command

from wakeloop import create_todo_agent, join_todos, update_todos
from wakeloop.middleware import ChangesState, WakeLoopMiddleware
from wakeloop.presets import PRESETS
from wakeloop.testing import ScriptedModel, calls, wire_faults
from wakeloop.todos.changes import diff_lists

SEQUENCES = int(os.environ.get("NEWEST_LIST", "24"))
QUIET = {
    "max_wake_cycles": 1,
    "guard_retries": 0,
    "auto_continue": True,
    "nag_after": 2,
    "on_question": "wake",
}
NESTED = ("parent", "joined")  # an agent in a parent graph, and next to another one
DOORS = (*PRESETS, "middleware", "middleware, as changes", *NESTED)
SAVER = InMemorySaver()  # shared, so that a thread can continue in another preset
CLASSES = {
    "pending": "open",
    "in_progress": "open",
    "completed": "closed",
    "cancelled": "closed",
    "done": "closed",
}
WORDS = {"done": "closed", "cancelled": "closed", "blocked": "blocked", "open": "open", "in_progress": "open"}
VERBS = "Added|Removed|Reworded|Completed|Cancelled|Blocked|Reopened|Started|Put back"
HEADER = re.compile(rf"({VERBS}) by .+:")
LINES = {
    "parley": re.compile(r"  \[(?P<key>\w+)\] (?P<text>t\d+)(?P<note>.*)"),
    "loki": re.compile(r"  (?P<mark>[○✓]) (?P<key>\w+)\. (?P<text>t\d+)(?P<note>.*)"),
    "checklist": re.compile(r"\[(?P<mark>.)\] #(?P<key>\w+): (?P<text>t\d+)(?P<note>.*)"),
    "write_todos": re.compile(r"  - \[(?P<mark>\w+)(?P<note>.*?)\] (?P<text>t\d+)"),
}
NUDGE = re.compile(r"(?P<open>\d+) of \d+ (unfinished|items)|Progress: \d+/\d+ completed")
MARKS = {
    "✓": "closed",
    "x": "closed",
    "-": "closed",
    "completed": "closed",
    "cancelled": "closed",
    "!": "blocked",
}


UNREAD = "?"  # the content of an item that was not shown, which the model can only change by guessing


def match_line(line: str) -> re.Match[str] | None:
    """Read an item's line in the words of any dialect: a thread may have continued in another."""
    return next(filter(None, (pattern.match(line) for pattern in LINES.values())), None)


class Reader:
    """What a model knows of the list after reading a request: by id, or by content if it sees no ids."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        self.known: dict[str, tuple[str, str]] = {}

    def key(self, item: Any) -> str:
        return str(item["content"] if self.dialect == "write_todos" else item["id"])

    def read(self, request: Sequence[BaseMessage]) -> dict[str, tuple[str, str]]:
        made: dict[str, Any] = {}
        for message in request:
            if isinstance(message, AIMessage):
                made |= {call["id"]: call for call in message.tool_calls}
            if isinstance(message, ToolMessage) and message.status == "success":
                self.read_result(made[message.tool_call_id], message.text)
            if message.type in ("human", "tool"):
                self.read_lines(message.text)
        return {key: item for key, item in self.known.items() if item[1] != "closed"}

    def read_result(self, call: Any, text: str) -> None:
        name, args = call["name"], call["args"]
        own = text.partition("\n\n")[0]
        if name in ("todo__init", "todo__clear"):
            self.known = {}
        elif name == "todo__add":
            self.known[str(json.loads(own)["id"])] = (args["task"], "open")
        elif name == "todo__done":
            key = str(args["id"])
            self.known[key] = (self.known.get(key, (UNREAD,))[0], "closed")
        elif name == "write_todos":
            self.read_whole_list(args, json.loads(own))
        elif name == "todo":
            self.known = {}
        elif name == "todo_write":
            numbers = re.match(r"Stored \d+ items, \[(\d+)\] to", own)
            for place, content in enumerate(args["items"] if numbers else ()):
                self.known[str(int(numbers[1]) + place)] = (content, "open")  # type: ignore[index]
        elif name == "todo_update":
            key, shown = str(args["id"]), re.search(r": (t\d+)", own)
            content = shown[1] if shown else self.known.get(key, (UNREAD,))[0]
            self.known[key] = (content, WORDS[args["status"]])

    def read_whole_list(self, args: Any, result: Any) -> None:
        items = result.get("todos", args.get("todos"))  # a result that only counts is short
        if "todos" in args:
            self.known = {
                one["content"]: (one["content"], CLASSES.get(one["status"], "blocked")) for one in items
            }
        for content in args.get("completed", ()):
            self.known[content] = (content, "closed")

    def read_lines(self, text: str) -> None:
        verb = ""
        for line in text.split("\n"):
            if line.endswith("[The current todo list:]") or self.shows_all(
                line, text[text.index(line) + len(line) :]
            ):
                self.known = dict.fromkeys(self.known, (UNREAD, "closed"))
                verb = ""
            elif header := HEADER.fullmatch(line):
                verb = header[1]
            elif found := match_line(line):
                self.read_item(verb, line, found.groupdict())
            else:
                verb = ""

    def shows_all(self, line: str, listing: str) -> bool:
        """Return whether a line begins the whole list; a short nudge names the next item."""
        nudge = NUDGE.search(line)
        if nudge is None:
            return "Here is your todo list" in line
        found = (LINES[name].match(one) for one in listing.split("\n") for name in ("parley", "write_todos"))
        shown = [one for one in found if one]
        count = sum("blocked" not in one[0] for one in shown)
        return not shown or ("…" not in listing and count == int(nudge["open"] or 0))

    def read_item(self, verb: str, line: str, found: dict[str, Any]) -> None:
        key, note = found.get("key") or found["text"], found.get("note") or ""
        is_ = MARKS.get(found.get("mark") or "", "open")
        if verb in ("Completed", "Cancelled") or note.startswith((" (completed", " (cancelled", " (done")):
            is_ = "closed"
        if "blocked" in note or found.get("mark") == "blocked":
            is_ = "blocked"
        if was := re.search(r"\(was: (t\d+)\)", line):
            self.known.pop(key if "key" in found else was[1], None)
        if verb == "Removed":
            if self.known.pop(key, None) is None:  # known by another key, before the dialect changed
                self.known = {name: was for name, was in self.known.items() if was[0] != found["text"]}
        else:
            self.known[key] = (found["text"], is_)


def class_of(item: Any) -> str:
    return CLASSES.get(item["status"], "blocked")


def put(data: str, call_id: str) -> Command[Any]:
    """Write the list."""
    told = ToolMessage("put", tool_call_id=call_id)
    return Command(update={"todos": json.loads(data), "messages": [told]})


class Parent(TypedDict):
    messages: Annotated[list[Any], add_messages]
    todos: list[Any]


class Joined(TypedDict):
    messages: Annotated[list[Any], add_messages]
    todos: Annotated[list[Any], join_todos]


def nest(door: str, agent: Any, other: Any) -> Any:
    """Put an agent into a parent graph, alone or in parallel with another one."""
    graph = StateGraph(Parent if door == "parent" else Joined)
    for name, node in (("a", agent), ("b", other))[: 1 if door == "parent" else 2]:
        graph.add_node(name, node)
        graph.add_edge(START, name)
    return graph.compile(checkpointer=SAVER)


@cache
def make(door: str) -> tuple[Any, ScriptedModel, list[Any], str, list[Any]]:
    """Make an agent through one of the doors; return it, its model, its future replies, and its dialect.

    The last value is the future replies of the agent next to it.
    """
    preset = PRESETS.get(door, PRESETS["wakeloop" if door in NESTED else "langchain"])
    settings = preset.model_copy(update={**QUIET, "in_progress": "any", "max_items": None})
    coming: list[Any] = []
    others: list[Any] = []

    def script(coming: list[Any]) -> Iterator[Any]:
        while True:
            yield coming.pop(0) if coming else "Fine."

    model, other = ScriptedModel(script(coming)), ScriptedModel(script(others))
    if door in PRESETS:
        agent: Any = create_todo_agent(model, [put], settings=settings, checkpointer=SAVER)
        return agent, model, coming, settings.dialect, others
    if door in NESTED:
        agents = [create_todo_agent(one, [put], settings=settings) for one in (model, other)]
        return nest(door, *agents), model, coming, settings.dialect, others
    state = ChangesState if door.endswith("changes") else None
    middleware = [WakeLoopMiddleware(settings=settings)]
    agent = create_agent(model, [put], middleware=middleware, checkpointer=SAVER, state_schema=state)
    return agent, model, coming, settings.dialect, others


class Thread:
    """Random writes of the model, of tools, by hand, by the program and in forks."""

    def __init__(self, door: str) -> None:
        self.count, self.has_twins = 0, False
        self.use(door)
        self.asks = "model" if door.startswith("middleware") else "call_model"
        self.config = {"configurable": {"thread_id": str(uuid4())}}

    def use(self, door: str) -> None:
        """Continue through a door."""
        self.door = door
        self.agent, self.model, self.coming, self.dialect, self.others = make(door)
        self.coming.clear()
        self.model.requests.clear()

    def change_preset(self, rng: Random) -> None:
        self.use(rng.choice([*PRESETS]))
        self.run(rng)

    # -- what may happen ----------------------------------------------------------------------------------

    def text(self) -> str:
        self.count += 1
        return f"t{self.count}"

    @property
    def todos(self) -> list[Any]:
        return [dict(item) for item in self.agent.get_state(self.config).values.get("todos") or ()]

    def edited(self, rng: Random) -> list[Any]:
        """Return the list as somebody edits it: items removed, changed, moved and added."""
        todos = rng.sample(self.todos, len(self.todos)) if rng.random() < 0.5 else self.todos
        new = []
        for item in todos:
            match rng.choice(["keep", "keep", "remove", "close", "reword", "block", "open"]):
                case "remove":
                    continue
                case "close":
                    item["status"] = "completed"
                case "open":
                    item["status"] = "pending"
                case "block":
                    item |= {"status": "blocked", "reason": "no key"}
                case "reword":
                    item["content"] = self.text()
            new.append(item)
        if rng.random() < 0.5:
            new.append({"content": self.text(), "status": "pending"})
            if self.door == "joined":  # where lists are joined by id
                new[-1]["id"] = 1000 + self.count
        return new

    def reply(self, rng: Random) -> AIMessage:
        """Choose what the model does next: it writes, a tool writes, or both."""
        key = rng.randint(1, 6)
        made: list[Any] = []
        kind = rng.choice(["write", "update", "tool", "both"])
        if kind in ("write", "update", "both"):
            made += self.todo_calls(kind, key, rng)
        if kind in ("tool", "both"):
            self.count += 1
            call_id = f"put{self.count}"
            made.append(("put", {"data": json.dumps(self.edited(rng)), "call_id": call_id}, call_id))
        return calls(*made)

    def todo_calls(self, kind: str, key: int, rng: Random) -> list[Any]:
        size = rng.randint(0, 3)
        if self.dialect == "parley" and kind == "write":
            return [("todo_write", {"items": [self.text() for _ in range(max(size, 1) * 2)]})]
        if self.dialect == "parley":
            return [
                (
                    "todo_update",
                    {"id": key, "status": rng.choice(["done", "blocked"]), "reason": "why"},
                )
            ]
        if self.dialect == "loki":
            if kind == "write":
                name = rng.choice(["todo__init", "todo__clear"])
                return [
                    (name, {"goal": "g"} if name == "todo__init" else {}),
                    ("todo__add", {"task": self.text()}),
                ]
            return [("todo__done", {"id": key})]
        return self.whole_list_calls(kind, size, rng)

    def whole_list_calls(self, kind: str, size: int, rng: Random) -> list[Any]:
        kept = [item for item in self.todos if rng.random() < 0.5]
        states = ("pending", "completed")
        if self.dialect == "checklist":
            rows = [
                {
                    "id": str(item.get("id", self.text())),
                    "text": item["content"],
                    "status": rng.choice(states),
                }
                for item in kept
            ]
            rows += [{"id": self.text(), "text": self.text(), "status": "pending"} for _ in range(size)]
            return [("todo", {"items": rows})]
        if kept and kind == "update":
            return [("write_todos", {"completed": [item["content"] for item in kept]})]
        rows = [{"content": item["content"], "status": rng.choice(states)} for item in kept]
        rows += [{"content": self.text(), "status": "pending"} for _ in range(size)]
        return [("write_todos", {"todos": rows})]

    def run(self, rng: Random) -> None:
        by, rounds = rng.choice(["words", "kick", "list"]), rng.randint(0, 3)
        given: dict[str, Any] = {} if by == "kick" else {"messages": [("user", "Go on.")]}
        if by == "list":
            given["todos"] = self.edited(rng)
        self.go(given, rng, rounds)

    def go(self, given: Any, rng: Random, rounds: int, config: Any = None) -> None:
        self.coming[:] = [self.reply(rng) for _ in range(rounds)]
        self.others[:] = [self.reply(rng) for _ in range(rounds if self.door == "joined" else 0)]
        self.follow(given, config or self.config)

    def follow(self, given: Any, config: Any, **more: Any) -> list[list[Any]]:
        """Run, compare each request with the list it was made with, and return those lists."""
        lists: dict[int, list[Any]] = {}
        first = len(self.model.requests)
        for values in self.agent.stream(given, config, stream_mode="values", **more):
            lists[len(self.model.requests)] = list(values.get("todos") or ())
        if self.door == "parent":  # it sees the list only before the first request and after the last
            lists[len(self.model.requests) - 1] = lists[len(self.model.requests)]
        for number in range(first, len(self.model.requests)):
            if number in lists or self.door not in NESTED:
                self.compare(self.model.requests[number], lists.get(number, []))
        return [lists.get(number, []) for number in range(first, len(self.model.requests))]

    def compare(self, request: list[BaseMessage], todos: list[Any]) -> None:
        reader = Reader(self.dialect)
        known = reader.read(request)
        # without ids, a model cannot tell items with the same content apart
        if self.dialect == "write_todos":
            self.has_twins |= len({item["content"] for item in todos}) < len(todos)
        if all("id" in item for item in todos) and not self.has_twins:
            open_ = [item for item in todos if class_of(item) != "closed"]
            expected = {reader.key(item): (item["content"], class_of(item)) for item in open_}
            for key in known.keys() & expected.keys():
                if known[key][0] == UNREAD:
                    expected[key] = (UNREAD, expected[key][1])
            assert known == expected
        assert wire_faults([request]) == []

    def edit_behind_a_reply(self, rng: Random) -> None:
        """Add an item between a reply and its todo calls: it must survive."""
        if self.door not in PRESETS:
            return
        self.coming[:] = [calls(*self.todo_calls(rng.choice(["write", "update"]), rng.randint(1, 6), rng))]
        self.follow({"messages": [("user", "Go on.")]}, self.config, interrupt_before=["validate_todos"])
        snapshot = self.agent.get_state(self.config)
        if snapshot.next != ("validate_todos",):
            return
        text = self.text()
        todos = [*self.todos, {"content": text, "status": "pending"}]
        self.agent.update_state(self.config, {"todos": todos}, as_node="call_model")
        lists = self.follow(None, self.config)
        assert not lists or text in [item["content"] for item in lists[0]]

    def edit_by_hand(self, rng: Random) -> None:
        keys = [item["id"] for item in self.todos if "id" in item]
        edits: dict[str, Any] = {"add": [self.text()]} if rng.random() < 0.5 else {}
        if keys:
            key = rng.choice(keys)
            name = rng.choice(["done", "remove", "reopen", "cancel", "edit", "block"])
            edits[name] = {"edit": {key: self.text()}, "block": {key: "no key"}}.get(name, [key])
        update_todos(self.agent, self.config, **edits)

    def update_state(self, rng: Random) -> None:
        if not self.todos:
            return
        todos: Any = self.edited(rng)
        if all("id" in item for item in [*todos, *self.todos]) and rng.random() < 0.5:
            todos = diff_lists(self.todos, todos) or None
        self.agent.update_state(self.config, {"todos": todos})

    def fork(self, rng: Random) -> None:
        """Go back to a past request, write the list there, and continue."""
        rounds = rng.randint(0, 2)
        history = []
        for snapshot in self.agent.get_state_history(self.config, limit=30):
            is_request = snapshot.next == (self.asks,) and snapshot.metadata["source"] == "loop"
            if is_request and (self.door in PRESETS or snapshot.values["messages"][-1].type != "tool"):
                history.append(snapshot)
        if not history:
            return
        place = rng.choice(history[:6])
        node = None if self.door in PRESETS else "WakeLoopMiddleware.before_agent"
        now = self.agent.update_state(place.config, {"todos": self.edited_from(place, rng)}, as_node=node)
        self.go(None, rng, rounds, now)

    def edited_from(self, place: Any, rng: Random) -> list[Any]:
        todos = [dict(item) for item in place.values.get("todos") or ()]
        return [*todos[rng.randint(0, 1) :], {"content": self.text(), "status": "pending"}]


def play(seed: int) -> None:
    """Play one random sequence."""
    rng = Random(seed)
    thread = Thread(rng.choice(DOORS))
    ways = [thread.run, thread.run]
    if thread.door != "joined":
        ways.append(thread.edit_by_hand)
    if thread.door not in NESTED:
        ways += [thread.update_state, thread.fork, thread.edit_behind_a_reply]
    if thread.door in PRESETS:
        ways.append(thread.change_preset)
    thread.run(rng)
    for _ in range(rng.randint(1, 5)):
        rng.choice(ways)(rng)
    thread.run(rng)
    SAVER.delete_thread(thread.config["configurable"]["thread_id"])


@budget(SEQUENCES)
@given(st.integers(0, 2**48))
def test_what_a_request_says_is_the_stored_list(seed: int) -> None:
    play(seed)
