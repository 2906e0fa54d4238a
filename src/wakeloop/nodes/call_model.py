"""One request to the model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.runtime import get_runtime

from wakeloop.channels.conversation import Messages
from wakeloop.dialects.base import Dialect
from wakeloop.errors import InputError
from wakeloop.loop.ledger import ROUND, without
from wakeloop.loop.progress import note_progress
from wakeloop.loop.replies import answered, asked_again, noted
from wakeloop.model.broken_stream import Hearing, unreadable
from wakeloop.model.named import as_prompt
from wakeloop.model.redaction import Discreet
from wakeloop.model.reply import Reply, read_reply, without_calls
from wakeloop.model.request import Request, Systems
from wakeloop.model.structured import formatted
from wakeloop.model.voices import Voices
from wakeloop.platform.computed_once import computed_once
from wakeloop.platform.runnables import Node
from wakeloop.settings import LoopSettings, effective
from wakeloop.state import before_of, ledger_of, taken_in
from wakeloop.stream import Ending, todos_changed
from wakeloop.thread.other_runs import standing
from wakeloop.todos.items import count_open


@dataclass(frozen=True, eq=False)
class CallModel(Node):
    """Ask the model once, store its reply, and decide what the forks behind it will read."""

    dialect: Dialect
    settings: LoopSettings
    voices: Voices
    tools: frozenset[str]
    prompt: SystemMessage | None = None
    hook: Runnable[Any, Any] | None = None
    channels: frozenset[str] = frozenset()  # what a hook may write
    systems: Systems = field(default_factory=dict)

    def __call__(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        """Return the reply as an update; what the model raises reaches the caller."""
        exchange = Exchange(state, self)
        if state.get("todo_handoff"):
            return exchange.handed_over()
        if self.hook is not None:
            exchange.request.hooked(self.hook.invoke(exchange.request.seen_by_hook(), config), self.channels)
        sent = as_prompt(exchange.voice, exchange.sent())
        with Hearing(config, streaming=self.streaming) as heard:
            raw = exchange.voice.invoke(sent, heard.config)
        return exchange.stored(raw, heard, config)

    async def acall(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        """Return the same; the model and the hook are awaited."""
        exchange = Exchange(state, self)
        if state.get("todo_handoff"):
            return exchange.handed_over()
        if self.hook is not None:
            given = await self.hook.ainvoke(exchange.request.seen_by_hook(), config)
            exchange.request.hooked(given, self.channels)
        sent = as_prompt(exchange.voice, exchange.sent())
        with Hearing(config, streaming=self.streaming) as heard:
            raw = await exchange.voice.ainvoke(sent, heard.config)
        return exchange.stored(raw, heard, config)

    @computed_once
    def may_stream(self) -> bool:
        """Whether the model has a say in it; a pydantic model takes 8 µs to say that it has none."""
        return hasattr(self.voices.bare, "streaming")

    @property
    def streaming(self) -> bool:
        """Whether the model streams of its own accord."""
        return self.may_stream and bool(self.voices.bare.streaming)  # type: ignore[attr-defined]

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - LangChain's own word
        """Run in a synchronous graph; what is raised is stored with the thread, so it tells no keys."""
        with Discreet(self.voices.bare, self.voices.without_todos, self.voices.full):
            return super().invoke(input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        """Run in an asynchronous graph, as discreetly."""
        with Discreet(self.voices.bare, self.voices.without_todos, self.voices.full):
            return await super().ainvoke(input, config, **kwargs)


class Exchange:
    """One request and its reply, from the state to the update. Raises `InputError` for a refused input."""

    def __init__(self, state: Any, node: CallModel) -> None:
        self.node, self.state = node, state
        self.ledger = ledger_of(state)
        if sentence := self.ledger.get("refused"):
            raise InputError(sentence)
        self.settings = effective(node.settings, self.ledger.get("settings"))
        self.messages: list[AnyMessage] = state["messages"]
        self.todos = state["todos"]
        self.update: dict[str, Any] = {}
        self.asking = self.ledger.get("asking")
        self.active = node.dialect.active(self.settings)
        self.voice = node.voices.voice(self.asking, todo_tools=self.active)

    def handed_over(self) -> dict[str, Any]:
        """Ask nothing: a tool of the last round leads to the parent, and the guard sends it there."""
        return {"todo_ledger": {**without(self.ledger, ROUND), "end": "handed_over"}}

    @computed_once
    def request(self) -> Request:
        """What the model is asked with; what the last round has brought is taken in first."""
        if (written := taken_in(self.todos, self.ledger)) is not None:
            get_runtime().stream_writer(todos_changed(before_of(self.todos), written))
            self.todos = written
            self.update["todos"] = {"all": written}
        note_progress(self.messages, self.ledger, self.node.dialect.names)
        return Request(self.state, self.todos, self.ledger, self.settings, self.node.dialect)

    def sent(self) -> list[AnyMessage]:
        """Return the messages that go to the model."""
        return self.request.sent(self.node.prompt, self.node.systems)

    def stored(self, raw: Any, heard: Hearing, config: RunnableConfig) -> dict[str, Any]:
        """Return the update that a reply brings: the message, and what the forks read."""
        message = raw["raw"] if self.asking == "format" else raw
        if not isinstance(message, AIMessage):
            raise unreadable(f"its role is {message.type!r}, not the assistant's")
        if self.asking == "format":
            self.formatted(raw, heard)
        elif self.asking == "explain":
            self.request.writes.append(self.read(without_calls(message), heard).message)
            self.ledger = answered(self.ledger)
        else:
            self.replied(self.read(message, heard))
        if self.request.writes:
            self.update["messages"] = self.request.writes
        if "nag" not in self.ledger and (here := standing(config)):
            self.ledger["asked_at"] = list(here)
        return {**self.request.update, **self.update, "todo_ledger": self.ledger}

    def read(self, raw: AIMessage, heard: Hearing) -> Reply:
        """Find out what a reply is."""
        history = self.messages
        index = history if isinstance(history, Messages) else Messages(history)
        return read_reply(
            raw,
            self.node.dialect if self.active else None,
            self.node.tools,
            used=index.answered,
            known=lambda key: index.find(key) is not None,
            cut_call=self.request.say("cut_call"),
            halves=heard.halves,
        )

    def replied(self, reply: Reply) -> None:
        """Store an ordinary reply, unless it is empty and is asked again."""
        left = count_open(self.todos)
        self.ledger = noted(
            self.ledger, reply, self.settings, open_count=left, steps_left=self.state["remaining_steps"]
        )
        if self.ledger.get("again") != "empty":
            self.request.writes.append(reply.message)

    def formatted(self, result: Mapping[str, Any], heard: Hearing) -> None:
        """Store a structured result as plain JSON, its text in the history; ask again for an unfit one."""
        read = formatted(result, self.request.say("empty_reply"), cut=bool(heard.halves))
        self.ledger = answered(self.ledger)
        if read.problem is None:
            self.update["structured_response"] = read.value
        else:
            kind: Ending = "truncated" if read.cut else "malformed_calls"
            self.ledger = asked_again(self.ledger, f"format: {read.problem}", kind, self.settings)
        self.request.writes.append(read.message)
