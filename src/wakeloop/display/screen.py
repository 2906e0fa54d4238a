"""What is on the screen, fed by the stream of a run."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage

from wakeloop.display import words
from wakeloop.display.clean import behind, clean, one_line
from wakeloop.loop.ledger import Ledger
from wakeloop.loop.spending import told as spent_in
from wakeloop.stream import Spent
from wakeloop.text.characters import plural
from wakeloop.text.marks import kind_of
from wakeloop.todos.items import Todo

Kind = Literal["note", "item", "tool", "error", "model", "wake", "nag", "guard", "question", "end"]
STREAM: tuple[Literal["custom", "updates", "messages"], ...] = (
    "custom",
    "updates",
    "messages",
)  # the stream modes that a screen is fed with


NEAR = 0.8  # of a budget, from which on its end is announced
SHOWN = 16_384  # characters of a reply on its way: a view shows a few rows of them


@dataclass(frozen=True, slots=True)
class Line:
    """One line, or a few, that stay on the screen; without control codes, whatever it is made of."""

    kind: Kind
    text: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", clean(self.text))


@dataclass
class Screen:
    """The state of the screen, and the lines that each event adds to it; the views only draw.

    `spent` is the activation's, `read` and `written` are the tokens of this run alone. `todo_tools` names the
    tools of the list, which show as the list itself and not as calls; `streamed` is the end of the reply on
    its way, as it came: whoever draws it cleans it.
    """

    title: str = ""
    todo_tools: frozenset[str] = frozenset()
    todos: list[Todo] = field(default_factory=list)
    running: dict[str, str] = field(default_factory=dict)
    streamed: str = ""
    wakes: int = 0
    budget: int = 0
    spent: Spent = field(default_factory=partial(spent_in, Ledger()))
    nearest: str = ""
    announced: set[str] = field(default_factory=set)
    read: int = 0
    written: int = 0
    started: float = field(default_factory=time.monotonic)

    def feed(self, mode: str, data: Any) -> list[Line]:
        """Take one part of the stream, and return what it adds to the screen."""
        if mode == "custom":
            return self.event(data) if isinstance(data, Mapping) else []
        if mode == "messages":
            self.token(data[0])
            return []
        return [line for node, update in data.items() for line in self.updated(node, update)]

    @property
    def summary(self) -> str:
        """What the activation has taken until now, and how long this run."""
        seconds = words.elapsed(time.monotonic() - self.started)
        told = [plural(self.wakes, "wake"), words.spending(self.spent), self.nearest, seconds]
        return ", ".join(part for part in told if part)

    # -- events of the graph ---------------------------------------------------------------------------

    def event(self, event: Mapping[str, Any]) -> list[Line]:
        """Take an event of the graph; one of another kind, from a tool, adds nothing."""
        take = getattr(self, f"on_{event.get('type')}", None)
        return take(event) if take is not None else []

    def on_activated(self, event: Mapping[str, Any]) -> list[Line]:
        """An activation began: its budgets are whole."""
        self.wakes, self.budget = 0, event["budget"]
        self.spent, self.nearest, self.announced = spent_in(Ledger()), "", set()
        return []

    def on_spent(self, event: Mapping[str, Any]) -> list[Line]:
        """A request was paid; a budget that nears its end is announced once."""
        self.spent, name, share = event["spent"], event["nearest"], event["share"]
        self.nearest = words.nearest(name, share)
        if name is None or share < NEAR or name in self.announced:
            return []
        self.announced.add(name)
        return [Line("nag", f"budget: {self.nearest} is spent")]

    def on_todos(self, event: Mapping[str, Any]) -> list[Line]:
        """The list changed: its changed items, and how far it is."""
        self.todos = list(event["todos"])
        by_id = {todo["id"]: todo for todo in self.todos}
        lines = [
            Line("item", f"  {words.item(by_id[key])}" if key in by_id else one_line(f"[-] {key} removed"))
            for key in event["changed"]
        ]
        return [*lines, Line("item", f"list: {words.progress(self.todos)}")] if lines else []

    def on_echo(self, event: Mapping[str, Any]) -> list[Line]:
        """An input sent back an older list, which changes nothing."""
        told = f"the input's list (number {event['given']}) is older than the thread's ({event['list']})"
        return [Line("note", f"{told} and changes nothing")]

    def on_wake(self, event: Mapping[str, Any]) -> list[Line]:
        """The graph wakes itself."""
        self.wakes, self.budget = event["cycle"], event["budget"]
        why = []
        if "reply" in event["reasons"]:
            why.append("a reply is owed")
        if "subagent" in event["reasons"]:
            why.append("a subagent has finished")
        if event["open"] or not why:
            why.append(f"{event['open']} incomplete todo(s) remain")
        return [Line("wake", f"Auto-continuing ({event['cycle']}/{event['budget']}): {', '.join(why)}")]

    def on_nag(self, event: Mapping[str, Any]) -> list[Line]:
        """A reminder went to the model."""
        told = f"{plural(event['rounds'], 'round')} without a change to the list, {event['open']} open"
        return [Line("nag", f"graph reminder: {told}")]

    def on_parked(self, event: Mapping[str, Any]) -> list[Line]:
        """The run has ended; its session tells also what no event of this run did."""
        self.spent = event["session"].get("spent") or self.spent
        return []

    def on_guard(self, event: Mapping[str, Any]) -> list[Line]:
        """The guard asks for a correction, an explanation, the last word, or a list."""
        reason, action = one_line(str(event["reason"])), event["action"]
        if action == "report":
            told = f"the run ends ({reason}) with {event['open']} open"
            return [Line("guard", f"last word: {told}; the model is asked what is done and what is not")]
        if action == "ask":
            return [Line("guard", "tools have run and there is no list; the model is asked what is left")]
        asked = (
            f"bring the list up to date ({event['retry']}/{event['retries']})"
            if action == "correct"
            else "explain in plain text what was not done"
        )
        why = f"the run would end ({reason}) with {event['open']} open"
        return [Line("guard", f"graph correction: {why}; the model is asked to {asked}")]

    def on_verify(self, event: Mapping[str, Any]) -> list[Line]:
        """The verifier ruled; only a refusal is news."""
        if event["accepted"]:
            return []
        return [Line("error", one_line(f"not accepted: {event['id']} {event['content']}: {event['reason']}"))]

    # -- tokens and updates ----------------------------------------------------------------------------

    def token(self, chunk: Any) -> None:
        """Take a piece of the reply that is being written."""
        if isinstance(chunk, AIMessageChunk):
            self.streamed = (self.streamed + chunk.text)[-SHOWN:]

    def updated(self, node: str, update: Any) -> Iterable[Line]:
        """Take what a node wrote: a reply, results of tools, a message of the graph's own."""
        for part in update if isinstance(update, list) else [update]:
            messages = part.get("messages") if isinstance(part, Mapping) else None
            if node == "call_model":
                self.streamed = ""
            for message in messages if isinstance(messages, list) else []:
                if isinstance(message, ToolMessage):
                    yield from self.answered(message)
                elif isinstance(message, AIMessage) and kind_of(message) is None:
                    yield from self.replied(message)
                elif kind_of(message) == "retry":
                    yield Line("guard", f"graph retry: {one_line(message.text)}")

    def replied(self, message: AIMessage) -> Iterable[Line]:
        """A reply: its tokens, its text, the calls that it makes."""
        if usage := message.usage_metadata:
            self.read += usage["input_tokens"]
            self.written += usage["output_tokens"]
        if text := message.text.strip():
            yield Line("model", "model: " + behind(text))
        for made in message.tool_calls:
            if made["name"] not in self.todo_tools:
                told = self.running[made["id"] or ""] = words.call(made["name"], made["args"])
                yield Line("tool", f"tool: {told}")

    def answered(self, message: ToolMessage) -> Iterable[Line]:
        """A tool's result: only a failure is worth a line of its own; one that was shown already is not."""
        known = self.running.pop(message.tool_call_id, None) is not None
        refused = message.name in self.todo_tools
        if message.status == "error" and (known or refused):
            text = one_line(message.text.removeprefix("Error: "))
            yield Line("error", f"list refused: {text}" if refused else f"tool error: {message.name}: {text}")
