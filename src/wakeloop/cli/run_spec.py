"""The specification of one run of one thread."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any

from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.store import DatabaseFile
from wakeloop.cli.streams import OutputOptions

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig


@dataclass(frozen=True)
class RunSpec:
    """One run of one thread.

    `request` is the thread's first message. `message` is sent now: a new input, or, if the run `resumes`, an
    answer, a message, or None to continue as is. With `ask`, the user approves each shell command. Setting
    `stop` ends running commands. `typed_settings` were given with this command; `todos` replaces the list.
    `asks_goal`: a check of the goal was given, so it is asked for before any request. `wait` is the longest
    time, in seconds, to wait for a limit.
    """

    database: DatabaseFile
    thread: str
    spec: AgentSpec
    request: str
    message: str | None
    resumes: bool = False
    output: OutputOptions = field(default_factory=OutputOptions)
    ask: bool = True
    typed_settings: Mapping[str, Any] = field(default_factory=dict)
    todos: Sequence[Mapping[str, Any]] | None = None
    asks_goal: bool = False
    wait: float = 0.0
    stop: Event = field(default_factory=Event)

    @property
    def config(self) -> "RunnableConfig":
        """The config under which the graph finds the thread."""
        return {"configurable": {"thread_id": self.thread}}
