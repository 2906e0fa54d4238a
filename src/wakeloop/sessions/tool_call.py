"""One call of a session tool: who calls, and from where."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import ToolException
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command

from wakeloop.sessions.host import THREAD_KEY, derive_id
from wakeloop.sessions.host_rules import derive_answer_id


@dataclass(frozen=True)
class SessionToolCall:
    """One call of a session tool: who calls, from which message, at which place among its like."""

    id: str
    name: str
    thread: str
    state: Mapping[str, Any]
    message: AIMessage

    @classmethod
    def from_runtime(cls, runtime: ToolRuntime[Any, Any]) -> Self:
        """Read it off the run. Raises `ToolException` without a thread."""
        config = runtime.config
        own = (config.get("configurable") or {}).get("thread_id")
        thread = (config.get("metadata") or {}).get(THREAD_KEY) or own  # a server has ids of its own
        if not thread:
            raise ToolException("this tool needs a thread: run the agent with a checkpointer and a thread_id")
        messages: Sequence[Any] = runtime.state["messages"]
        key = str(runtime.tool_call_id)
        for message in reversed(messages):
            calls = message.tool_calls if isinstance(message, AIMessage) else []
            if name := next((c["name"] for c in calls if c["id"] == key), None):
                return cls(key, name, str(thread), runtime.state, message)
        raise ToolException("this call is not in the conversation")

    @property
    def event_id(self) -> str:
        """The id of what this call sends: the same whenever the call is run again."""
        return derive_id(self.thread, self.message.id or "", self.id)

    @property
    def position(self) -> int:
        """How many calls of this tool stand before this one in its message."""
        return [c["id"] for c in self.message.tool_calls if c["name"] == self.name].index(self.id)

    @property
    def chain(self) -> list[str]:
        """The threads that wait for this one, oldest first, and this one."""
        owed = [o for o in self.state.get("owed_replies") or () if isinstance(o, Mapping)]
        waiting = [t for o in owed for t in o.get("chain") or [o.get("sender", "")]]
        return [*dict.fromkeys(t for t in waiting if t and t != self.thread), self.thread]

    @property
    def subagents(self) -> list[str]:
        """The handles of the subagents at work."""
        return [str(entry["id"]) for entry in self.state.get("todo_subagents") or ()]

    def has_result_from(self, handle: str) -> bool:
        """Tell whether a subagent's result has come in, as far as this is remembered."""
        ledger = self.state.get("todo_ledger") or {}
        return derive_answer_id(self.thread, handle) in ledger.get("events", ())

    def make_result(self, text: str, **update: Any) -> Command[Any]:
        """Answer the call, and write to channels."""
        result = ToolMessage(text, name=self.name, tool_call_id=self.id)
        return Command(update={"messages": [result], **update})
