"""One request to the model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from langchain_core.messages import SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from wakeloop.dialects.base import Dialect
from wakeloop.errors import HookError
from wakeloop.loop.item_notes import may_check_round
from wakeloop.loop.silences import note_free_call, note_steps
from wakeloop.loop.turn import find_written_reply
from wakeloop.model.bindings import BoundModel, ModelBindings, ainvoke_model, invoke_model
from wakeloop.model.context_window import read_profile_window
from wakeloop.model.redaction import RedactingNode
from wakeloop.model.reply_watcher import ReplyWatcher, watch_request
from wakeloop.model.request import RequestContext, Systems
from wakeloop.model.usage import record_usage
from wakeloop.model.user_code import raised_as
from wakeloop.platform.checkpointers import has_checkpointer
from wakeloop.platform.computed_once import computed_once
from wakeloop.platform.runnables import read_step
from wakeloop.settings import LoopSettings
from wakeloop.thread.concurrent_runs import find_current_checkpoint
from wakeloop.thread.exchange import Exchange
from wakeloop.thread.steering import aread_store, read_store
from wakeloop.thread.tool_reviews import ToolReviews


@dataclass(frozen=True, eq=False)
class CallModel(RedactingNode):
    """Ask the model once, store its reply, and note what the routers after it will read."""

    dialect: Dialect
    settings: LoopSettings
    bindings: ModelBindings
    tools: Mapping[str, Any]
    prompt: SystemMessage | None = None
    hook: Runnable[Any, Any] | None = None
    channels: frozenset[str] = frozenset()  # what a hook may write
    speaker: str | None = None  # the name that replies carry
    systems: Systems = field(default_factory=dict)
    clock: Callable[[], float] = monotonic
    reviews: ToolReviews = field(default_factory=ToolReviews)  # the tools whose calls a person decides
    verifies: bool = False  # a verifier is given

    @computed_once
    def models(self) -> tuple[object, ...]:
        """Every model that it may ask."""
        return self.bindings.bare, self.bindings.without_todos, self.bindings.full

    @computed_once
    def context(self) -> RequestContext:
        """What every request needs."""
        return RequestContext(
            self.dialect,
            self.settings,
            self.tools,
            self.prompt,
            self.systems,
            self.bindings.name,
            read_profile_window(self.bindings.bare),
            self.speaker,
            reviews_together=self.reviews.are_together,
            clock=self.clock,
        )

    def __call__(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        """Return the reply as an update; what the model raises reaches the caller."""
        exchange, update = self.begin(state, config)
        if update is not None:
            return update
        if (read := exchange.plan_read()) is not None:
            exchange.entries = read_store(read)
        if self.hook is not None:
            if isinstance(self.hook, RunnableLambda) and not hasattr(self.hook, "func"):
                raise HookError  # it has only a coroutine
            seen, listening = exchange.request.hook_state(), record_usage(config, exchange.hook_usage)
            with raised_as(HookError, "pre_model_hook", *self.models):
                given = self.hook.invoke(seen, listening)
            exchange.request.apply_hook_result(given, self.channels)
        while True:
            way, heard = self.prepare_request(exchange, config)
            raw = invoke_model(way, exchange.wire, heard)
            if not exchange.takes_refusal(heard):
                return self.note_update(
                    exchange, exchange.build_update(raw, heard, may_call=way.may_call), config
                )

    async def acall(self, state: Any, config: RunnableConfig) -> dict[str, Any]:
        """Return the same; the model and the hook are awaited."""
        exchange, update = self.begin(state, config)
        if update is not None:
            return update
        if (read := exchange.plan_read()) is not None:
            exchange.entries = await aread_store(read)
        if self.hook is not None:
            seen, listening = exchange.request.hook_state(), record_usage(config, exchange.hook_usage)
            with raised_as(HookError, "pre_model_hook", *self.models):
                given = await self.hook.ainvoke(seen, listening)
            exchange.request.apply_hook_result(given, self.channels)
        while True:
            way, heard = self.prepare_request(exchange, config)
            raw = await ainvoke_model(way, exchange.wire, heard)
            if not exchange.takes_refusal(heard):
                return self.note_update(
                    exchange, exchange.build_update(raw, heard, may_call=way.may_call), config
                )

    def begin(self, state: Any, config: RunnableConfig) -> tuple[Exchange, dict[str, Any] | None]:
        """Begin an exchange. Return it, with its update if nothing is requested.

        That is so where the run ends, and where somebody wrote a reply in the model's place.
        """
        exchange = Exchange(state, self.context)
        update = exchange.end_without_request()
        if update is None and (
            reply := find_written_reply(exchange.ledger, exchange.messages, self.dialect.tool_names)
        ):
            nobody_heard = ReplyWatcher(config, streaming=False)
            update = self.note_update(exchange, exchange.take_written_reply(reply, nobody_heard), config)
        return exchange, update

    def prepare_request(self, exchange: Exchange, config: RunnableConfig) -> tuple[BoundModel, ReplyWatcher]:
        """Return how the model is asked, with which tools and whether it may call them, and who listens."""
        asking, force = exchange.asking, exchange.asks_for_call
        way = self.bindings.choose(asking, exchange.wire, todo_tools=exchange.active, force=force)
        watcher = watch_request(
            config,
            self.bindings.bare,
            exchange.settings,
            asking,
            formats=asking == "format",
            forced=way.unforced is not None,
            waits=exchange.may_wait and has_checkpointer(config),
        )
        return way, watcher

    def note_update(
        self, exchange: Exchange, update: dict[str, Any], config: RunnableConfig
    ) -> dict[str, Any]:
        """Return the update with what the routers read; at a turn's end, with where it was requested."""
        ledger = update["todo_ledger"]
        note_steps(ledger, read_step(config) + exchange.state["remaining_steps"])
        if "nag" in ledger:
            reply: Any = update["messages"][-1]
            if self.verifies and may_check_round(ledger, exchange.settings, exchange.todos, reply):
                ledger["check"] = True
            if self.reviews.by_tool and (found := self.reviews.find_reviews(reply.tool_calls, ledger)):
                ledger["reviews"] = found
                note_free_call(ledger)
        # No tools follow, so the guard is next. It needs this checkpoint to recognize its own run.
        elif here := find_current_checkpoint(config):
            ledger["asked_at"] = list(here)
        if exchange.state.get("todo_decided"):  # of an earlier round
            update["todo_decided"] = None
        return update
