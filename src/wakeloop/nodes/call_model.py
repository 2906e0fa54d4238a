"""One request to the model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.runtime import get_runtime

from wakeloop.channels.reducers import Messages
from wakeloop.dialects.base import Dialect
from wakeloop.errors import InputError
from wakeloop.loop.gates import ROUND_STEPS, count_stale, nag_due
from wakeloop.loop.progress import note_progress
from wakeloop.model.broken_stream import Halves, Hearing, unreadable
from wakeloop.model.named import as_prompt
from wakeloop.model.redaction import Discreet
from wakeloop.model.reply import Reply, as_json, is_cut, plain, problem, read_reply
from wakeloop.model.request import Request, Systems
from wakeloop.model.storable import beside
from wakeloop.model.wire_order import text_of
from wakeloop.platform.runnables import Node
from wakeloop.settings import LoopSettings, effective
from wakeloop.state import ledger_of, taken_in
from wakeloop.stream import Ending, todos_changed
from wakeloop.text.marks import mark, new_id
from wakeloop.thread.other_runs import standing
from wakeloop.todos.items import count_open

ROUND = ("todo_calls", "faults")  # what the forks behind a reply read; each is left out where empty


@dataclass(frozen=True, eq=False)
class Voices:
    """The model as it is asked: with all tools, without the todo tools, without any, in a format."""

    full: Runnable[Any, Any] | None
    without_todos: Runnable[Any, Any]
    bare: Runnable[Any, Any]
    formatted: Runnable[Any, Any] | None = None


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
        turn = Turn.of(state, self, config)
        if turn.over:
            return turn.update
        if self.hook is not None:
            turn.request.hooked(self.hook.invoke(turn.request.seen_by_hook(), config), self.channels)
        sent = as_prompt(turn.voice, turn.sent())
        with Hearing(config, streaming=self.streaming) as heard:
            raw = turn.voice.invoke(sent, heard.config)
        return turn.stored(raw, heard)

    async def acall(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        """Return the same; the model and the hook are awaited."""
        turn = Turn.of(state, self, config)
        if turn.over:
            return turn.update
        if self.hook is not None:
            given = await self.hook.ainvoke(turn.request.seen_by_hook(), config)
            turn.request.hooked(given, self.channels)
        sent = as_prompt(turn.voice, turn.sent())
        with Hearing(config, streaming=self.streaming) as heard:
            raw = await turn.voice.ainvoke(sent, heard.config)
        return turn.stored(raw, heard)

    @cached_property
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


class Turn:
    """One request and its reply, from the state to the update."""

    def __init__(self, state: Any, node: CallModel, config: RunnableConfig) -> None:
        self.node, self.state, self.config = node, state, config
        self.ledger = ledger_of(state)
        self.settings = effective(node.settings, self.ledger.get("settings"))
        self.messages: list[AnyMessage] = state["messages"]
        self.todos = state["todos"]
        self.update: dict[str, Any] = {}
        self.over = False
        self.halves: Halves = {}

    @classmethod
    def of(cls, state: Any, node: CallModel, config: RunnableConfig) -> "Turn":
        """Begin: raise for a refused input, fork away for a hand-over, take in what the round has brought."""
        turn = cls(state, node, config)
        if sentence := turn.ledger.get("refused"):
            raise InputError(sentence)
        if state.get("todo_handoff"):
            turn.over = True
            turn.update = {"todo_ledger": {**turn.ledger, "next": "finalization_guard", "end": "handed_over"}}
            return turn
        if (written := taken_in(turn.todos, turn.ledger)) is not None:
            get_runtime().stream_writer(todos_changed(turn.todos.before, written))
            turn.todos = written
            turn.update["todos"] = {"all": written}
        note_progress(turn.messages, turn.ledger, node.dialect.names)
        return turn

    @cached_property
    def request(self) -> Request:
        """What the model is asked with."""
        return Request(self.state, self.todos, self.ledger, self.settings, self.node.dialect)

    def sent(self) -> list[AnyMessage]:
        """Return the messages that go to the model."""
        return self.request.sent(self.node.prompt, self.node.systems)

    @property
    def asking(self) -> str | None:
        """What this request is for, where it is no ordinary one."""
        return self.ledger.get("asking")

    @property
    def voice(self) -> Runnable[Any, Any]:
        """The model as this request needs it."""
        voices = self.node.voices
        if self.asking == "format" and voices.formatted is not None:
            return voices.formatted
        if self.asking == "explain":
            return voices.bare
        if voices.full is not None and self.node.dialect.active(self.settings):
            return voices.full
        return voices.without_todos

    # -- the reply -----------------------------------------------------------------------------------

    def stored(self, raw: Any, heard: Hearing) -> dict[str, Any]:
        """Return the update that a reply brings: the message, and what the forks read."""
        self.halves = heard.halves
        message = raw["raw"] if self.asking == "format" else raw
        if not isinstance(message, AIMessage):
            raise unreadable(f"its role is {message.type!r}, not the assistant's")
        self.ledger.pop("again", None)
        for key in ROUND:
            self.ledger.pop(key, None)  # type: ignore[misc]
        if self.asking == "format":
            self.formatted(raw)
        elif self.asking == "explain":
            self.explained(raw)
        else:
            self.replied(raw)
        if self.request.writes:
            self.update["messages"] = self.request.writes
        if self.ledger["next"] == "finalization_guard" and (here := standing(self.config)):
            self.ledger["asked_at"] = list(here)
        return {**self.request.update, **self.update, "todo_ledger": self.ledger}

    def read(self, raw: AIMessage) -> Reply:
        """Find out what a reply is."""
        history = self.messages
        index = history if isinstance(history, Messages) else Messages(history)
        active = self.node.dialect.active(self.settings)
        return read_reply(
            raw,
            self.node.dialect if active else None,
            self.node.tools,
            used=index.answered,
            known=lambda key: index.find(key) is not None,
            cut_call=self.request.say("cut_call"),
            halves=self.halves,
        )

    def replied(self, raw: AIMessage) -> None:
        """Store an ordinary reply: the end of a turn, a round, or one that is asked again."""
        reply, ledger, settings = self.read(raw), self.ledger, self.settings
        bad = ledger.get("bad_replies", 0) + 1
        empty = not reply.text and not reply.message.tool_calls and not reply.cut
        if reply.text or reply.wrote:
            ledger["spoke"] = True
        if empty and not count_open(self.todos) and not ledger.get("spoke"):
            ledger |= {"next": "finalization_guard", "bad_replies": bad, "again": "empty"}
            if bad > settings.reply_retries:
                ledger["end"] = "empty_reply"
            return
        self.request.writes.append(reply.message)
        if reply.cut or reply.malformed:
            ledger["bad_replies"] = bad
        else:
            ledger.pop("bad_replies", None)
        kind: Ending = "truncated" if reply.cut else "malformed_calls"
        if reply.message.tool_calls:
            self.begin_round(reply, kind)
            return
        ledger["next"] = "finalization_guard"
        if reply.cut:
            ledger["again"] = "cut"
            if bad > settings.reply_retries:
                ledger["end"] = kind

    def begin_round(self, reply: Reply, kind: Ending) -> None:
        """Note what the round's forks need: its todo calls, its faults, and where it goes afterwards."""
        ledger, settings = self.ledger, self.settings
        if reply.todo_calls:
            ledger["todo_calls"] = list(reply.todo_calls)
        if reply.faults:
            ledger["faults"] = reply.faults
        stale = count_stale(
            ledger.get("todo_stale_iterations", 0),
            wrote=reply.wrote,
            open_count=count_open(self.todos),
            settings=settings,
        )
        due = stale != ledger.get("todo_stale_iterations", 0) and nag_due(stale, settings)
        ledger["todo_stale_iterations"] = stale
        ledger["next"] = "round"
        if ledger.get("bad_replies", 0) > settings.reply_retries:
            ledger |= {"after": "finalization_guard", "end": kind}
        elif self.state["remaining_steps"] < ROUND_STEPS:
            ledger |= {"after": "finalization_guard", "end": "step_limit"}
        else:
            suppressed = ledger.get("todo_guard_suppressed", False)
            ledger["after"] = "nag" if due and not suppressed else "call_model"

    def explained(self, raw: AIMessage) -> None:
        """Store the explanation that the guard demanded, without any calls."""
        kept = {key: value for key, value in raw.additional_kwargs.items() if key != "tool_calls"}
        bare = raw.model_copy(update={"tool_calls": [], "invalid_tool_calls": [], "additional_kwargs": kept})
        self.request.writes.append(self.read(bare).message)
        self.ledger["next"] = "finalization_guard"

    def formatted(self, result: Mapping[str, Any]) -> None:
        """Store a structured result as plain JSON, its text in the history; ask again for an unfit one."""
        ledger, raw = self.ledger, result["raw"]
        ledger["next"] = "finalization_guard"
        cut = is_cut(raw) or bool(self.halves)
        if result["parsing_error"] is None and result["parsed"] is not None and not cut:
            value = plain(result["parsed"])
            self.update["structured_response"] = value
            told = {"response_metadata": raw.response_metadata, "usage_metadata": raw.usage_metadata}
            told |= {name: kept for name, kept in beside(raw).items() if name in told}
            self.write_formatted(raw, as_json(value), **told)
            return
        bad = ledger.get("bad_replies", 0) + 1
        ledger |= {"bad_replies": bad, "again": f"format: {problem(result['parsing_error'], cut=cut)}"}
        if bad > self.settings.reply_retries:
            ledger["end"] = "truncated" if cut else "malformed_calls"
        self.write_formatted(raw, text_of(raw) or self.request.say("empty_reply"))

    def write_formatted(self, raw: AIMessage, text: str, **told: Any) -> None:
        """Store the text of a structured reply under the reply's own id."""
        message = AIMessage(text, id=raw.id or new_id(), additional_kwargs=mark("format"), **told)
        self.request.writes.append(message)
