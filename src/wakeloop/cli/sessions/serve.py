"""Serves sessions until a signal or a drain."""

import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from wakeloop.cli.agent import graph_of
from wakeloop.cli.configured import configured
from wakeloop.cli.failures import SETTLED, CommandError
from wakeloop.cli.outside import Outside, unasked
from wakeloop.cli.play import SWITCHED_ON
from wakeloop.cli.recipe import Recipe, folder
from wakeloop.cli.run import handled
from wakeloop.cli.sessions.ps import line_of
from wakeloop.cli.sessions.where import LOOK, Where
from wakeloop.cli.store import Store
from wakeloop.config.levels import agent_level, config_folder, names
from wakeloop.display.clean import one_line
from wakeloop.display.width import tell
from wakeloop.sessions.communication_tools import session_tools
from wakeloop.sessions.dbos import DbosHost
from wakeloop.sessions.host import DEFAULT_AGENT, GRACE, SessionStatus

SHARED = ("model", "base_url", "root", "tools", "imports", "mcp")  # what an agent file takes from the options
LEFT = 10.0  # seconds that a drain leaves to commands and requests under way, before it cuts them short


def serve(
    where: Where,
    given: Mapping[str, Any],
    demo: Path | None,
    delay: float,
    *,
    ask: bool,
    grace: float | None = None,
) -> int:
    """Run sessions until a signal or `wakeloop drain`; returns the exit code."""
    stop, ended = threading.Event(), threading.Event()
    recipes = recipes_of(given, demo, delay)
    host: list[DbosHost] = []
    tools = [] if demo is not None else session_tools(lambda: host[0])
    with ExitStack() as stack:
        outside = stack.enter_context(Outside(ended))
        graphs = {
            name: graph_of(recipe, outside, ask=ask, stop=ended, more=tools)
            for name, recipe in recipes.items()
        }
        saver, store = stack.enter_context(where.saver())
        agents = {name: graph.compile(checkpointer=saver, name=name) for name, graph in graphs.items()}
        hold = None if store is None else partial(held, store, recipes)
        host.append(DbosHost(where.url, agents, report=told, hold=hold, grace=grace or GRACE))
        with signals(stop), host[0] as running:
            for name, recipe in recipes.items():
                if recipe.switched_on:
                    say(f"{name}: {SWITCHED_ON}")
            for line in unasked(recipes[DEFAULT_AGENT]):
                say(line)
            served = f"Serving {', '.join(agents)}; each run is told when it has ended."
            say(f"{served} Ctrl-C or wakeloop drain stops it, and nothing is lost.")
            while not (stop.wait(LOOK) or running.draining.is_set()):
                pass
            say("Draining: each run stops at its next step.")
            running.drain(LEFT)
            ended.set()
        if running.running:  # requests that nobody answers; what they wait in would keep the process
            outside.close()
            say(f"Stopped, with {len(running.running)} cut off in the middle of a step.")
            os._exit(SETTLED)
    say("Stopped.")
    return SETTLED


def recipes_of(given: Mapping[str, Any], demo: Path | None, delay: float) -> dict[str, Recipe]:
    """The agents that are served: `main`, made of the options, and one for each agent file."""
    if demo is not None:
        root = folder(demo, "name another with --demo")
        return {DEFAULT_AGENT: configured(Recipe(root=root, demo=True, delay=delay), given)}
    recipes = {DEFAULT_AGENT: configured(None, given)}
    for name in names(config_folder(), "agents"):
        own = agent_level(config_folder(), name).values
        shared = {k: v for k, v in given.items() if k in SHARED and k not in own}
        recipes[name] = configured(None, {**shared, "agent": name})
    return recipes


@contextmanager
def held(store: Store, recipes: Mapping[str, Recipe], thread: str) -> Iterator[None]:
    """Keep other commands off a thread while it runs; wait for one that has it."""
    agent = thread.partition(":")[0]
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(stack.enter_context(store.held(thread)).running())
                break
            except CommandError:
                time.sleep(LOOK)
        assert store.saver is not None  # noqa: S101 - it is open
        with store.saver.lock:  # other runs write on the same connection
            if store.find(thread) is None:
                store.remember(thread, recipes.get(agent, recipes[DEFAULT_AGENT]), "")
        yield


@contextmanager
def signals(stop: threading.Event) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM drains, the second one ends the process."""

    def put(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
        if stop.is_set():
            os._exit(128 + number)  # as a kill: an exit would wait for the runs
        stop.set()

    with handled(put):
        yield


def told(status: SessionStatus) -> None:
    """Say how a run has left a session."""
    say(line_of(status))


def say(text: str) -> None:
    """Write a line at once: a server's output is followed from elsewhere."""
    tell(one_line(text, 500), sys.stdout)
