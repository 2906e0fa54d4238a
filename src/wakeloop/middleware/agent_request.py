"""One request of an agent's model, by the graph's rules."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from time import monotonic
from typing import Any

from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest, ModelResponse
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.types import Command

from wakeloop.channels.conversation import Messages, merge_messages
from wakeloop.dialects.base import Dialect
from wakeloop.errors import SettingsError, ToolError, ToolNameError
from wakeloop.loop.gates import Costs
from wakeloop.loop.nudge import closing_line
from wakeloop.loop.prices import check_priced
from wakeloop.loop.progress import last_round
from wakeloop.loop.replies import noted_format
from wakeloop.loop.ruling import rule
from wakeloop.middleware.draft import Draft, named_all, whole
from wakeloop.middleware.turns import Turns, step_of
from wakeloop.model.broken_stream import Hearing
from wakeloop.model.no_call import no_call
from wakeloop.model.reply import without_calls
from wakeloop.model.request import Systems
from wakeloop.model.signs import sign_of
from wakeloop.model.usage import name_of
from wakeloop.model.voices import Tools, has_calls, tools_for
from wakeloop.nodes.nag import Nag
from wakeloop.routes import after_round
from wakeloop.settings import LoopSettings
from wakeloop.text.characters import shorten
from wakeloop.text.marks import mark, new_id
from wakeloop.thread.exchange import Exchange

NOT_FIRST = (
    "WakeLoopMiddleware has to stand first in the list of middleware: a hook of another runs behind it after "
    "the model, and a wake passes it by, so that it counts too few calls or answers a todo call once more."
)
UNJUDGED = Costs(round=0)  # a round's steps are judged behind the reply, where the hooks before it are known


@dataclass(frozen=True)
class Desk:
    """Who asks: an agent's model with the tools and the prompt of one request."""

    dialect: Dialect
    settings: LoopSettings
    tools: frozenset[str]
    prompt: SystemMessage | None
    systems: Systems
    model_name: str
    costs: Costs = UNJUDGED
    clock: Callable[[], float] = monotonic


class AgentExchange(Exchange):
    """A request by way of an agent's own model node: a format's answer is as that node reads it."""

    def formatted(self, result: Any, heard: Hearing) -> None:  # noqa: ARG002 - whole, or the agent has raised
        """Store the reply as the agent does; ask again for one without an answer in it."""
        reply, response = result["raw"], result["response"]
        refused = sign_of(reply) == "refused"
        problem = None
        if response.structured_response is None and not refused:
            said = [str(m.content) for m in response.result if m is not reply]
            problem = shorten(" ".join(said) or "there was no result in it", 300)
            reply = reply if said else without_calls(reply, self.request.say("empty_reply"))
        self.ledger = noted_format(self.ledger, problem, self.settings, cut=False, refused=refused)
        marked = {**reply.additional_kwargs, **mark("format")}
        key = reply.id if reply.id and not self.known(reply.id) else new_id()
        self.request.writes.append(reply.model_copy(update={"additional_kwargs": marked, "id": key}))


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
    tools: Tools = field(init=False)

    def __post_init__(self) -> None:
        check_tools(self.request.tools, self.dialect)
        state: Any = {**self.request.state}
        state["messages"] = in_order_of_calls(state["messages"], self.dialect)
        self.draft = Draft(state)
        self.draft.before = self.request.state["messages"]

    @property
    def dialect(self) -> Dialect:
        """The vocabulary of the todo tools."""
        return self.nag.dialect

    def asked(self) -> ModelRequest[Any] | None:
        """Return what the model is asked, or None where the guard is to rule first."""
        draft = self.draft
        if "nag" in draft.ledger:
            word = after_round(draft.state)
            if word == "cut off":
                return None
            if word == "nag due":
                draft.take(self.nag(draft.state, self.config))
        names = frozenset(map(name_of_tool, self.request.tools))
        desk = Desk(
            self.dialect,
            self.turns.settings,
            names,
            self.request.system_message,
            self.systems,
            name_of(self.request.model),
        )
        self.exchange = AgentExchange(draft.state, desk)
        check_priced(self.exchange.settings, desk.model_name)
        self.paced(self.exchange.ledger)
        if (update := self.exchange.not_asked()) is not None:
            draft.take(update)
            return None
        self.seen()
        return self.made()

    def paced(self, ledger: Any) -> None:
        """Note where the request is, and the supersteps of others before it, as the first of a run shows."""
        before, last, between = ledger.get("hooks", (0, 0, 0))
        here = step_of(self.config)
        went = here - last
        if before < 0:
            before = went - 1
        elif went and not self.by_tools(ledger):
            between = min(between or went, went)
        elif between and went > between + 1:
            raise SettingsError(NOT_FIRST)
        ledger["hooks"] = [before, here, between]
        if self.request.response_format is not None:
            ledger["formats"] = True

    def by_tools(self, ledger: Any) -> bool:
        """Tell whether tools have run since the last request; refuse a todo call that was answered twice."""
        if "nag" not in ledger:
            return False
        made = last_round(reversed(self.draft.state["messages"]))
        todo, faults = ledger.get("todo_calls", ()), ledger.get("faults", ())
        answered = [m.tool_call_id for m in takewhile(is_result, reversed(self.draft.state["messages"]))]
        if any(answered.count(key) > 1 for key in todo):
            raise SettingsError(NOT_FIRST)
        return any(call["id"] not in todo and call["id"] not in faults for call, _ in made)

    def seen(self) -> None:
        """Take over what wrappers around this one, or a summary in the thread, have made of the history."""
        stored, given = self.request.state["messages"], self.request.messages
        request = self.exchange.request
        before, now = {m.id: m for m in stored}, {m.id: m for m in request.messages}
        shown, ledger = self.exchange.ledger.get("shown"), self.exchange.ledger
        changed = [m for m in given if m is not (old := before.get(m.id)) and m != old]
        if changed or len(stored) != len(given):
            own = {id(m) for m in changed}
            request.seen = Messages(m if id(m) in own else now.get(m.id, m) for m in named_all(given))
            if shown in {m.id for m in changed}:
                ledger["shown"] = "-"  # it is there without its words
        elif shown and shown not in now:
            request.seen = request.messages

    def made(self) -> ModelRequest[Any]:
        """Put the agent's request together."""
        exchange, request = self.exchange, self.request
        wire = exchange.wire
        system = wire[0] if wire and isinstance(wire[0], SystemMessage) else None
        formats = exchange.asking == "format"
        called = has_calls(wire)
        self.tools = tools_for(
            exchange.asking, called=called, todo_tools=exchange.active, own=bool(request.tools)
        )
        if formats:
            self.tools = Tools(todos=called, own=called)
            if isinstance(request.response_format, ToolStrategy):
                self.tools = Tools(todos=False, own=False)
        bound: list[Any] = [*request.tools] if self.tools.own else []
        if self.tools.todos:
            bound += self.dialect.schemas(exchange.settings)
        choice = request.tool_choice if self.tools.may_call else no_call(request.model) if bound else None
        return request.override(
            messages=wire[1:] if system else wire,
            system_message=system,
            tools=bound,
            tool_choice=choice,
            response_format=request.response_format if formats else None,
        )

    def hearing(self) -> Hearing:
        """Return the ear for the request."""
        model: BaseChatModel = self.request.model
        return Hearing(
            self.config,
            streaming=bool(getattr(model, "streaming", False)),
            finishes=self.exchange.settings.finish_reason == "required",
        )

    def again(self, response: ModelResponse[Any] | None, heard: Hearing) -> bool:
        """Take in a reply; tell whether the same request is made again, since nothing of it is stored."""
        self.response = response or ModelResponse([])
        raw: Any = next((m for m in self.response.result if isinstance(m, AIMessage)), None)
        said: Any = raw if raw is not None else next(iter(self.response.result), None)
        if self.exchange.asking == "format" and heard.unread is None:
            said = {"raw": said, "response": self.response}
        update = self.exchange.stored(said, heard, may_call=self.tools.may_call)
        self.reply = None
        if self.exchange.ledger.get("again") not in ("empty", "unread"):
            self.reply = update["messages"][-1]
            update["messages"] = update["messages"][:-1]
            self.draft.take(update)
            return False
        self.draft.take(update)
        ledger: Any = {**self.draft.ledger}
        if rule(self.turns.case(self.draft.state, ledger, self.config)) != "retry":
            return False
        self.draft.take(self.turns.guard.ruled(self.draft.state))
        return True

    def left(self) -> ExtendedModelResponse[Any]:
        """Return the reply as the agent stores it, with all else that is written beside it.

        Where nothing was asked, a line closes the round: another hook takes the last reply for a new one.
        """
        update = self.draft.update() or {}
        closing = self.reply_or_line(update)
        result: list[BaseMessage] = [closing]
        if self.reply is not None:
            result += [m for m in self.response.result if not isinstance(m, AIMessage)]
        there = {m.id for m in self.draft.before}
        more = update.get("messages", [])
        if any(m.id not in there and not isinstance(m, RemoveMessage) for m in more):
            update["messages"] = whole(merge_messages(self.draft.before, [more, result]))
        structured = self.response.structured_response if self.reply is not None else None
        return ExtendedModelResponse(
            ModelResponse(result, structured), Command(update=update) if update else None
        )

    reply: AIMessage | None = None
    response: ModelResponse[Any] = field(default_factory=lambda: ModelResponse([]))

    def reply_or_line(self, update: dict[str, Any]) -> AIMessage:
        """Return the reply, or what stands in its place where there is none to store."""
        if self.reply is not None:
            return self.reply
        lines: Sequence[Any] = closing_line(self.draft.state["messages"], self.dialect, self.turns.settings)
        if lines:
            line: AIMessage = lines[0]
            return line
        none = AIMessage("", id=new_id())
        update["messages"] = [*update.get("messages", []), RemoveMessage(none.id or "")]
        return none


def is_result(message: BaseMessage) -> bool:
    """Tell whether a message is a call's result."""
    return isinstance(message, ToolMessage)


def name_of_tool(tool: BaseTool | Mapping[str, Any]) -> str:
    """Return a tool's name, also of one that the provider runs."""
    if isinstance(tool, BaseTool):
        return tool.name
    return str(tool.get("name") or tool.get("function", {}).get("name"))


def check_tools(tools: Sequence[Any], dialect: Dialect) -> None:
    """Refuse a second layer of todo tools, and tools that end the run past the list."""
    for tool in tools:
        if (name := name_of_tool(tool)) in dialect.names:
            raise ToolNameError(
                f"The tool {name!r} is there twice: WakeLoopMiddleware brings it, and so does another "
                "middleware or a tool of that name. Take TodoListMiddleware out, or rename the tool."
            )
        if getattr(tool, "return_direct", False):
            raise ToolError(f"The tool {name!r} has return_direct, which would end a run past its todo list.")


def in_order_of_calls(messages: Sequence[AnyMessage], dialect: Dialect) -> Sequence[AnyMessage]:
    """Return a history whose results stand as the graph writes them: the list's, then in the calls' order."""
    ordered: list[AnyMessage] | None = None
    for place, message in enumerate(messages):
        if not isinstance(message, AIMessage) or not message.tool_calls[1:]:
            continue
        calls = sorted(message.tool_calls, key=lambda call: call["name"] not in dialect.names)
        rank = {call["id"]: i for i, call in enumerate(calls)}
        end = place + 1
        while end < len(messages) and getattr(messages[end], "tool_call_id", None) in rank:
            end += 1
        results: list[Any] = list(messages[place + 1 : end])
        if (right := sorted(results, key=lambda m: rank[m.tool_call_id])) != results:
            ordered = list(messages) if ordered is None else ordered
            ordered[place + 1 : end] = right
    return messages if ordered is None else ordered
