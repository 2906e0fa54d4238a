"""The specification of one run of one thread."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any

from wakeloop.cli.agent_spec import DEFAULT_WAIT, AgentSpec
from wakeloop.cli.spec_builder import collect_typed_settings
from wakeloop.cli.store import DatabaseFile
from wakeloop.cli.streams import OutputOptions

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig


@dataclass(frozen=True)
class RunSpec:
    """One run of one thread.

    `request` is the thread's first message. `message` is sent now: a new input, or, if the run `resumes`, an
    answer, a message, or None to continue as is. `given` are the options of this command. With `ask`, the
    user approves each shell command. Setting `stop` ends running commands. `todos` replaces the list.
    """

    database: DatabaseFile
    thread: str
    spec: AgentSpec
    request: str
    message: str | None
    given: Mapping[str, Any] = field(default_factory=dict)
    resumes: bool = False
    output: OutputOptions = field(default_factory=OutputOptions)
    ask: bool = True
    todos: Sequence[Mapping[str, Any]] | None = None
    stop: Event = field(default_factory=Event)

    @property
    def config(self) -> "RunnableConfig":
        """The config under which the graph finds the thread."""
        return {"configurable": {"thread_id": self.thread}}

    @property
    def typed_settings(self) -> Mapping[str, Any]:
        """The settings that were typed with this command."""
        return collect_typed_settings(self.given)

    @property
    def wait(self) -> float:
        """The longest time, in seconds, to wait for a limit."""
        return float(self.given.get("wait", DEFAULT_WAIT))
