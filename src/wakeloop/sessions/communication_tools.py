"""Tools for asking people and agents, and for subagents."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command

from wakeloop.errors import SessionError, ToolNameError
from wakeloop.loop.inbox import WakeEvent, find_owed_replies
from wakeloop.platform.database_errors import describe_database_error, is_database_error
from wakeloop.sessions.host import THREAD_KEY, SessionHost, derive_id, find_agent
from wakeloop.sessions.host_rules import derive_answer_id, make_answer, remove_answered
from wakeloop.text.characters import pluralize
from wakeloop.text.descriptions import describe
from wakeloop.tools import ask_user

TOOL_NAMES = ("ask_user", "talk_to_agent", "send_message", "reply_to_peer", "spawn_subagent", "wait_for")
HANDLE_LENGTH = 10  # characters after the agent's name; short, because the model has to repeat the handle
_DEPTH = re.compile(r":sub(\d+)-[0-9a-f]+\Z")


@dataclass(frozen=True)
class SessionToolCall:
    """One call of a session tool, with its thread and message."""

    id: str
    name: str
    thread: str
    state: Mapping[str, Any]
    message: AIMessage

    @classmethod
    def from_runtime(cls, runtime: ToolRuntime[Any, Any]) -> Self:
        """Read the call from a run. Raises `ToolException` if the run has no thread."""
        config = runtime.config
        own = (config.get("configurable") or {}).get("thread_id")
        thread = (config.get("metadata") or {}).get(THREAD_KEY) or own  # a server has its own thread ids
        if not thread:
            raise ToolException("this tool needs a thread: run the agent with a checkpointer and a thread_id")
        messages: Sequence[Any] = runtime.state["messages"]
        key = str(runtime.tool_call_id)
        for message in reversed(messages):
            if isinstance(message, AIMessage):
                for call in message.tool_calls:
                    if call["id"] == key:
                        return cls(key, call["name"], str(thread), runtime.state, message)
        raise ToolException("this call is not in the conversation")

    @property
    def event_id(self) -> str:
        """The id of the event that this call sends: the same whenever the call is repeated."""
        return derive_id(self.thread, self.message.id or "", self.id)

    def make_message(self, text: str, **more: Any) -> WakeEvent:
        """Return the event that brings another thread this text."""
        return {"kind": "peer_message", "id": self.event_id, "text": text, "sender": self.thread, **more}  # type: ignore[typeddict-item]

    @property
    def position(self) -> int:
        """The number of calls to this tool before this one in its message."""
        return [c["id"] for c in self.message.tool_calls if c["name"] == self.name].index(self.id)

    @property
    def chain(self) -> list[str]:
        """The threads that wait for this one, oldest first, then this one."""
        threads: list[str] = []
        for owed in self.state.get("owed_replies") or ():
            if isinstance(owed, Mapping):
                threads += owed.get("chain") or [owed.get("sender", "")]
        waiting = [thread for thread in threads if thread and thread != self.thread]
        return [*dict.fromkeys(waiting), self.thread]

    @property
    def subagents(self) -> list[str]:
        """The handles of the running subagents."""
        return [str(entry["id"]) for entry in self.state.get("todo_subagents") or ()]

    def has_result_from(self, handle: str) -> bool:
        """Tell whether a subagent's result has arrived, as far as the thread remembers."""
        ledger = self.state.get("todo_ledger") or {}
        return derive_answer_id(self.thread, handle) in ledger.get("events", ())

    def make_result(self, text: str, **update: Any) -> Command[Any]:
        """Return the call's result, together with an update of other channels."""
        result = ToolMessage(text, name=self.name, tool_call_id=self.id)
        return Command(update={"messages": [result], **update})


@dataclass(frozen=True)
class SubagentLimits:
    """Limits on subagents.

    Attributes:
        depth: How deep subagents may nest.
        children: How many subagents a session may run at once.

    Example:
        >>> from wakeloop.sessions import SubagentLimits
        >>> SubagentLimits(children=2)
        SubagentLimits(depth=3, children=2)
    """

    depth: int = 3
    children: int = 8


def session_tools(
    host: SessionHost | Callable[[], SessionHost],
    names: Iterable[str] = TOOL_NAMES,
    *,
    agents: Mapping[str, str] | None = None,
    limits: SubagentLimits | None = None,
) -> list[BaseTool]:
    """Return the session tools with these names, for an agent whose threads the host runs.

    Args:
        host: The host, or a function that returns it at each call (if the host is made from the agents). It
            is called while the host starts, too: a run that a killed process left begins then.
        names: Any of `ask_user`, `talk_to_agent`, `send_message`, `reply_to_peer`, `spawn_subagent` and
            `wait_for`. Default: all of them.
        agents: The agents that may be addressed, each with a line on what it is for, which the model reads.
            Default: all of the host's agents.
        limits: The depth and number of subagents.

    Returns:
        LangChain tools, in the order of the names. They need a checkpointer and a `thread_id`. Their errors
        are a `ToolException` with one sentence.

    Raises:
        ToolNameError: A name is unknown.

    Example:
        >>> from wakeloop.sessions import session_tools
        >>> def get_host():
        ...     return host  # made later, from the agents
        >>> [tool.name for tool in session_tools(get_host, ["ask_user", "send_message"])]
        ['ask_user', 'send_message']
    """
    wanted = list(dict.fromkeys(names))
    for name in wanted:
        if name not in TOOL_NAMES:
            raise ToolNameError(f"Unknown session tool {name!r}. Available: {', '.join(TOOL_NAMES)}.")
    tools = SessionTools(host, agents, limits or SubagentLimits())
    return [ask_user if name == "ask_user" else tools.make_tool(name) for name in wanted]


@dataclass(frozen=True)
class SessionTools:
    """The tools of one host, as methods. The model reads the text in the decorator."""

    host_or_factory: SessionHost | Callable[[], SessionHost]
    agents: Mapping[str, str] | None
    limits: SubagentLimits

    def make_tool(self, name: str) -> BaseTool:
        """Return the method with this name as a LangChain tool."""
        method = getattr(self, name)
        description = " ".join((method.__doc__ or "").split())
        if self.agents and name in ("talk_to_agent", "send_message", "spawn_subagent"):
            agents = "; ".join(f"{agent} ({purpose})" for agent, purpose in self.agents.items())
            description += f" Agents: {agents}."
        return StructuredTool.from_function(method, name=name, description=description)

    @describe("Ask another agent something. The reply comes as a message after your turn has ended.")
    def talk_to_agent(self, agent: str, message: str, runtime: ToolRuntime[Any, Any]) -> Command[Any]:
        call = SessionToolCall.from_runtime(runtime)
        text, to = _require_text(message, "message"), self.resolve_address(agent, call)
        chain = call.chain
        if to in chain:
            circle = " → ".join([*chain[chain.index(to) :], to])
            raise ToolException(
                f"{to} is itself waiting for an answer ({circle}), so it cannot be asked; "
                "answer first, or continue with what you have"
            )
        key = call.event_id
        self.send(to, call.make_message(text, correlation_id=key, chain=chain))
        waits = {"id": key, "on": "peer", "from": to}
        return call.make_result(
            f"Asked {to}. The reply will come as a message: do what you can without it, then end your turn."
            f"{self.note_hold(to)}",
            waiting_on=[waits],
        )

    @describe("Tell another agent something, without waiting for an answer.")
    def send_message(self, agent: str, message: str, runtime: ToolRuntime[Any, Any]) -> str:
        call = SessionToolCall.from_runtime(runtime)
        text, to = _require_text(message, "message"), self.resolve_address(agent, call)
        self.send(to, call.make_message(text))
        return f"Sent to {to}.{self.note_hold(to)}"

    @describe("Answer the agent that has waited longest for your reply.")
    def reply_to_peer(self, message: str, runtime: ToolRuntime[Any, Any]) -> Command[Any]:
        call = SessionToolCall.from_runtime(runtime)
        text = _require_text(message, "message")
        owed = [entry for entry in find_owed_replies(call.state) if isinstance(entry, Mapping)]
        if call.position >= len(owed):
            raise ToolException("you owe no reply; use send_message to tell an agent something")
        answer = make_answer(owed[call.position], call.thread, text)
        self.send(answer.thread, answer.event)
        return call.make_result(f"Replied to {answer.thread}.", owed_replies=remove_answered([answer]))

    @describe("Start a subagent on a task. Returns its handle at once; the result comes as a message.")
    def spawn_subagent(
        self, task: str, runtime: ToolRuntime[Any, Any], agent: str | None = None
    ) -> Command[Any]:
        call = SessionToolCall.from_runtime(runtime)
        text, nested = _require_text(task, "task"), _DEPTH.search(call.thread)
        depth = int(nested[1]) + 1 if nested else 1
        kind = self.check_agent(agent or find_agent(call.thread, self.host.agents))
        if depth > self.limits.depth:
            raise ToolException(f"subagents may nest at most {self.limits.depth} deep; do the task yourself")
        # earlier calls of the same message are not in the state yet
        if len(call.subagents) + call.position >= self.limits.children:
            most = pluralize(self.limits.children, "subagent")
            raise ToolException(f"at most {most} may run at once; wait for one of them first")
        handle = f"{kind}:sub{depth}-{call.event_id[:HANDLE_LENGTH]}"
        wants = {"correlation_id": handle, "wants": "subagent_done", "chain": call.chain}
        self.send(handle, call.make_message(text, **wants))
        return call.make_result(f"Started {handle}.", todo_subagents=[{"id": handle}])

    @describe("Wait for these subagents: after this turn your list wakes you only when all have finished.")
    def wait_for(self, handles: list[str], runtime: ToolRuntime[Any, Any]) -> Command[Any]:
        call = SessionToolCall.from_runtime(runtime)
        wanted = list(dict.fromkeys(handles))
        if not wanted:
            raise ToolException("handles is empty; name at least one subagent")
        running = [handle for handle in wanted if handle in call.subagents]
        finished = [handle for handle in wanted if handle not in running and call.has_result_from(handle)]
        if unknown := [handle for handle in wanted if handle not in running and handle not in finished]:
            names = ", ".join(call.subagents) or "none"
            raise ToolException(f"unknown subagent {unknown[0]!r}; running: {names}")
        note = f" Already finished, see their messages: {', '.join(finished)}." if finished else ""
        if not running:
            return call.make_result(f"Nothing to wait for.{note}")
        return call.make_result(
            f"Waiting for {', '.join(running)}.{note} End your turn; the results will come as messages.",
            waiting_on=[{"id": handle, "on": "subagent"} for handle in running],
        )

    # -- the host ----------------------------------------------------------------------------------------

    @property
    def host(self) -> SessionHost:
        """The host, looked up at each call, because it may not exist yet when the tools are made."""
        given = self.host_or_factory
        return given if isinstance(given, SessionHost) else given()

    def send(self, thread_id: str, event: WakeEvent) -> None:
        """Send an event. A refusal by the host becomes the tool's error."""
        try:
            with explain_database_errors():
                self.host.send(thread_id, event)
        except SessionError as error:
            raise ToolException(str(error)) from None

    def note_hold(self, thread_id: str) -> str:
        """Return a sentence for the sender if a person holds the thread; else ""."""
        try:
            on = self.host.status(thread_id).on
        except Exception:  # noqa: BLE001 - the message was sent; only this note is missing
            return ""
        return f" A person holds {thread_id}: it will read this once it is released." if on == "hold" else ""

    def resolve_address(self, agent: str, call: SessionToolCall) -> str:
        """Return the thread that an agent's name, or a thread's id, refers to, else refuse."""
        to = _require_text(agent, "agent")
        if to == call.thread:
            raise ToolException(f"{to} is your own name; a session cannot write to itself")
        if self.agents is None and self.is_known_thread(to):
            return to
        self.check_agent(to.partition(":")[0])
        return to

    def check_agent(self, name: str) -> str:
        """Return the name of an agent that may be addressed. Raises `ToolException` for any other."""
        allowed = self.host.agents if self.agents is None else self.agents
        if name not in allowed:
            raise ToolException(f"unknown agent {name!r}; available: {', '.join(sorted(allowed))}")
        return name

    def is_known_thread(self, thread_id: str) -> bool:
        """Tell whether the host knows a thread."""
        try:
            with explain_database_errors():
                self.host.status(thread_id)
        except SessionError:
            return False
        return True


@contextmanager
def explain_database_errors() -> Iterator[None]:
    """Turn an error of the host's database into one sentence for the model, without SQL."""
    try:
        yield
    except Exception as error:
        if not is_database_error(error):
            raise
        raise ToolException(
            f"nothing was sent, because the sessions' database failed: {describe_database_error(error)}; "
            "try again later"
        ) from None


def _require_text(given: str, what: str) -> str:
    if not given.strip():
        raise ToolException(f"{what} must not be empty")
    return given.strip()
