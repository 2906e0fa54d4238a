"""The tools with which a session asks, sends and spawns."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command

from wakeloop.errors import SessionError, ToolNameError
from wakeloop.loop.approval import build_approval_request
from wakeloop.loop.inbox import WakeEvent, find_owed_replies
from wakeloop.sessions.host import SessionHost, find_agent
from wakeloop.sessions.host_rules import make_answer, remove_answered
from wakeloop.sessions.tool_call import SessionToolCall
from wakeloop.text.characters import pluralize
from wakeloop.text.descriptions import describe
from wakeloop.thread.interrupts import ask_person

TOOL_NAMES = ("ask_user", "talk_to_agent", "send_message", "reply_to_peer", "spawn_subagent", "wait_for")
HANDLE_LENGTH = 10  # characters of a handle's own part: the model repeats it
_DEPTH = re.compile(r":sub(\d+)-[0-9a-f]+\Z")


@dataclass(frozen=True)
class SubagentLimits:
    """How far subagents go.

    Attributes:
        depth: How deep subagents may start subagents.
        children: How many a session may have at work at once.
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
    """Return the tools of these names for an agent whose threads this host runs.

    Args:
        host: The host, or a function that returns it at each call (where the host is made from its agents).
        names: Which of `ask_user`, `talk_to_agent`, `send_message`, `reply_to_peer`, `spawn_subagent`,
            `wait_for`; all of them by default.
        agents: The agents that may be addressed, with a line on what each is for, which the model reads;
            without it all of the host's.
        limits: Depth and number of subagents.

    Returns:
        LangChain tools, in the order of the names. They need a checkpointer and a `thread_id`, and refuse by
        a `ToolException` of one sentence.

    Raises:
        ToolNameError: A name that is none of them.
    """
    wanted = list(dict.fromkeys(names))
    if unknown := [name for name in wanted if name not in TOOL_NAMES]:
        raise ToolNameError(f"There is no session tool {unknown[0]!r}; there are {', '.join(TOOL_NAMES)}.")
    made = SessionTools(host, agents, limits or SubagentLimits())
    return [made.make_tool(name) for name in wanted]


def subagent_depth(thread_id: str) -> int:
    """Return how deep a thread was spawned: 0 for one that no session started."""
    found = _DEPTH.search(thread_id)
    return int(found[1]) if found else 0


@dataclass(frozen=True)
class SessionTools:
    """The tools over one host; each is a method under what the model reads of it."""

    host_or_factory: SessionHost | Callable[[], SessionHost]
    agents: Mapping[str, str] | None
    limits: SubagentLimits

    def make_tool(self, name: str) -> BaseTool:
        """Return one of them as a LangChain tool."""
        method = getattr(self, name)
        told = " ".join((method.__doc__ or "").split())
        if self.agents and name in ("talk_to_agent", "send_message", "spawn_subagent"):
            told += " Agents: " + "; ".join(f"{agent} ({what})" for agent, what in self.agents.items()) + "."
        return StructuredTool.from_function(
            method, name=name, description=told, args_schema=argument_schema(name)
        )

    @describe("Ask the person you work for and wait for the answer: only what you cannot find out yourself.")
    def ask_user(self, question: str) -> str:
        text = _require_text(question, "question")
        asked = build_approval_request("ask_user", {"question": text}, text, ("respond",), on="human")
        return ask_person(asked, lambda decision: decision.words)

    @describe("Ask another agent something. The reply comes as a message after your turn has ended.")
    def talk_to_agent(self, agent: str, message: str, runtime: ToolRuntime[Any, Any]) -> Command[Any]:
        call = SessionToolCall.from_runtime(runtime)
        text, to = _require_text(message, "message"), self.resolve_address(agent, call)
        chain = call.chain
        if to in chain:
            circle = " → ".join([*chain[chain.index(to) :], to])
            raise ToolException(
                f"{to} waits for an answer itself ({circle}), so it cannot be asked; "
                "answer first, or go on with what you have"
            )
        key = call.event_id
        event: WakeEvent = {"kind": "peer_message", "id": key, "text": text, "sender": call.thread}
        self.send(to, {**event, "correlation_id": key, "chain": chain})
        waits = {"id": key, "on": "peer", "from": to}
        return call.make_result(
            f"Asked {to}. The reply will come as a message: do what you can without it, then end your turn.",
            waiting_on=[waits],
        )

    @describe("Tell another agent something, without waiting for an answer.")
    def send_message(self, agent: str, message: str, runtime: ToolRuntime[Any, Any]) -> str:
        call = SessionToolCall.from_runtime(runtime)
        text, to = _require_text(message, "message"), self.resolve_address(agent, call)
        self.send(to, {"kind": "peer_message", "id": call.event_id, "text": text, "sender": call.thread})
        return f"Sent to {to}."

    @describe("Answer the agent that has waited longest for a reply of yours.")
    def reply_to_peer(self, message: str, runtime: ToolRuntime[Any, Any]) -> Command[Any]:
        call = SessionToolCall.from_runtime(runtime)
        text = _require_text(message, "message")
        owed = [entry for entry in find_owed_replies(call.state) if isinstance(entry, Mapping)]
        if call.position >= len(owed):
            raise ToolException("no reply is owed; use send_message to tell an agent something unasked")
        letter = make_answer(owed[call.position], call.thread, text)
        self.send(letter.thread, letter.event)
        return call.make_result(f"Replied to {letter.thread}.", owed_replies=remove_answered([letter]))

    @describe("Start a subagent on a task. Returns its handle at once; the result comes as a message.")
    def spawn_subagent(
        self, task: str, runtime: ToolRuntime[Any, Any], agent: str | None = None
    ) -> Command[Any]:
        call = SessionToolCall.from_runtime(runtime)
        text, depth = _require_text(task, "task"), subagent_depth(call.thread) + 1
        kind = self.check_agent(agent or find_agent(call.thread, self.host.agents))
        if depth > self.limits.depth:
            raise ToolException(
                f"subagents may not start subagents deeper than {self.limits.depth}; do the task yourself"
            )
        children = call.subagents
        if len(children) + call.position >= self.limits.children:
            raise ToolException(
                f"no more than {pluralize(self.limits.children, 'subagent')} may be at work at once; "
                "wait for one of them first"
            )
        handle = f"{kind}:sub{depth}-{call.event_id[:HANDLE_LENGTH]}"
        event: WakeEvent = {"kind": "peer_message", "id": call.event_id, "text": text, "sender": call.thread}
        wants = {"correlation_id": handle, "wants": "subagent_done", "chain": call.chain}
        self.send(handle, {**event, **wants})  # type: ignore[typeddict-item]
        return call.make_result(f"Started {handle}.", todo_subagents=[{"id": handle}])

    @describe("Wait for these subagents: after this turn your list wakes you only when all have finished.")
    def wait_for(self, handles: list[str], runtime: ToolRuntime[Any, Any]) -> Command[Any]:
        call = SessionToolCall.from_runtime(runtime)
        wanted = list(dict.fromkeys(handles))
        if not wanted:
            raise ToolException("handles is empty; name at least one subagent")
        running = [handle for handle in wanted if handle in call.subagents]
        over = [handle for handle in wanted if handle not in running and call.has_result_from(handle)]
        if strange := [handle for handle in wanted if handle not in running and handle not in over]:
            at_work = ", ".join(call.subagents) or "none"
            raise ToolException(f"there is no subagent {strange[0]!r}; at work: {at_work}")
        told = f" Finished already, see their messages: {', '.join(over)}." if over else ""
        if not running:
            return call.make_result(f"Nothing to wait for.{told}")
        return call.make_result(
            f"Waiting for {', '.join(running)}.{told} End your turn; the results will come as messages.",
            waiting_on=[{"id": handle, "on": "subagent"} for handle in running],
        )

    # -- the host ----------------------------------------------------------------------------------------

    @property
    def host(self) -> SessionHost:
        """The host, asked for at each call: none is kept with a thread."""
        return (
            self.host_or_factory if isinstance(self.host_or_factory, SessionHost) else self.host_or_factory()
        )

    def send(self, thread_id: str, event: WakeEvent) -> None:
        """Send an event; what the host refuses is the tool's error."""
        try:
            self.host.send(thread_id, event)
        except SessionError as error:
            raise ToolException(str(error)) from None

    def resolve_address(self, agent: str, call: SessionToolCall) -> str:
        """Return the thread that a name stands for: an agent's own, one of its others, or a known peer's."""
        to = _require_text(agent, "agent")
        if to == call.thread:
            raise ToolException(f"{to} is your own name; a session cannot write to itself")
        if self.agents is None and self.is_known_thread(to):
            return to
        self.check_agent(to.partition(":")[0])
        return to

    def check_agent(self, name: str) -> str:
        """Return the name of an agent that may be addressed, or refuse."""
        allowed = self.host.agents if self.agents is None else self.agents
        if name not in allowed:
            raise ToolException(f"there is no agent {name!r}; there are: {', '.join(sorted(allowed))}")
        return name

    def is_known_thread(self, thread_id: str) -> bool:
        """Tell whether the host knows a thread."""
        try:
            self.host.status(thread_id)
        except SessionError:
            return False
        return True


@cache
def argument_schema(name: str) -> Any:
    """Return the schema of a tool's arguments: read once, since that takes longer than all else of a tool."""
    nobodys = SessionTools(_no_host, None, SubagentLimits())
    return StructuredTool.from_function(getattr(nobodys, name), name=name).args_schema


def _no_host() -> SessionHost:
    raise SessionError("These tools have no host.")


def _require_text(given: str, what: str) -> str:
    if not given.strip():
        raise ToolException(f"{what} is empty; write a text")
    return given.strip()
