"""One thread in hand: recipe, list, own values, runs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import Interrupt, StateSnapshot

from wakeloop.cli.agent import build_recipe_graph, make_model
from wakeloop.cli.failures import usage_error
from wakeloop.cli.locks import ThreadLock
from wakeloop.cli.outside import Outside
from wakeloop.cli.play import input_of
from wakeloop.cli.reader import reader
from wakeloop.cli.recipe import Recipe
from wakeloop.cli.recipe_builder import LevelStack, build_recipe, build_stack, settings_from_recipe
from wakeloop.cli.run import Graph, Outcome, View, at_work, execute
from wakeloop.cli.run_spec import RunSpec
from wakeloop.cli.store import Place, Store, writing
from wakeloop.cli.views import view_of
from wakeloop.dialects import dialect_named
from wakeloop.loop.overrides import apply_overrides, check_overrides
from wakeloop.model.chat_models import bind_tools
from wakeloop.platform.computed_once import computed_once
from wakeloop.settings import LoopSettings, WholeSettings
from wakeloop.thread.editing import update_todos
from wakeloop.thread.standing import LAST, unfinished
from wakeloop.thread.stopping import end_run
from wakeloop.todos.items import Todo


@dataclass
class Conversation:
    """One thread, held by this process; `ask` puts each shell command to the person."""

    place: Place
    store: Store
    thread: str
    recipe: Recipe
    request: str = ""
    ask: bool = True
    outside: Outside = field(default_factory=Outside)
    held: ExitStack = field(default_factory=ExitStack)
    hand: ThreadLock = field(default_factory=partial(ThreadLock, None, ""))
    left: bool = False

    @property
    def config(self) -> RunnableConfig:
        """Where the graph finds the thread."""
        return {"configurable": {"thread_id": self.thread}}

    @computed_once
    def graph(self) -> Graph:
        """The graph that is looked at and edited, never run."""
        return reader(self.store.saver)

    @property
    def snapshot(self) -> StateSnapshot:
        """How the thread is stored."""
        return self.graph.get_state(self.config)

    # -- settings --------------------------------------------------------------------------------------

    @property
    def base(self) -> LoopSettings:
        """The settings beneath the thread's own."""
        return settings_from_recipe(self.recipe)

    @property
    def own(self) -> dict[str, Any]:
        """The thread's own values, as they were set."""
        return dict(self.snapshot.values.get("todo_settings") or {})

    @property
    def settings(self) -> LoopSettings:
        """The settings that the next activation has."""
        return apply_overrides(self.base, check_overrides(self.base, self.own))

    @property
    def whole(self) -> bool:
        """Whether an agent file overrides all settings."""
        return isinstance(self.base, WholeSettings)

    def override(self, own: Mapping[str, Any]) -> None:
        """Write the thread's own values, the whole dict; the thread must have ended.

        Raises `ModelError` where they call for todo tools and the model cannot call any.
        """
        self.refuse_unfinished()
        base = self.base
        dialect = dialect_named(base.dialect).suited(base)
        if self.depends_on_auto_continue and dialect.active(
            apply_overrides(base, check_overrides(base, own))
        ):
            bind_tools(make_model(self.recipe, Event()), dialect.schemas(base))
        self.keep()
        self.graph.update_state(self.config, {"todo_settings": dict(own)}, as_node=LAST)

    def reconfigure(self, given: Mapping[str, Any]) -> None:
        """Take another role or agent; what cannot be built changes nothing."""
        recipe = build_recipe(self.recipe, given)
        self.outside.stop = Event()  # the last run's may be set
        build_recipe_graph(recipe, self.outside, ask=self.ask, stop=self.outside.stop)
        self.recipe = recipe
        if self.snapshot.values:
            self.keep()

    @property
    def depends_on_auto_continue(self) -> bool:
        """Whether the todo tools are there only while auto_continue is on."""
        return dialect_named(self.base.dialect).needs_auto_continue

    @property
    def stack(self) -> LevelStack:
        """The levels beneath the thread's own values."""
        return build_stack(self.recipe, {})

    # -- the thread ------------------------------------------------------------------------------------

    def hold(self, thread: str) -> None:
        """Keep other processes from a thread, and let go of the one before."""
        if thread == self.hand.thread:
            return
        with ExitStack() as taken:
            hand = taken.enter_context(self.store.held(thread))
            self.held.close()
            self.held.push(taken.pop_all())
        self.hand, self.thread = hand, thread

    def visit(self, thread: str) -> bool:
        """Go to another thread, with its own recipe; a new one takes this one's. False for a new one."""
        self.hold(thread)
        known = self.store.find(thread)
        self.request = known.request if known else ""
        if known and known.recipe:
            self.recipe = known.recipe
        return known is not None

    def keep(self) -> None:
        """Note how the thread's agent is made."""
        self.store.remember(self.thread, self.recipe, self.request)

    def refuse_unfinished(self) -> None:
        """Refuse what only an ended thread can take."""
        snapshot = self.snapshot
        if snapshot.interrupts:
            raise usage_error("The thread waits for your answer: give it, or .stop, and then try again.")
        if unfinished(snapshot):
            raise usage_error(
                "The last run has not finished: .resume goes on, .stop ends it; .clear todo ends it too."
            )

    def edit(self, changes: Mapping[str, Any]) -> list[Todo]:
        """Edit the list by hand, and return it."""
        self.refuse_unfinished()
        self.keep()
        return update_todos(reader(self.store.saver, self.recipe), self.config, **changes)

    def stop(self) -> bool:
        """End a run that waits or was broken off; False where there is none."""
        return end_run(self.graph, self.config)

    # -- runs ------------------------------------------------------------------------------------------

    def run(self, message: str | None, ahead: Callable[[], str] = str) -> tuple[Outcome, View]:
        """Send a message, or the answer that the thread waits for; or go on without one.

        `ahead` tells what is typed meanwhile.
        """
        self.request = self.request or message or ""
        stop = self.outside.stop = Event()
        job = RunSpec(self.place, self.thread, self.recipe, self.request, message, resumes=True, ask=self.ask)
        graph = build_recipe_graph(self.recipe, self.outside, ask=self.ask, stop=stop)
        self.keep()
        with writing(self.place) as store, alone(store), self.hand.mark_running():
            agent = graph.compile(checkpointer=store.saver, name="wakeloop")
            before = agent.get_state(self.config)
            view = view_of(job, before)
            view.screen.ahead = ahead
            outcome = execute(agent, input_of(job, before), self.config, view, nobody, stop)
        self.left = self.left or outcome.abandoned
        return outcome, view


def nobody(interrupts: Sequence[Interrupt]) -> None:
    """Leave a question open: the next line answers it."""


# -- a run that is left ----------------------------------------------------------------------------------


@contextmanager
def alone(store: Store) -> Iterator[None]:
    """Let a run that is left behind do nothing more: no write to its thread, no further request.

    It may be in the midst of a request or of a tool: its connection is closed, and its client sends nothing
    more, since it is told to stop.
    """
    try:
        yield
    finally:
        if at_work():
            store.close()
