"""What a command wants of a thread."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any

from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.output_formats import OutputOptions
from wakeloop.cli.store import DatabaseFile

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig


@dataclass(frozen=True)
class RunSpec:
    """One run of one thread.

    `request` is the thread's first message, `message` what it is sent now: a new input, or where the job
    `resumes` the thread an answer, a message or None, as the thread stands. `ask` puts each shell command to
    the person, `stop` ends those that run. `typed_settings` are the settings that this command was given,
    `todos` a list for the thread.
    """

    place: DatabaseFile
    thread: str
    recipe: AgentSpec
    request: str
    message: str | None
    resumes: bool = False
    output: OutputOptions = field(default_factory=OutputOptions)
    ask: bool = True
    typed_settings: Mapping[str, Any] = field(default_factory=dict)
    todos: Sequence[Mapping[str, Any]] | None = None
    stop: Event = field(default_factory=Event)

    @property
    def config(self) -> "RunnableConfig":
        """Where the graph finds the thread."""
        return {"configurable": {"thread_id": self.thread}}
