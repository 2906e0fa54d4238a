"""One model request in `create_agent`, by the loop's rules."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest, ModelResponse
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.types import Command

from wakeloop.channels.conversation import Messages, merge_messages
from wakeloop.checks.argument_values import get_tool_name
from wakeloop.dialects.base import Dialect
from wakeloop.loop.case import Costs
from wakeloop.loop.item_notes import may_check_round
from wakeloop.loop.ledger import drop_keys
from wakeloop.loop.nudge import close_round
from wakeloop.loop.overrides import settings_in_force
from wakeloop.loop.progress import find_last_round
from wakeloop.loop.replies import note_format_reply
from wakeloop.loop.ruling import rule
from wakeloop.loop.silences import note_free_call, note_steps
from wakeloop.loop.spending import check_price
from wakeloop.middleware.agent_tools import check_tools, order_results
from wakeloop.middleware.draft import Draft, assign_ids, replace_history
from wakeloop.middleware.turns import Turns
from wakeloop.middleware.watched_request import HeardCalls
from wakeloop.model.bindings import ToolSelection, has_calls, select_tools
from wakeloop.model.context_window import read_profile_window
from wakeloop.model.finish_reasons import reply_problem
from wakeloop.model.reply import drop_calls
from wakeloop.model.reply_watcher import ReplyWatcher, watch_request
from wakeloop.model.request import RequestContext, Systems
from wakeloop.model.tool_choice import forced_call_choice, is_openai, no_call_choice
from wakeloop.model.usage import model_name_of
from wakeloop.nodes.activate import refuse_unanswerable
from wakeloop.nodes.nag import Nag
from wakeloop.platform.checkpointers import has_checkpointer
from wakeloop.platform.openai_replies import repair_replies
from wakeloop.platform.runnables import read_step
from wakeloop.routes import after_round
from wakeloop.text.characters import shorten
from wakeloop.text.marks import (
    append_to_result,
    find_last,
    make_assistant_message,
    make_mark,
    mark_no_answer,
    new_id,
    split_result_text,
)
from wakeloop.thread.exchange import Exchange
from wakeloop.thread.judges import Play, ask_about_items
from wakeloop.thread.steering import query_store
from wakeloop.thread.tool_reviews import ToolReviews, find_asking_tools
from wakeloop.todos.items import count_open

JUDGED_LATER = Costs(round=0)  # a round is judged after the reply, when the hooks before it are known


class AgentExchange(Exchange):
    """A request through an agent's own model node, which reads an answer in a format itself."""

    def store_structured(self, result: Any, heard: ReplyWatcher) -> None:  # noqa: ARG002 - whole, or the agent has raised
        """Store the reply as the agent does; request it again if it holds no answer in the format."""
        reply, response = result["raw"], result["response"]
        refused = reply_problem(reply) == "refused"
        problem = None
        if response.structured_response is None and not refused:
            said = [str(m.content) for m in response.result if m is not reply]
            problem = shorten(" ".join(said) or "there was no result in it", 300)
            reply = reply if said else drop_calls(reply, self.request.fill_prompt("no_text"))
        self.ledger = note_format_reply(self.ledger, problem, self.settings, cut=False, refused=refused)
        marked = {**reply.additional_kwargs, **make_mark("format")}
        key = reply.id if reply.id and not self.has_message(reply.id) else new_id()
        self.stores_reply = True
        self.request.writes.append(reply.model_copy(update={"additional_kwargs": marked, "id": key}))


@dataclass
class AgentRequest:
    """One request to the model: its messages, its reply, and the part of both that is stored."""

    turns: Turns
    nag: Nag
    request: ModelRequest[Any]
    config: RunnableConfig
    systems: Systems
    draft: Draft = field(init=False)
    context: RequestContext = field(init=False)
    exchange: AgentExchange = field(init=False)
    tools: ToolSelection = field(init=False)
    response: ModelResponse[Any] = field(default_factory=lambda: ModelResponse([]))
    reply: AIMessage | None = None
    given: frozenset[str | None] = frozenset()
    heard: HeardCalls = field(default_factory=HeardCalls)
    has_read_store: bool = False
    forced: bool = False  # the request asks for a call
    too_long: bool = False  # it was refused for its length, so that a smaller one is made

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

    def prepare(self) -> Play[ModelRequest[Any] | None]:
        """Return the request to make, or None if none may be made before the guard has ruled."""
        if self.too_long:
            self.too_long = False
            return self.build_model_request()
        draft, request = self.draft, self.request
        if not has_checkpointer(self.config):
            refuse_unanswerable(reviews=bool(find_asking_tools(request.tools)), plans=False)
        if self.waits_for_person:
            before, _, between = draft.ledger["hooks"]
            draft.apply({"todo_ledger": {**draft.ledger, "hooks": [before, read_step(self.config), between]}})
            return None
        if "nag" in draft.ledger:
            word = after_round(draft.ledger)
            if word == "run ends":
                return None
            if word == "reminder due":
                draft.apply(self.nag(draft.state, self.config))
        context = RequestContext(
            self.dialect,
            self.turns.settings,
            {get_tool_name(tool): tool for tool in request.tools},
            request.system_message,
            self.systems,
            model_name_of(request.model),
            read_profile_window(request.model),
            costs=JUDGED_LATER,
        )
        self.context = context
        self.exchange = AgentExchange(draft.state, context)
        check_price(self.exchange.settings, context.model_name)
        self.note_position(self.exchange.ledger)
        update = self.exchange.end_without_request()
        if update is not None:
            draft.apply(update)
            return None
        if not self.has_read_store:  # what a retry would read again is not stored yet
            self.has_read_store = True
            self.exchange.entries = yield from query_store(self.exchange.plan_read())
        self.adopt_history()
        return self.build_model_request()

    def check_items(self) -> Play[None]:
        """Put open items to the verifier after a round, where the settings want that."""
        draft, validate = self.draft, self.turns.validate
        settings = settings_in_force(self.turns.settings, draft.ledger)
        reply = find_last(AIMessage, draft.state["messages"])
        if validate.verifier.verify is None or reply is None or draft.ledger.get("plan") == "judged":
            return
        if not may_check_round(draft.ledger, settings, draft.state["todos"], reply):
            return
        if after_round(draft.ledger) != "run ends":
            draft.apply((yield from ask_about_items(validate.check_open_items(draft.state), draft.state)))

    @property
    def waits_for_person(self) -> bool:
        """Whether a person is asked before anything more is requested."""
        ledger = self.draft.ledger
        return ledger.get("plan") == "judged" or "standing" in ledger

    def note_position(self, ledger: Any) -> None:
        """Note this request's superstep, and how many supersteps of other hooks come before a request.

        Together they say how many supersteps another turn takes. A run's first request shows those hooks.
        """
        before, last, between = ledger.get("hooks", (0, 0, 0))
        step = read_step(self.config)
        distance = step - last
        if before < 0:
            before = distance - 1
        elif distance and self.follows_own_hook(ledger):
            between = min(between or distance, distance)
        ledger["hooks"] = [before, step, between]
        if self.request.response_format is not None:
            by_provider = isinstance(self.request.response_format, ProviderStrategy)
            ledger["formats"] = "provider" if by_provider else True

    def follows_own_hook(self, ledger: Any) -> bool:
        """Tell whether our own hook after the model led from the last request to this one."""
        if "nag" not in ledger:
            return "ruling" in ledger
        calls = find_last_round(reversed(self.draft.state["messages"]))
        answered = {*ledger.get("todo_calls", ()), *ledger.get("faults", ())}
        return bool(calls) and all(call["id"] in answered for call, _ in calls)

    def adopt_history(self) -> None:
        """Apply changes to the history that outer middleware or a summary in the thread made."""
        stored, given = self.request.state["messages"], self.request.messages
        request, ledger = self.exchange.request, self.exchange.ledger
        before, now = _by_id(stored), _by_id(request.messages)
        shown = ledger.get("shown")
        changed: dict[int, str | None] = {}
        for message, old in zip(given, map(before.get, [message.id for message in given]), strict=True):
            if message is not old and message != old:
                changed[id(message)] = message.id
        if not changed and len(stored) == len(given):
            if shown and shown not in now:
                request.seen = request.messages
            return
        seen = []
        for message in assign_ids(given):
            if id(message) in changed:
                seen.append(merge_rewording(message, before.get(message.id), now.get(message.id)))
            else:
                seen.append(now.get(message.id, message))
        # what has to be said before this request is in no history that others have seen
        request.seen = Messages([*seen, *(m for m in request.messages if m.id not in before)])
        if shown in changed.values():
            ledger["shown"] = "-"  # the message is there, but its words are not

    def build_model_request(self) -> ModelRequest[Any]:
        """Build the agent's request: messages, tools, tool choice and format."""
        exchange, request = self.exchange, self.request
        wire = exchange.wire
        self.given = frozenset([message.id for message in wire])
        system: SystemMessage | None = None
        if wire and isinstance(wire[0], SystemMessage):
            system, wire = wire[0], wire[1:]
        formats = exchange.asking == "format"
        self.tools = self.choose_tools(called=has_calls(wire), formats=formats)
        bound = self.bind_tools(formats=formats)
        choice = None
        self.forced = False
        if self.tools.may_call:
            choice = request.tool_choice
            wanted = exchange.asks_for_call and self.tools.todos
            if choice is None and wanted and "tool_choice" not in request.model_settings:
                choice = forced_call_choice(request.model)
                self.forced = choice is not None
        elif bound:
            choice = no_call_choice(request.model)
        return request.override(
            messages=wire,
            system_message=system,
            tools=bound,
            tool_choice=choice,
            response_format=request.response_format if formats else None,
        )

    def choose_tools(self, *, called: bool, formats: bool) -> ToolSelection:
        """Return which tools the request carries; calls in the history (`called`) need their tools."""
        if formats and isinstance(self.request.response_format, ToolStrategy):
            return ToolSelection(todos=False, own=False)
        if formats:
            return ToolSelection(todos=called, own=called)
        active, own = self.exchange.active, bool(self.request.tools)
        return select_tools(self.exchange.asking, called=called, todo_tools=active, own=own)

    def bind_tools(self, *, formats: bool) -> list[Any]:
        """Return the tools of the request: the agent's own, and the todo tools."""
        bound: list[Any] = [*self.request.tools] if self.tools.own else []
        if not self.tools.todos:
            return bound
        if not (formats and is_openai(self.request.model)):
            return [*bound, *self.turns.schemas]
        # LangChain makes tools strict next to a format, and finds their schema only without the wrapper
        return [*bound, *(schema["function"] for schema in deepcopy(self.turns.schemas))]

    def watch_reply(self) -> ReplyWatcher:
        """Return the watcher of the reply; what is really sent and answered is heard, too."""
        model: BaseChatModel = self.request.model
        repair_replies(model)
        self.heard = HeardCalls()
        exchange, config = self.exchange, merge_configs(self.config, {"callbacks": [self.heard]})
        waits = exchange.may_wait and has_checkpointer(self.config)
        return watch_request(
            config, model, exchange.settings, exchange.asking, formats=False, forced=self.forced, waits=waits
        )

    def take_reply(self, response: ModelResponse[Any] | None, heard: ReplyWatcher) -> bool:
        """Process a reply. Return whether to ask again: the request was too long, or the reply unusable."""
        if self.exchange.takes_refusal(heard):
            self.too_long = True
            return True
        self.response = response or ModelResponse([])
        self.note_lost_list()
        replies, others = _split_replies(self.response.result)
        said: Any = next(iter([*replies, *others]), None)
        end = self.heard.find_end_without_model(said, self.request.model) if replies else None
        if end is not None:
            self.exchange.asking = None  # whatever was asked for, this does not answer it
        self.note_bound_tools(said)
        if self.exchange.asking == "format" and heard.unreadable is None:
            said = {"raw": said, "response": self.response}
        update = self.exchange.build_update(said, heard, may_call=self.tools.may_call)
        if end is not None:
            update["todo_ledger"] = {**drop_keys(update["todo_ledger"], frozenset(("again",))), "end": end}
        self.reply = None
        if self.exchange.stores_reply:
            reply = update["messages"][-1]
            self.reply = mark_no_answer(reply, end) if end else reply
            update["messages"] = update["messages"][:-1]
            self.note_reviews(update["todo_ledger"], self.reply.tool_calls)
            note_steps(update["todo_ledger"], read_step(self.config) + self.draft.state["remaining_steps"])
            self.draft.apply(update)
            return False
        self.draft.apply(update)
        ledger: Any = {**self.draft.ledger}
        if rule(self.turns.build_case(self.draft.state, ledger, self.config)) != "retry":
            return False
        again = self.turns.build_guard(ledger, self.config).rule_turn(self.draft.state)
        self.draft.apply(self.turns.judges.finish(again))  # a retry asks no judge
        return True

    def note_bound_tools(self, reply: AIMessage | None) -> None:
        """Let a reply call what was bound when it was made: later middleware adds and removes tools."""
        bound = self.heard.bound.get(reply.id or "") if reply is not None else None
        if not bound:
            return
        given = self.context.tools
        tools = {name: given.get(name, tool) for name, tool in bound.items()}
        others = {name: tool for name, tool in tools.items() if name not in self.dialect.tool_names}
        self.exchange.context = replace(self.context, tools=others)

    def note_reviews(self, ledger: Any, calls: Sequence[Any]) -> None:
        """Note how a person is asked about calls of the package's own tools, whoever takes the answer."""
        if "nag" not in ledger:
            return
        reviews = ToolReviews(find_asking_tools(self.request.tools), mode="per_call")
        if found := reviews.find_reviews(calls, ledger):
            ledger["reviews"] = found
            note_free_call(ledger)

    def note_lost_list(self) -> None:
        """Note if middleware inside this one cut off the message that shows the list."""
        if not count_open(self.exchange.todos):
            return
        sent = self.heard.ids - {None}
        if not self.given & sent:  # nothing was sent, or under ids of its own
            return
        ledger = self.exchange.ledger
        if (self.given - sent).intersection((ledger.get("shown"), *ledger.get("told", ()))):
            ledger["shown"] = "-"

    def build_response(self) -> ExtendedModelResponse[Any]:
        """Return the reply as the agent stores it, with everything that is written along with it.

        If no request was made, a line closes the round: otherwise another hook would mistake the last reply
        for a new one. While a plan waits for its approval, an empty message takes its place.
        """
        update = self.draft.build_update() or {}
        result: list[BaseMessage] = [self.choose_reply(update)]
        structured = None
        if self.reply is not None:
            result += _split_replies(self.response.result)[1]
            structured = self.response.structured_response
        there = {message.id for message in self.draft.before}
        written = update.get("messages", [])
        if any(m.id not in there and not isinstance(m, RemoveMessage) for m in written):
            update["messages"] = replace_history(merge_messages(self.draft.before, [written, result]))
        command: Any = Command(update=update) if update else None
        return ExtendedModelResponse(ModelResponse(result, structured), command)

    def choose_reply(self, update: dict[str, Any]) -> AIMessage:
        """Return the reply, or the message in its place if nothing is to be stored."""
        if self.reply is not None:
            return self.reply
        if self.waits_for_person:
            return make_assistant_message("repair", "")
        lines: Sequence[Any] = close_round(self.draft.state["messages"], self.dialect, self.turns.settings)
        if lines:
            line: AIMessage = lines[0]
            return line
        none = AIMessage("", id=new_id())
        update["messages"] = [*update.get("messages", []), RemoveMessage(none.id or "")]
        return none


def _by_id(messages: Sequence[Any]) -> dict[str | None, Any]:
    return {message.id: message for message in messages}


def _split_replies(messages: Sequence[BaseMessage]) -> tuple[list[BaseMessage], list[BaseMessage]]:
    """Split messages into those of the model and the others."""
    replies: list[BaseMessage] = []
    others: list[BaseMessage] = []
    for message in messages:
        (replies if isinstance(message, AIMessage) else others).append(message)
    return replies, others


def merge_rewording(given: Any, old: Any, new: Any) -> Any:
    """Return a message as other middleware reworded it, with later additions to the stored one."""
    if new is old or not (isinstance(given, ToolMessage) and isinstance(old, ToolMessage)):
        return given
    added = split_result_text(new)[1][len(split_result_text(old)[1]) :]
    return append_to_result(given, added.removeprefix("\n\n")) if added else given
