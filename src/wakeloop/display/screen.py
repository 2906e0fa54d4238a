"""What is on the screen, fed by the stream of a run."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage

from wakeloop.display import formatting
from wakeloop.display.events import is_wakeloop_event
from wakeloop.display.terminal_text import clean_line, indent_continuation, strip_controls
from wakeloop.loop.ledger import Ledger
from wakeloop.loop.spending import report_spent as spent_in
from wakeloop.stream import ActivationSpending
from wakeloop.text.characters import pluralize
from wakeloop.text.marks import is_model_reply, kind_of, split_result_text
from wakeloop.text.secrets import redact_text
from wakeloop.thread.thread_views import INTERRUPT_KEY
from wakeloop.todos.items import Todo

Kind = Literal[
    "note", "way", "item", "tool", "done", "error", "model", "wake", "nag", "guard", "question", "end"
]
STREAM_MODES: tuple[Literal["custom", "updates", "messages"], ...] = (
    "custom",
    "updates",
    "messages",
)  # the stream modes that a screen is fed with


ANNOUNCE_AT = 0.8  # of a budget, from which on its end is announced
MAX_STREAMED = 16_384  # characters of a reply on its way: a view shows a few rows of them


def read_clock() -> float:
    """The seconds of a clock that only runs on."""
    return time.monotonic()


@dataclass(frozen=True, slots=True)
class Line:
    """One line, or a few, that stay on the screen; without control codes, whatever it is made of.

    `parts` is the same for who draws it in a way of its own: a model's text, or a call, its time, its result.
    """

    kind: Kind
    text: str
    parts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", strip_controls(self.text))
        object.__setattr__(self, "parts", tuple(map(strip_controls, self.parts)))


@dataclass(frozen=True, slots=True)
class RunningCall:
    """A call at work, as it is told, and since when; None where it waited for a person meanwhile."""

    told: str
    since: float | None


@dataclass
class Screen:
    """The state of the screen, and the lines that each event adds to it; the views only draw.

    `spent` is the activation's, `read` and `written` are the tokens of this run alone. `todo_tools` names the
    tools of the list, which show as the list itself and not as calls; `streamed` is the end of the reply on
    its way, as it came: whoever draws it cleans it; `calling` names a call in it, and counts its characters.
    `ahead` tells what a person types meanwhile, `heard` is told each event.
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
    announced: set[str] = field(default_factory=set)
    read: int = 0
    written: int = 0
    ahead: Callable[[], str] = str
    heard: Callable[[Any], object] = bool
    clock: Callable[[], float] = read_clock
    started: float = field(default_factory=read_clock)

    def feed(self, mode: str, data: Any) -> list[Line]:
        """Take one part of the stream, and return what it adds to the screen."""
        if mode == "custom":
            if not is_wakeloop_event(data):
                return []
            self.heard(data)
            return self.event(data)
        if mode == "messages":
            chunk, where = data
            if where.get("langgraph_node", "call_model") == "call_model":  # a tool may ask a model of its own
                self.token(chunk)
            return []
        return [line for node, update in data.items() for line in self.updated(node, update)]

    @property
    def summary(self) -> str:
        """What the activation has taken until now, and how long this run."""
        return self._told(pluralize(self.wakes, "wake"))

    @property
    def so_far(self) -> str:
        """The same while it runs, with the wakes that there may be."""
        return self._told(f"{self.wakes}/{pluralize(self.budget, 'wake')}") if self.budget else self.summary

    def _told(self, wakes: str) -> str:
        seconds = formatting.format_elapsed(self.clock() - self.started)
        return ", ".join(filter(None, [wakes, formatting.format_spent(self.spent), self.nearest, seconds]))

    # -- events of the graph ---------------------------------------------------------------------------

    def event(self, event: Mapping[str, Any]) -> list[Line]:
        """Take an event of the graph."""
        take: Callable[[Mapping[str, Any]], list[Line]] = getattr(self, f"on_{event['type']}")
        return take(event)

    def on_activated(self, event: Mapping[str, Any]) -> list[Line]:
        """An activation began: its budgets are whole."""
        self.wakes, self.budget = 0, event["budget"]
        self.spent, self.nearest, self.announced = spent_in(Ledger()), "", set()
        return []

    def on_spent(self, event: Mapping[str, Any]) -> list[Line]:
        """A request was paid; a budget that nears its end is announced once."""
        self.spent, name, share = event["spent"], event["nearest"], event["share"]
        self.nearest, self.budget = formatting.format_budget_share(name, share), event["budget"]
        if name is None or share < ANNOUNCE_AT or name in self.announced:
            return []
        self.announced.add(name)
        return [Line("nag", f"budget: {self.nearest} is spent")]

    def on_retried(self, event: Mapping[str, Any]) -> list[Line]:
        """The client sends a request again by itself."""
        status = event["status"]
        why = "the server did not answer" if status is None else f"the server answered {status}"
        return [Line("nag", f"retry {event['retry']}: {why}, the request is sent again")]

    def on_todos(self, event: Mapping[str, Any]) -> list[Line]:
        """The list changed: its changed items, and how far it is."""
        self.todos = list(event["todos"])
        by_id = {todo["id"]: todo for todo in self.todos}
        lines = [
            Line(
                "item",
                f"  {formatting.format_item(by_id[key])}"
                if key in by_id
                else clean_line(f"[-] {key} removed"),
            )
            for key in event["changed"]
        ]
        return [*lines, Line("item", f"list: {formatting.format_progress(self.todos)}")] if lines else []

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
            remain = "remains" if event["open"] == 1 else "remain"
            why.append(f"{pluralize(event['open'], 'incomplete todo')} {remain}")
        return [Line("wake", f"Auto-continuing ({event['cycle']}/{event['budget']}): {', '.join(why)}")]

    def on_nag(self, event: Mapping[str, Any]) -> list[Line]:
        """A reminder went to the model."""
        told = f"{pluralize(event['rounds'], 'round')} without a change to the list, {event['open']} open"
        return [Line("nag", f"graph reminder: {told}")]

    def on_parked(self, event: Mapping[str, Any]) -> list[Line]:
        """The run has ended; its session tells also what no event of this run did."""
        self.spent = event["session"].get("spent") or self.spent
        return []

    def on_guard(self, event: Mapping[str, Any]) -> list[Line]:
        """The guard asks for a correction, an explanation, the last word, or a list."""
        reason, action = clean_line(str(event["reason"])), event["action"]
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
        return [
            Line("error", clean_line(f"not accepted: {event['id']} {event['content']}: {event['reason']}"))
        ]

    # -- tokens and updates ----------------------------------------------------------------------------

    def token(self, chunk: Any) -> None:
        """Take a piece of the reply that is being written: of its text, or of a call."""
        if not isinstance(chunk, AIMessageChunk):
            return
        self.streamed = (self.streamed + chunk.text)[-MAX_STREAMED:]
        for piece in chunk.tool_call_chunks:
            name, length = (piece["name"], 0) if piece["name"] else self.calling
            self.calling = name, length + len(piece["args"] or "")

    def updated(self, node: str, update: Any) -> Iterable[Line]:
        """Take what a node wrote: a reply, results of tools, a message of the graph's own."""
        if node == INTERRUPT_KEY:
            self.running = {key: replace(call, since=None) for key, call in self.running.items()}
            return
        for part in update if isinstance(update, list) else [update]:
            messages = part.get("messages") if isinstance(part, Mapping) else None
            if node == "call_model":
                self.streamed, self.calling = "", ("", 0)
            for message in messages if isinstance(messages, list) else []:
                if isinstance(message, ToolMessage):
                    yield from self.answered(node, message)
                elif is_model_reply(message):
                    yield from self.replied(message)
                elif kind_of(message) == "retry":
                    yield Line("guard", f"graph retry: {clean_line(message.text)}")

    def replied(self, message: AIMessage) -> Iterable[Line]:
        """A reply: its tokens, its text, the calls that it makes."""
        if usage := message.usage_metadata:
            self.read += usage["input_tokens"]
            self.written += usage["output_tokens"]
        if text := message.text.strip():
            yield Line("model", "model: " + indent_continuation(text), (text,))
        for made in message.tool_calls:
            if made["name"] not in self.todo_tools:
                told = formatting.format_call(made["name"], made["args"])
                self.running[made["id"] or ""] = RunningCall(told, self.clock())
                yield Line("tool", f"tool: {told}")

    def answered(self, node: str, message: ToolMessage) -> Iterable[Line]:
        """A tool's result, its first line; of the list's tools a refusal alone, of a repair nothing."""
        call, failed = self.running.pop(message.tool_call_id, None), message.status == "error"
        text = message.text.removeprefix("Error: ") if failed else split_result_text(message)[0]
        told = clean_line(redact_text(text)) if failed else formatting.format_first_line(text)
        if message.name in self.todo_tools:
            if failed:
                yield Line("error", f"list refused: {told}")
        elif call or node == "run_tools":
            name = clean_line(message.name or "a tool")
            took = (
                formatting.format_elapsed(self.clock() - call.since)
                if call and call.since is not None
                else ""
            )
            head = f"tool {'error' if failed else 'done'}: {name}" + (f": {told}" if told else "")
            parts = (call.told if call else name, took, told)
            yield Line("error" if failed else "done", head + (f" ({took})" if took else ""), parts)
