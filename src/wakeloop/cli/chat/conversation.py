"""One chat thread: its spec, list, overrides and runs."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import StateGraph
from langgraph.types import StateSnapshot

from wakeloop.cli.agent import build_agent_graph, make_model
from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.execution import Outcome, View, choose_view, count_down, execute, is_run_alive
from wakeloop.cli.external_tools import ExternalTools
from wakeloop.cli.failures import usage_error
from wakeloop.cli.offline_graph import build_offline_graph
from wakeloop.cli.run_thread import graph_input
from wakeloop.cli.spec_builder import LevelStack, RunSpec, build_spec, build_stack, settings_from_spec
from wakeloop.cli.store import DatabaseFile, Store, ThreadLock, open_to_write
from wakeloop.cli.trusted_files import confirm_files
from wakeloop.dialects import get_dialect
from wakeloop.display.screen import Line
from wakeloop.loop.overrides import apply_overrides, check_overrides
from wakeloop.model.bindings import bind_tools
from wakeloop.platform.computed_once import computed_once
from wakeloop.settings import LoopSettings
from wakeloop.thread.edits import Graph, update_todos
from wakeloop.thread.outside import drop_question, end_run
from wakeloop.thread.steering import drop_waiting, list_waiting, steer
from wakeloop.thread.thread_status import LAST_NODE, is_unfinished
from wakeloop.todos.items import Todo


@dataclass
class Conversation:
    """A thread that this process has locked; with `ask`, the user approves each shell command."""

    database: DatabaseFile
    store: Store
    thread: str
    spec: AgentSpec
    request: str = ""
    ask: bool = True
    external: ExternalTools = field(default_factory=ExternalTools)
    held_thread: ExitStack = field(default_factory=ExitStack)
    hold_on_thread: ThreadLock = field(init=False)  # from `hold` on
    abandoned: bool = False
    view: View | None = None  # of the run under way
    wait: float = 0.0  # the longest time to wait for a limit

    @property
    def config(self) -> RunnableConfig:
        """The config with which the graph finds the thread."""
        return {"configurable": {"thread_id": self.thread}}

    @computed_once
    def graph(self) -> Graph:
        """The graph to read and edit the thread, never run."""
        return build_offline_graph(self.store.saver, store=self.store.graph_store)

    @property
    def snapshot(self) -> StateSnapshot:
        """The stored state of the thread."""
        return self.graph.get_state(self.config)

    @property
    def base(self) -> LoopSettings:
        """The settings without the thread's overrides."""
        return settings_from_spec(self.spec, person=True)

    @property
    def overrides(self) -> dict[str, Any]:
        """The settings that this thread overrides."""
        return dict(self.snapshot.values.get("todo_settings") or {})

    @property
    def settings(self) -> LoopSettings:
        """The settings of the next activation."""
        return apply_overrides(self.base, check_overrides(self.base, self.overrides))

    def override(self, own: Mapping[str, Any]) -> None:
        """Replace the thread's overrides; the thread must have ended.

        Raises `ModelSetupError` if they require todo tools and the model cannot call tools.
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
        """Switch role or agent; if the new agent cannot be built, nothing changes."""
        spec = confirm_files(build_spec(self.spec, given), self.spec.trusted, trust=False, configured=True)
        self.external.stop = Event()  # that of the last run may be set
        build_chat_graph(spec, self.external, ask=self.ask, stop=self.external.stop)
        self.spec = spec
        if self.snapshot.values:
            self.remember_spec()

    @property
    def depends_on_auto_continue(self) -> bool:
        """Whether the todo tools exist only while auto_continue is on."""
        return get_dialect(self.base.dialect).needs_auto_continue

    @property
    def stack(self) -> LevelStack:
        """The configuration levels below the thread's overrides."""
        return build_stack(self.spec, {})

    def hold(self, thread: str) -> None:
        """Lock a thread, then release the one before."""
        if thread == self.thread:
            return
        with ExitStack() as taken:
            hand = taken.enter_context(self.store.hold(thread))
            self.held_thread.close()
            self.held_thread.push(taken.pop_all())
        self.hold_on_thread, self.thread = hand, thread

    def switch_to(self, thread: str) -> bool:
        """Switch to a thread and its spec; return False for a new one, which keeps the current spec."""
        known, spec = self.store.find(thread), self.spec
        if known and known.spec:
            spec = confirm_files(known.spec, known.spec.trusted, trust=False)
        self.hold(thread)
        self.request, self.spec = known.request if known else "", spec
        return known is not None

    def remember_spec(self) -> None:
        """Store the spec of the thread's agent."""
        self.store.remember(self.thread, self.spec, self.request)

    def refuse_unfinished(self) -> None:
        """Raise `CommandError` unless the last run has ended."""
        if is_unfinished(self.snapshot):
            raise usage_error(
                "The last run has not finished. Type .resume to continue it, or .stop to end it."
            )

    def edit(self, changes: Mapping[str, Any]) -> list[Todo]:
        """Edit the list and return it."""
        self.refuse_unfinished()
        self.remember_spec()
        return update_todos(build_offline_graph(self.store.saver, self.spec), self.config, **changes)

    def stop(self) -> bool:
        """End a run that waits or was interrupted; return False if the thread has no such run."""
        if end_run(self.graph, self.config):
            return True
        return drop_question(self.graph, self.config)

    def steer(self, typed: str) -> bool:
        """Send a line to the run under way and show it; return False where none is."""
        view, store = self.view, self.store.graph_store
        if view is None or store is None:
            return False
        try:
            steer(store, self.thread, typed.strip())
        except sqlite3.Error:  # such as a file that stays locked: the line is kept for the next prompt
            return False
        view.say(Line("note", f"sent: {typed.strip()}"))
        return True

    def discard_words(self) -> bool:
        """Discard what was sent to a run and not read; return whether there was any."""
        store = self.store.graph_store
        waiting = list_waiting(store, self.thread, self.snapshot.values) if store is not None else []
        if store is not None:
            drop_waiting(store, self.thread, waiting)
        return bool(waiting)

    def run(self, message: str | None, ahead: Callable[[], str] = str) -> tuple[Outcome, View]:
        """Send a message or the answer to a question; None continues without one.

        `ahead` returns what the user has typed during the run.
        """
        self.request, self.view = self.request or message or "", None
        stop = self.external.stop = Event()
        run = RunSpec(
            self.database, self.thread, self.spec, self.request, message, resumes=True, ask=self.ask
        )
        graph = build_chat_graph(self.spec, self.external, ask=self.ask, stop=stop)
        self.remember_spec()
        with (
            open_to_write(self.database) as store,
            cut_off_abandoned_run(store),
            self.hold_on_thread.mark_running(),
        ):
            agent = graph.compile(**store.patient_storage(stop), name="wakeloop")
            before = agent.get_state(self.config)
            view = self.view = choose_view(run, before)
            view.screen.typed = ahead
            outcome = execute(
                agent,
                graph_input(run, before),
                self.config,
                view,
                lambda _: None,  # the next entry answers its question
                stop,
                partial(count_down, longest=self.wait),
            )
            self.view = None
        self.abandoned = self.abandoned or outcome.abandoned
        return outcome, view


def build_chat_graph(
    spec: AgentSpec, outside: ExternalTools, *, ask: bool, stop: Event
) -> StateGraph[Any, Any, Any, Any]:
    """Build the graph of a chat, where a person answers what the model asks."""
    return build_agent_graph(spec, outside, ask=ask, stop=stop, person=True, asks_user=True)


@contextmanager
def cut_off_abandoned_run(store: Store) -> Iterator[None]:
    """Keep an abandoned run from doing more: no write to its thread, no further request.

    It may still be in a request or a tool. Its connection is closed, and its client already has the signal
    to stop.
    """
    try:
        yield
    finally:
        if is_run_alive():
            store.close()
