"""One thread in hand: spec, list, own values, runs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import Interrupt, StateSnapshot

from wakeloop.cli.agent import build_agent_graph, make_model
from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.execution import Graph, Outcome, View, execute, is_run_alive
from wakeloop.cli.external_tools import ExternalTools
from wakeloop.cli.failures import usage_error
from wakeloop.cli.locks import ThreadLock
from wakeloop.cli.offline_graph import build_offline_graph
from wakeloop.cli.run_job import graph_input
from wakeloop.cli.run_spec import RunSpec
from wakeloop.cli.spec_builder import LevelStack, build_spec, build_stack, settings_from_spec
from wakeloop.cli.store import DatabaseFile, Store, open_to_write
from wakeloop.cli.views import choose_view
from wakeloop.dialects import get_dialect
from wakeloop.loop.overrides import apply_overrides, check_overrides
from wakeloop.model.chat_models import bind_tools
from wakeloop.platform.computed_once import computed_once
from wakeloop.settings import AgentFileSettings, LoopSettings
from wakeloop.thread.edits import update_todos
from wakeloop.thread.end_run import end_run
from wakeloop.thread.thread_status import LAST_NODE, is_unfinished
from wakeloop.todos.items import Todo


@dataclass
class Conversation:
    """One thread, held by this process; `ask` puts each shell command to the person."""

    database: DatabaseFile
    store: Store
    thread: str
    spec: AgentSpec
    request: str = ""
    ask: bool = True
    external: ExternalTools = field(default_factory=ExternalTools)
    held_thread: ExitStack = field(default_factory=ExitStack)
    hold_on_thread: ThreadLock = field(default_factory=partial(ThreadLock, None, ""))
    abandoned: bool = False

    @property
    def config(self) -> RunnableConfig:
        """Where the graph finds the thread."""
        return {"configurable": {"thread_id": self.thread}}

    @computed_once
    def graph(self) -> Graph:
        """The graph that is looked at and edited, never run."""
        return build_offline_graph(self.store.saver)

    @property
    def snapshot(self) -> StateSnapshot:
        """How the thread is stored."""
        return self.graph.get_state(self.config)

    # -- settings --------------------------------------------------------------------------------------

    @property
    def base(self) -> LoopSettings:
        """The settings beneath the thread's own."""
        return settings_from_spec(self.spec)

    @property
    def overrides(self) -> dict[str, Any]:
        """The thread's own values, as they were set."""
        return dict(self.snapshot.values.get("todo_settings") or {})

    @property
    def settings(self) -> LoopSettings:
        """The settings that the next activation has."""
        return apply_overrides(self.base, check_overrides(self.base, self.overrides))

    @property
    def is_overridden(self) -> bool:
        """Whether an agent file overrides all settings."""
        return isinstance(self.base, AgentFileSettings)

    def override(self, own: Mapping[str, Any]) -> None:
        """Write the thread's own values, the whole dict; the thread must have ended.

        Raises `ModelError` where they call for todo tools and the model cannot call any.
        """
        self.refuse_unfinished()
        base = self.base
        dialect = get_dialect(base.dialect).for_settings(base)
        if self.depends_on_auto_continue and dialect.is_active(
            apply_overrides(base, check_overrides(base, own))
        ):
            bind_tools(make_model(self.spec, Event()), dialect.tool_schemas(base))
        self.remember_spec()
        self.graph.update_state(self.config, {"todo_settings": dict(own)}, as_node=LAST_NODE)

    def reconfigure(self, given: Mapping[str, Any]) -> None:
        """Take another role or agent; what cannot be built changes nothing."""
        spec = build_spec(self.spec, given)
        self.external.stop = Event()  # the last run's may be set
        build_agent_graph(spec, self.external, ask=self.ask, stop=self.external.stop)
        self.spec = spec
        if self.snapshot.values:
            self.remember_spec()

    @property
    def depends_on_auto_continue(self) -> bool:
        """Whether the todo tools are there only while auto_continue is on."""
        return get_dialect(self.base.dialect).needs_auto_continue

    @property
    def stack(self) -> LevelStack:
        """The levels beneath the thread's own values."""
        return build_stack(self.spec, {})

    # -- the thread ------------------------------------------------------------------------------------

    def hold(self, thread: str) -> None:
        """Keep other processes from a thread, and let go of the one before."""
        if thread == self.hold_on_thread.thread:
            return
        with ExitStack() as taken:
            hand = taken.enter_context(self.store.hold(thread))
            self.held_thread.close()
            self.held_thread.push(taken.pop_all())
        self.hold_on_thread, self.thread = hand, thread

    def switch_to(self, thread: str) -> bool:
        """Go to another thread, with its own spec; a new one takes this one's. False for a new one."""
        self.hold(thread)
        known = self.store.find(thread)
        self.request = known.request if known else ""
        if known and known.spec:
            self.spec = known.spec
        return known is not None

    def remember_spec(self) -> None:
        """Note how the thread's agent is made."""
        self.store.remember(self.thread, self.spec, self.request)

    def refuse_unfinished(self) -> None:
        """Refuse what only an ended thread can take."""
        snapshot = self.snapshot
        if snapshot.interrupts:
            raise usage_error("The thread waits for your answer: give it, or .stop, and then try again.")
        if is_unfinished(snapshot):
            raise usage_error(
                "The last run has not finished: .resume goes on, .stop ends it; .clear todo ends it too."
            )

    def edit(self, changes: Mapping[str, Any]) -> list[Todo]:
        """Edit the list by hand, and return it."""
        self.refuse_unfinished()
        self.remember_spec()
        return update_todos(build_offline_graph(self.store.saver, self.spec), self.config, **changes)

    def stop(self) -> bool:
        """End a run that waits or was broken off; False where there is none."""
        return end_run(self.graph, self.config)

    # -- runs ------------------------------------------------------------------------------------------

    def run(self, message: str | None, ahead: Callable[[], str] = str) -> tuple[Outcome, View]:
        """Send a message, or the answer that the thread waits for; or go on without one.

        `ahead` tells what is typed meanwhile.
        """
        self.request = self.request or message or ""
        stop = self.external.stop = Event()
        job = RunSpec(
            self.database, self.thread, self.spec, self.request, message, resumes=True, ask=self.ask
        )
        graph = build_agent_graph(self.spec, self.external, ask=self.ask, stop=stop)
        self.remember_spec()
        with (
            open_to_write(self.database) as store,
            cut_off_abandoned_run(store),
            self.hold_on_thread.mark_running(),
        ):
            agent = graph.compile(checkpointer=store.saver, name="wakeloop")
            before = agent.get_state(self.config)
            view = choose_view(job, before)
            view.screen.typed = ahead
            outcome = execute(agent, graph_input(job, before), self.config, view, leave_open, stop)
        self.abandoned = self.abandoned or outcome.abandoned
        return outcome, view


def leave_open(interrupts: Sequence[Interrupt]) -> None:
    """Leave a question open: the next line answers it."""


# -- a run that is left ----------------------------------------------------------------------------------


@contextmanager
def cut_off_abandoned_run(store: Store) -> Iterator[None]:
    """Let a run that is left behind do nothing more: no write to its thread, no further request.

    It may be in the midst of a request or of a tool: its connection is closed, and its client sends nothing
    more, since it is told to stop.
    """
    try:
        yield
    finally:
        if is_run_alive():
            store.close()
