"""One call of a session tool, with its thread and message."""

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
