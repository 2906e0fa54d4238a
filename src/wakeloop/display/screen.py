"""Screen: what a view shows, fed by a run's stream."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Annotated, Any, Literal, Self, TextIO, TypeGuard

from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage
from pydantic import Discriminator, TypeAdapter, ValidationError

from wakeloop.display import formatting
from wakeloop.display.terminal_output import clean_line, indent_continuation, strip_controls, write_text
from wakeloop.loop.ledger import Ledger
from wakeloop.loop.spending import report_spent as spent_in
from wakeloop.stream import ActivationSpending, Event
from wakeloop.text.characters import pluralize
from wakeloop.text.marks import is_model_reply, kind_of, split_result_text
from wakeloop.text.secrets import redact_text
from wakeloop.thread.thread_status import INTERRUPT_KEY
from wakeloop.todos.items import Todo


def is_wakeloop_event(data: object) -> TypeGuard[Event]:
    """Tell whether streamed data is an event of this package, and not something that a tool streamed."""
    try:
        _make_reader().validate_python(data, strict=True)
    except ValidationError:
        return False
    return True


@cache
def _make_reader() -> TypeAdapter[Any]:
    return TypeAdapter(Annotated[Event, Discriminator("type")])


Kind = Literal[
    "note", "way", "item", "tool", "done", "error", "model", "wake", "nag", "guard", "question", "end", "good"
]
StreamMode = Literal["custom", "updates", "messages"]
STREAM_MODES: tuple[StreamMode, ...] = ("custom", "updates", "messages")  # what a screen reads
ANNOUNCE_AT = 0.8  # of a budget
MAX_STREAMED = 16_384  # characters of an unfinished reply; views show only a few rows


def read_clock() -> float:
    """Return the seconds of a monotonic clock."""
    return time.monotonic()


@dataclass(frozen=True, slots=True)
class Line:
    """A line, or a few, that stay on the screen; control codes are removed.

    `parts` are for views with a layout of their own: a model's text, or a call with its time and its result.
    """

    kind: Kind
    text: str
    parts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", strip_controls(self.text))
        object.__setattr__(self, "parts", tuple(map(strip_controls, self.parts)))


@dataclass(frozen=True, slots=True)
class RunningCall:
    """A call that is running; `since` is None if it has waited for a person meanwhile."""

    text: str
    since: float | None


@dataclass
class Screen:
    """The state of the screen, and the lines that each event adds to it. Views only draw.

    `spent` counts the activation, `read` and `written` the tokens of this run alone. `todo_tools` are shown
    as the list itself and not as calls. `streamed` is the end of the unfinished reply, with control codes;
    `calling` is the name of an unfinished call in it and its length so far. `typed` returns what a person is
    typing meanwhile, `listener` is called with each event.
    """

    title: str = ""
    todo_tools: frozenset[str] = frozenset()
    todos: list[Todo] = field(default_factory=list)
    running: dict[str, RunningCall] = field(default_factory=dict)
    streamed: str = ""
    calling: tuple[str, int] = ("", 0)
    wakes: int = 0
    budget: int = 0
    spent: ActivationSpending = field(default_factory=partial(spent_in, Ledger()))
    nearest: str = ""
    context: str = ""
    announced: set[str] = field(default_factory=set)
    read: int = 0
    written: int = 0
    typed: Callable[[], str] = str
    listener: Callable[[Any], object] = bool
    clock: Callable[[], float] = read_clock
    started: float = field(default_factory=read_clock)

    def feed(self, mode: str, data: Any) -> list[Line]:
        """Read one part of the stream, and return the lines that it adds."""
        if mode == "custom":
            if not is_wakeloop_event(data):
                return []
            self.listener(data)
            return self.handle_event(data)
        if mode == "messages":
            chunk, where = data
            if where.get("langgraph_node", "call_model") == "call_model":  # not of a tool's own model
                self.handle_token(chunk)
            return []
        lines: list[Line] = []
        for node, update in data.items():
            lines += self.handle_update(node, update)
        return lines

    @property
    def summary(self) -> str:
        """What the activation has spent, and how long this run took."""
        return self._summarize(pluralize(self.wakes, "wake"))

    @property
    def progress_summary(self) -> str:
        """The summary during a run, with the budget of wakes."""
        if not self.budget:
            return self.summary
        return self._summarize(f"{self.wakes}/{pluralize(self.budget, 'wake')}")

    def _summarize(self, wakes: str) -> str:
        seconds = formatting.format_elapsed(self.clock() - self.started)
        spent = formatting.format_spent(self.spent)
        return ", ".join(filter(None, [wakes, spent, self.context, self.nearest, seconds]))

    # -- events of the graph ---------------------------------------------------------------------------

    def handle_event(self, event: Mapping[str, Any]) -> list[Line]:
        """Handle an event with the method for its type."""
        handle: Callable[[Mapping[str, Any]], list[Line]] = getattr(self, f"on_{event['type']}")
        return handle(event)

    def on_activated(self, event: Mapping[str, Any]) -> list[Line]:
        """Reset the budgets at the start of an activation."""
        self.wakes, self.budget = 0, event["budget"]
        self.spent, self.nearest, self.announced = spent_in(Ledger()), "", set()
        return []

    def on_spent(self, event: Mapping[str, Any]) -> list[Line]:
        """Note what a request cost, and announce a budget that is nearly spent, once."""
        self.spent, name, share = event["spent"], event["nearest"], event["share"]
        self.nearest, self.budget = formatting.format_budget_share(name, share), event["budget"]
        self.context = formatting.format_context(event.get("context"))
        if name is None or share < ANNOUNCE_AT or name in self.announced:
            return []
        self.announced.add(name)
        return [Line("nag", f"budget: {self.nearest} is spent")]

    def on_cleared(self, event: Mapping[str, Any]) -> list[Line]:
        """Say that old results left the requests, which nearly filled the model's window."""
        counts = f"{event['before']:,} of {event['window']:,} tokens"
        return [Line("nag", f"context: {counts}; old results were cleared, {event['after']:,} are left")]

    def on_retried(self, event: Mapping[str, Any]) -> list[Line]:
        """Say that the client sends a request again."""
        status = event["status"]
        why = "the server did not answer" if status is None else f"the server answered {status}"
        return [Line("nag", f"retry {event['retry']}: {why}, the request is sent again")]

    def on_todos(self, event: Mapping[str, Any]) -> list[Line]:
        """Show the changed items and the progress of the list."""
        self.todos = list(event["todos"])
        by_id = {todo["id"]: todo for todo in self.todos}
        lines = []
        for key in event["changed"]:
            if key in by_id:
                text = f"  {formatting.format_item(by_id[key])}"
            else:
                text = clean_line(f"[-] {key} removed")
            lines.append(Line("item", text))
        if lines:
            lines.append(Line("item", f"list: {formatting.format_progress(self.todos)}"))
        return lines

    def on_echo(self, event: Mapping[str, Any]) -> list[Line]:
        """Say that an input sent back an outdated list, which is ignored."""
        versions = f"version {event['given']}; the thread has {event['list']}"
        return [Line("note", f"the input's list is outdated and is ignored ({versions})")]

    def on_wake(self, event: Mapping[str, Any]) -> list[Line]:
        """Say that the graph wakes itself, and why."""
        self.wakes, self.budget = event["cycle"], event["budget"]
        why = []
        if "reply" in event["reasons"]:
            why.append("a reply is owed")
        if "subagent" in event["reasons"]:
            why.append("a subagent has finished")
        if "goal" in event["reasons"]:
            why.append("the goal is not met")
        if event["open"] or not why:
            remain = "remains" if event["open"] == 1 else "remain"
            why.append(f"{pluralize(event['open'], 'incomplete todo')} {remain}")
        return [Line("wake", f"Auto-continuing ({event['cycle']}/{event['budget']}): {', '.join(why)}")]

    def on_steered(self, event: Mapping[str, Any]) -> list[Line]:
        """Say why the edits that a person sent during the run were not made; words show where they came."""
        return [Line("error", clean_line(event["error"]))] if "error" in event else []

    def on_nag(self, event: Mapping[str, Any]) -> list[Line]:
        """Say that the model got a reminder."""
        rounds = pluralize(event["rounds"], "round")
        text = f"graph reminder: {rounds} without a change to the list, {event['open']} open"
        return [Line("nag", text)]

    def on_parked(self, event: Mapping[str, Any]) -> list[Line]:
        """Take over the counts of the activation, which also has what an earlier run of it did."""
        session = event["session"]
        self.spent = session.get("spent") or self.spent
        self.wakes = session.get("wakes", self.wakes)
        return []

    def on_guard(self, event: Mapping[str, Any]) -> list[Line]:
        """Say that the guard asks for a correction, an explanation, a final report, a list, or a check."""
        reason, action = clean_line(str(event["reason"])), event["action"]
        if action == "report":
            end = f"the run ends ({reason}) with {event['open']} open"
            return [Line("guard", f"final report: {end}; the model is asked what is done and what is not")]
        if action == "ask":
            return [Line("guard", "tools have run without a list; the model is asked what is left to do")]
        if action == "audit":
            why = "items were closed without work that succeeded"
            return [Line("guard", f"audit: {why}; the model is asked to check them")]
        asked = "explain in plain text what was not done"
        if action == "correct":
            asked = f"bring the list up to date ({event['retry']}/{event['retries']})"
        why = f"the run would end ({reason}) with {event['open']} open"
        return [Line("guard", f"graph correction: {why}; the model is asked to {asked}")]

    def on_verify(self, event: Mapping[str, Any]) -> list[Line]:
        """Show that the verifier refused an item; that it accepted one shows in the list."""
        if event["accepted"]:
            return []
        return [
            Line("error", clean_line(f"not accepted: {event['id']} {event['content']}: {event['reason']}"))
        ]

    def on_goal(self, event: Mapping[str, Any]) -> list[Line]:
        """Show what code says about the goal."""
        if event["verdict"] == "met":
            return [Line("note", "goal: met")]
        words = {"unmet": "not met", "impossible": "impossible", "wait": "waiting"}[event["verdict"]]
        return [Line("error", clean_line(f"goal: {words}: {event['reason']}"))]

    # -- tokens and updates ----------------------------------------------------------------------------

    def handle_token(self, chunk: Any) -> None:
        """Add a piece of the unfinished reply, of its text or of a call."""
        if not isinstance(chunk, AIMessageChunk):
            return
        self.streamed = (self.streamed + chunk.text)[-MAX_STREAMED:]
        for piece in chunk.tool_call_chunks:
            name, length = self.calling
            if piece["name"]:  # only the first piece of a call has its name
                name, length = piece["name"], 0
            self.calling = name, length + len(piece["args"] or "")

    def handle_update(self, node: str, update: Any) -> Iterable[Line]:
        """Show what a node wrote: replies, tool results, messages of the graph."""
        if node == INTERRUPT_KEY:
            # The calls wait for a person now; how long they take says nothing about the tool any more.
            self.running = {key: replace(call, since=None) for key, call in self.running.items()}
            return
        for part in update if isinstance(update, list) else [update]:
            messages = part.get("messages") if isinstance(part, Mapping) else None
            if node == "call_model":
                self.streamed, self.calling = "", ("", 0)
            for message in messages if isinstance(messages, list) else []:
                if isinstance(message, ToolMessage):
                    yield from self.handle_result(node, message)
                elif is_model_reply(message):
                    yield from self.handle_reply(message)
                elif kind_of(message) == "retry":
                    yield Line("guard", f"graph retry: {clean_line(message.text)}")

    def handle_reply(self, message: AIMessage) -> Iterable[Line]:
        """Count a reply's tokens, and show its text and its calls."""
        if usage := message.usage_metadata:
            self.read += usage["input_tokens"]
            self.written += usage["output_tokens"]
        if text := message.text.strip():
            yield Line("model", "model: " + indent_continuation(text), (text,))
        for made in message.tool_calls:
            if made["name"] not in self.todo_tools:
                text = formatting.format_call(made["name"], made["args"])
                self.running[made["id"] or ""] = RunningCall(text, self.clock())
                yield Line("tool", f"tool: {text}")

    def handle_result(self, node: str, message: ToolMessage) -> Iterable[Line]:
        """Show the first line of a tool's result; of the todo tools only refusals, of repairs nothing."""
        call, failed = self.running.pop(message.tool_call_id, None), message.status == "error"
        kind: Kind = "done"
        if failed:
            kind = "error"
            result = clean_line(redact_text(message.text.removeprefix("Error: ")))
        else:
            result = formatting.format_first_line(split_result_text(message)[0])
        if message.name in self.todo_tools:
            if failed:
                yield Line("error", f"list refused: {result}")
        elif call or node == "run_tools":
            name, took = clean_line(message.name or "a tool"), ""
            if call and call.since is not None:
                took = formatting.format_elapsed(self.clock() - call.since)
            text = f"tool {kind}: {name}"
            if result:
                text += f": {result}"
            if took:
                text += f" ({took})"
            parts = (call.text if call else name, took, result)
            yield Line(kind, text, parts)


class PlainView:
    """A view that writes and flushes each line as it comes."""

    def __init__(self, screen: Screen, out: TextIO) -> None:
        self.screen, self.out = screen, out

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def feed(self, mode: str, data: Any) -> None:
        """Show one part of the stream."""
        for line in self.screen.feed(mode, data):
            self.say(line)

    def say(self, line: Line) -> None:
        """Write a line."""
        write_text(line.text, self.out)
