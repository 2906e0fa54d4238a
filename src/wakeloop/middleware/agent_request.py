"""One request of an agent's model, by the graph's rules."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Literal

from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest, ModelResponse
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.types import Command

from wakeloop.channels.conversation import Messages, merge_messages
from wakeloop.checks.tools import get_tool_name
from wakeloop.dialects.base import Dialect
from wakeloop.errors import SettingsError
from wakeloop.loop.nudge import close_round
from wakeloop.loop.prices import check_price
from wakeloop.loop.progress import find_last_round
from wakeloop.loop.ruling import rule
from wakeloop.middleware.agent_exchange import AgentExchange, AgentRequestContext
from wakeloop.middleware.agent_tools import MUST_BE_FIRST, check_tools, is_result, order_results
from wakeloop.middleware.draft import Draft, assign_ids, replace_history
from wakeloop.middleware.turns import Turns, read_step
from wakeloop.middleware.watched_request import SentMessages
from wakeloop.model.bindings import ToolSelection, has_calls, select_tools
from wakeloop.model.reply_watcher import ReplyWatcher
from wakeloop.model.request import Systems
from wakeloop.model.tool_choice import is_openai, loses_plain_bodies, no_call_choice
from wakeloop.model.usage import model_name_of
from wakeloop.nodes.nag import Nag
from wakeloop.routes import after_round
from wakeloop.text.marks import append_to_result, make_assistant_message, new_id, split_result_text
from wakeloop.todos.items import count_open


@dataclass
class AgentRequest:
    """A request on its way: what is asked, what comes back, and what of it is stored."""

    turns: Turns
    nag: Nag
    request: ModelRequest[Any]
    config: RunnableConfig
    systems: Systems
    draft: Draft = field(init=False)
    exchange: AgentExchange = field(init=False)
    tools: ToolSelection = field(init=False)
    response: ModelResponse[Any] = field(default_factory=lambda: ModelResponse([]))
    reply: AIMessage | None = None
    given: frozenset[str | None] = frozenset()
    sent: SentMessages | None = None

    def __post_init__(self) -> None:
        check_tools(self.request.tools, self.dialect)
        state: Any = {**self.request.state}
        ordered = order_results(state["messages"], self.dialect)
        state["messages"] = ordered if isinstance(ordered, Messages) else Messages(ordered)
        self.draft = Draft(state)
        self.draft.before = self.request.state["messages"]

    @property
    def dialect(self) -> Dialect:
        """The vocabulary of the todo tools."""
        return self.nag.dialect

    def prepare(self) -> ModelRequest[Any] | None:
        """Return what the model is asked, or None where the guard is to rule first."""
        draft = self.draft
        if draft.ledger.get("plan") == "judged":
            before, _, between = draft.ledger["hooks"]
            draft.apply({"todo_ledger": {**draft.ledger, "hooks": [before, read_step(self.config), between]}})
            return None
        if "nag" in draft.ledger:
            word = after_round({"todo_ledger": draft.ledger})
            if word == "run ends":
                return None
            if word == "reminder due":
                draft.apply(self.nag(draft.state, self.config))
        tools = {get_tool_name(tool): tool for tool in self.request.tools}
        desk = AgentRequestContext(
            self.dialect,
            self.turns.settings,
            tools,
            self.request.system_message,
            self.systems,
            model_name_of(self.request.model),
        )
        self.exchange = AgentExchange(draft.state, desk)
        check_price(self.exchange.settings, desk.model_name)
        self.note_position(self.exchange.ledger)
        if (update := self.exchange.end_without_request()) is not None:
            draft.apply(update)
            return None
        self.adopt_history()
        return self.build_model_request()

    def note_position(self, ledger: Any) -> None:
        """Note where the request is, and the supersteps of others before it, as the first of a run shows."""
        before, last, between = ledger.get("hooks", (0, 0, 0))
        here = read_step(self.config)
        went = here - last
        if before < 0:
            before = went - 1
        elif (way := self.find_way_here(ledger)) == "tools" and between and went > between + 1:
            raise SettingsError(MUST_BE_FIRST)
        elif way == "hook" and went:
            between = min(between or went, went)
        ledger["hooks"] = [before, here, between]
        if (given := self.request.response_format) is not None:
            ledger["formats"] = "provider" if isinstance(given, ProviderStrategy) else True

    def find_way_here(self, ledger: Any) -> Literal["tools", "hook"] | None:
        """Tell what led from the last request to this one: tools, the own hook, or neither of them.

        A todo call that was answered twice is refused.
        """
        if "nag" not in ledger:
            return "hook" if "ruling" in ledger else None
        made = find_last_round(reversed(self.draft.state["messages"]))
        todo, faults = ledger.get("todo_calls", ()), ledger.get("faults", ())
        answered = [m.tool_call_id for m in takewhile(is_result, reversed(self.draft.state["messages"]))]
        if any(answered.count(key) > 1 for key in todo):
            raise SettingsError(MUST_BE_FIRST)
        if any(call["id"] not in todo and call["id"] not in faults for call, _ in made):
            return "tools"
        return "hook" if made else None

    def adopt_history(self) -> None:
        """Take over what wrappers around this one, or a summary in the thread, have made of the history."""
        stored, given = self.request.state["messages"], self.request.messages
        request = self.exchange.request
        before, now = {m.id: m for m in stored}, {m.id: m for m in request.messages}
        shown, ledger = self.exchange.ledger.get("shown"), self.exchange.ledger
        changed = [m for m in given if m is not (old := before.get(m.id)) and m != old]
        if changed or len(stored) != len(given):
            own = {id(m) for m in changed}
            request.seen = Messages(
                merge_rewording(m, before.get(m.id), now.get(m.id)) if id(m) in own else now.get(m.id, m)
                for m in assign_ids(given)
            )
            if shown in {m.id for m in changed}:
                ledger["shown"] = "-"  # it is there without its words
        elif shown and shown not in now:
            request.seen = request.messages

    def build_model_request(self) -> ModelRequest[Any]:
        """Put the agent's request together."""
        exchange, request = self.exchange, self.request
        wire = exchange.wire
        self.given = frozenset(message.id for message in wire)
        system = wire[0] if wire and isinstance(wire[0], SystemMessage) else None
        formats = exchange.asking == "format"
        called = has_calls(wire)
        self.tools = select_tools(
            exchange.asking, called=called, todo_tools=exchange.active, own=bool(request.tools)
        )
        if formats:
            self.tools = ToolSelection(todos=called, own=called)
            if isinstance(request.response_format, ToolStrategy):
                self.tools = ToolSelection(todos=False, own=False)
        bound: list[Any] = [*request.tools] if self.tools.own else []
        if self.tools.todos and formats and is_openai(request.model):  # strict there: without the wrapper
            bound += [schema["function"] for schema in deepcopy(self.turns.schemas)]
        elif self.tools.todos:
            bound += self.turns.schemas
        choice = (
            request.tool_choice if self.tools.may_call else no_call_choice(request.model) if bound else None
        )
        return request.override(
            messages=wire[1:] if system else wire,
            system_message=system,
            tools=bound,
            tool_choice=choice,
            response_format=request.response_format if formats else None,
        )

    def watch_reply(self) -> ReplyWatcher:
        """Return the ear for the request; where it shows the list, another hears whether that gets there."""
        model: BaseChatModel = self.request.model
        shows = self.exchange.ledger.get("shown") in self.given and count_open(self.exchange.todos)
        self.sent = SentMessages() if shows else None
        return ReplyWatcher(
            merge_configs(self.config, {"callbacks": [self.sent]}) if self.sent else self.config,
            streaming=bool(getattr(model, "streaming", False)),
            retries_unstreamed=self.exchange.asking != "format" and loses_plain_bodies(model),
            finishes=self.exchange.settings.finish_reason == "required",
        )

    def take_reply(self, response: ModelResponse[Any] | None, heard: ReplyWatcher) -> bool:
        """Take in a reply; tell whether the same request is made again, since nothing of it is stored."""
        self.response = response or ModelResponse([])
        lost = self.given - self.sent.ids if self.sent and self.given & self.sent.ids - {None} else ()
        if self.exchange.ledger.get("shown") in lost:
            self.exchange.ledger["shown"] = "-"  # a wrapper behind this one has cut it off
        raw: Any = next((m for m in self.response.result if isinstance(m, AIMessage)), None)
        said: Any = raw if raw is not None else next(iter(self.response.result), None)
        if self.exchange.asking == "format" and heard.unreadable is None:
            said = {"raw": said, "response": self.response}
        update = self.exchange.build_update(said, heard, may_call=self.tools.may_call)
        self.reply = None
        if self.exchange.ledger.get("again") not in ("empty", "unread"):
            self.reply = update["messages"][-1]
            update["messages"] = update["messages"][:-1]
            self.draft.apply(update)
            return False
        self.draft.apply(update)
        ledger: Any = {**self.draft.ledger}
        if rule(self.turns.build_case(self.draft.state, ledger, self.config)) != "retry":
            return False
        self.draft.apply(self.turns.build_guard(ledger, self.config).rule_turn(self.draft.state))
        return True

    def build_response(self) -> ExtendedModelResponse[Any]:
        """Return the reply as the agent stores it, with all else that is written beside it.

        Where nothing was asked, a line closes the round: another hook takes the last reply for a new one.
        While a plan is to be put, an empty one stands there.
        """
        update = self.draft.build_update() or {}
        closing = self.choose_reply(update)
        result: list[BaseMessage] = [closing]
        if self.reply is not None:
            result += [m for m in self.response.result if not isinstance(m, AIMessage)]
        there = {m.id for m in self.draft.before}
        more = update.get("messages", [])
        if any(m.id not in there and not isinstance(m, RemoveMessage) for m in more):
            update["messages"] = replace_history(merge_messages(self.draft.before, [more, result]))
        structured = self.response.structured_response if self.reply is not None else None
        return ExtendedModelResponse(
            ModelResponse(result, structured), Command(update=update) if update else None
        )

    def choose_reply(self, update: dict[str, Any]) -> AIMessage:
        """Return the reply, or what stands in its place where there is none to store."""
        if self.reply is not None:
            return self.reply
        if self.draft.ledger.get("plan") == "judged":
            return make_assistant_message("repair", "")
        lines: Sequence[Any] = close_round(self.draft.state["messages"], self.dialect, self.turns.settings)
        if lines:
            line: AIMessage = lines[0]
            return line
        none = AIMessage("", id=new_id())
        update["messages"] = [*update.get("messages", []), RemoveMessage(none.id or "")]
        return none


def merge_rewording(given: Any, old: Any, new: Any) -> Any:
    """Return a message as a wrapper has made it, with what was put behind the stored one meanwhile."""
    if new is old or not (isinstance(given, ToolMessage) and isinstance(old, ToolMessage)):
        return given
    added = split_result_text(new)[1][len(split_result_text(old)[1]) :]
    return append_to_result(given, added.removeprefix("\n\n")) if added else given
