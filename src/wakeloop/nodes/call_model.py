"""One request to the model."""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig

from wakeloop.channels.conversation import Messages
from wakeloop.dialects.base import Dialect
from wakeloop.errors import InputError
from wakeloop.loop.earned import note_list
from wakeloop.loop.idle_rounds import count_round, looping
from wakeloop.loop.ledger import ROUND, without
from wakeloop.loop.overrides import in_force
from wakeloop.loop.progress import note_progress
from wakeloop.loop.replies import answered, noted, noted_format, refused, unread
from wakeloop.loop.spending import event, note_round, over, spend
from wakeloop.model.asking import aask, ask
from wakeloop.model.broken_stream import Hearing, an_assistants
from wakeloop.model.redaction import DiscreetNode
from wakeloop.model.reply import Reply, read_reply, without_calls
from wakeloop.model.request import Request, Systems
from wakeloop.model.structured import formatted
from wakeloop.model.usage import Overheard, usage_of
from wakeloop.model.voices import Voice, Voices
from wakeloop.platform.computed_once import computed_once
from wakeloop.platform.traces import tell
from wakeloop.settings import LoopSettings
from wakeloop.state import before_of, ledger_of, taken_in
from wakeloop.stream import Ending, todos_changed
from wakeloop.thread.other_runs import standing
from wakeloop.todos.items import count_open


@dataclass(frozen=True, eq=False)
class CallModel(DiscreetNode):
    """Ask the model once, store its reply, and decide what the forks behind it will read."""

    dialect: Dialect
    settings: LoopSettings
    voices: Voices
    tools: frozenset[str]
    prompt: SystemMessage | None = None
    hook: Runnable[Any, Any] | None = None
    channels: frozenset[str] = frozenset()  # what a hook may write
    systems: Systems = field(default_factory=dict)
    clock: Callable[[], float] = monotonic

    @property
    def models(self) -> tuple[object, ...]:
        """All the ways in which it asks."""
        return self.voices.bare, self.voices.without_todos, self.voices.full

    def __call__(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        """Return the reply as an update; what the model raises reaches the caller."""
        exchange = Exchange(state, self)
        if (update := exchange.not_asked()) is not None:
            return update
        if self.hook is not None:
            given = self.hook.invoke(exchange.request.seen_by_hook(), exchange.overheard.within(config))
            exchange.request.hooked(given, self.channels)
        wire, heard = exchange.wire, self.voices.hearing(config, exchange.asking, exchange.settings)
        return exchange.stored(ask(exchange.way.model, wire, heard), heard, config)

    async def acall(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        """Return the same; the model and the hook are awaited."""
        exchange = Exchange(state, self)
        if (update := exchange.not_asked()) is not None:
            return update
        if self.hook is not None:
            given = await self.hook.ainvoke(
                exchange.request.seen_by_hook(), exchange.overheard.within(config)
            )
            exchange.request.hooked(given, self.channels)
        wire, heard = exchange.wire, self.voices.hearing(config, exchange.asking, exchange.settings)
        return exchange.stored(await aask(exchange.way.model, wire, heard), heard, config)


class Exchange:
    """One request and its reply, from the state to the update. Raises `InputError` for a refused input."""

    def __init__(self, state: Any, node: CallModel) -> None:
        self.node, self.state, self.began = node, state, node.clock()
        self.ledger = ledger_of(state)
        if sentence := self.ledger.get("refused"):
            raise InputError(sentence)
        self.settings = in_force(node.settings, self.ledger)
        self.messages: list[AnyMessage] = state["messages"]
        self.todos = state["todos"]
        self.update: dict[str, Any] = {}
        self.overheard = Overheard()
        self.asking = self.ledger.get("asking")
        self.active = node.dialect.active(self.settings)

    def not_asked(self) -> dict[str, Any] | None:
        """Return the update of a step that asks nothing: the guard ends the run, or hands it over."""
        names = self.node.dialect.names
        self.idle = count_round(self.messages, self.todos, self.ledger, self.settings, names)
        note_round(self.ledger, self.messages)
        end: Ending | None = None if self.asking == "report" else over(self.ledger, self.settings)
        end = "handed_over" if self.state.get("todo_handoff") else end or looping(self.idle, self.settings)
        return None if end is None else {"todo_ledger": {**without(self.ledger, ROUND), "end": end}}

    @computed_once
    def request(self) -> Request:
        """What the model is asked with; what the last round has brought is taken in first."""
        if (written := taken_in(self.todos, self.ledger)) is not None:
            tell(todos_changed(before_of(self.todos), written), self.ledger)
            self.todos = written
            self.update["todos"] = {"all": written}
        note_list(self.ledger, self.todos, self.settings)
        note_progress(self.messages, self.ledger, self.node.dialect.names)
        request = Request(self.state, self.todos, self.ledger, self.settings, self.node.dialect)
        request.remind(self.idle)
        return request

    @computed_once
    def wire(self) -> list[AnyMessage]:
        """The messages that go to the model."""
        return self.request.sent(self.node.prompt, self.node.systems)

    @computed_once
    def way(self) -> Voice:
        """How the model is asked: with which tools, and whether it may call them."""
        return self.node.voices.voice(self.asking, self.wire, todo_tools=self.active)

    def stored(self, raw: Any, heard: Hearing, config: RunnableConfig) -> dict[str, Any]:
        """Return the update that a reply brings: the message, and what the forks read."""
        lost = heard.unread
        if self.asking == "format":
            self.formatted(lost or raw, heard)
        elif lost is not None and self.asking != "report":
            self.ledger = unread(answered(self.ledger), self.settings)
        else:
            self.replied(raw if lost is None else AIMessage(""), heard)
        used = usage_of(raw if lost is None else lost.message, self.request.characters)
        seconds = self.node.clock() - self.began
        paid = spend(self.ledger, [used, *self.overheard.used], seconds, self.settings, self.node.voices.name)
        tell(event(self.ledger, self.settings, paid), self.ledger)
        if self.request.writes:
            self.update["messages"] = self.request.writes
        if "nag" not in self.ledger and (here := standing(config)):
            self.ledger["asked_at"] = list(here)
        return {**self.request.update, **self.update, "todo_ledger": self.ledger}

    @computed_once
    def index(self) -> Messages:
        """The history, by the ids in it."""
        return self.messages if isinstance(self.messages, Messages) else Messages(self.messages)

    def known(self, key: str) -> bool:
        """Tell whether a message of this id is there."""
        return self.index.find(key) is not None

    def read(self, raw: AIMessage, heard: Hearing) -> Reply:
        """Find out what a reply is."""
        return read_reply(
            raw,
            self.node.dialect if self.active else None,
            self.node.tools,
            used=self.index.answered,
            known=self.known,
            cut_call=self.request.say("cut_call"),
            no_text=self.request.say("empty_reply"),
            halves=heard.halves,
            must_finish=heard.must_finish,
        )

    def replied(self, raw: Any, heard: Hearing) -> None:
        """Store an ordinary reply, unless it is asked again, or an explanation."""
        message = an_assistants(raw)
        placeholder = self.request.say("empty_reply") if self.asking == "report" else ""
        reply = self.read(message if self.way.may_call else without_calls(message, placeholder), heard)
        if self.asking in ("explain", "report"):
            self.ledger = refused(answered(self.ledger)) if reply.refused else answered(self.ledger)
        else:
            self.ledger = noted(
                self.ledger,
                reply,
                self.settings,
                open_count=count_open(self.todos),
                steps_left=self.state["remaining_steps"],
            )
        if self.ledger.get("again") not in ("empty", "unread"):
            self.request.writes.append(reply.message)

    def formatted(self, result: Any, heard: Hearing) -> None:
        """Store a structured result as plain JSON, its text in the history; ask again for an unfit one."""
        no_text = self.request.say("empty_reply")
        cut, must_finish = bool(heard.halves), heard.must_finish
        read = formatted(result, no_text, known=self.known, cut=cut, must_finish=must_finish)
        self.ledger = noted_format(
            self.ledger, read.problem, self.settings, cut=read.cut, refused=read.refused
        )
        if read.problem is None and not read.refused:
            self.update["structured_response"] = read.value
        self.request.writes.append(read.message)
