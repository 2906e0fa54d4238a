"""Serve sessions until a signal or a drain."""

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

from wakeloop.cli.agent import build_agent_graph
from wakeloop.cli.agent_spec import AgentSpec, resolve_folder
from wakeloop.cli.execution import handle_signals
from wakeloop.cli.external_tools import ExternalTools, unused_mcp_notes
from wakeloop.cli.failures import SETTLED, CommandError
from wakeloop.cli.run_thread import AUTO_CONTINUE_NOTE
from wakeloop.cli.sessions.commands import format_status
from wakeloop.cli.sessions.storage import POLL_SECONDS, SessionStorage
from wakeloop.cli.spec_builder import build_spec
from wakeloop.cli.store import Store
from wakeloop.cli.trusted_files import confirm_files
from wakeloop.config.levels import config_folder, list_names, read_agent
from wakeloop.display.terminal_output import clean_line, write_text
from wakeloop.sessions.communication_tools import session_tools
from wakeloop.sessions.dbos import DbosHost
from wakeloop.sessions.host import DEFAULT_AGENT, GRACE

# options that apply to agent files that leave them out
SHARED_OPTIONS = ("model", "base_url", "root", "tools", "imports", "mcp")
DRAIN_SECONDS = 10.0  # for running commands and requests, before a drain cuts them off


def serve_sessions(
    storage: SessionStorage,
    given: Mapping[str, Any],
    demo: Path | None,
    delay: float,
    *,
    ask: bool,
    grace: float | None = None,
    trust: bool = False,
) -> int:
    """Run sessions until a signal or `wakeloop drain`; return the exit code."""
    stop, ended = threading.Event(), threading.Event()

    def set_stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
        if stop.is_set():
            os._exit(128 + number)  # a normal exit would wait for the runs
        stop.set()

    trusted = storage.read_trusted()
    specs = {
        name: confirm_files(spec, trusted.get(name), trust=trust, configured=True)
        for name, spec in build_specs(given, demo, delay).items()
    }
    host: list[DbosHost] = []  # the tools need the host, the host the agents, the agents the tools
    tools = [] if demo is not None else session_tools(lambda: host[0])
    with ExitStack() as stack:
        outside = stack.enter_context(ExternalTools(ended))
        graphs = {}
        for name, spec in specs.items():
            graphs[name] = build_agent_graph(spec, outside, ask=ask, stop=ended, more=tools)
        saver, store = stack.enter_context(storage.open_saver())
        agents = {name: graph.compile(checkpointer=saver, name=name) for name, graph in graphs.items()}
        hold = None if store is None else partial(lock_thread, store, specs)
        host.append(
            DbosHost(
                storage.url,
                agents,
                report=lambda status: print_line(format_status(status)),
                hold=hold,
                grace=grace or GRACE,
            )
        )
        for name, spec in specs.items():
            host[0].mailbox.note_trusted(name, spec.trusted)
        with handle_signals(set_stop), host[0] as running:  # a second signal ends the process
            print_greeting(specs)
            while not (stop.wait(POLL_SECONDS) or running.draining.is_set()):
                pass
            print_line("Draining: each run stops at its next step.")
            running.drain(DRAIN_SECONDS)
            ended.set()
        if running.running:  # requests without an answer: their threads would keep the process alive
            outside.close()
            print_line(f"Stopped; {len(running.running)} cut off in the middle of a step.")
            os._exit(SETTLED)
    print_line("Stopped.")
    return SETTLED


def print_greeting(specs: Mapping[str, AgentSpec]) -> None:
    """Print the served agents, and whatever the user might not expect."""
    for name, spec in specs.items():
        if spec.switched_on:
            print_line(f"{name}: {AUTO_CONTINUE_NOTE}")
    for line in unused_mcp_notes(specs[DEFAULT_AGENT]):
        print_line(line)
    print_line(
        f"Serving {', '.join(specs)}; each run is reported when it ends. "
        "Stop with Ctrl-C or wakeloop drain; nothing is lost."
    )


def build_specs(given: Mapping[str, Any], demo: Path | None, delay: float) -> dict[str, AgentSpec]:
    """Return the served agents by name: `main` from the options, and one for each agent file."""
    if demo is not None:
        root = resolve_folder(demo, "Name another one with --demo")
        return {DEFAULT_AGENT: build_spec(AgentSpec(root=root, demo=True, delay=delay), given)}
    specs = {DEFAULT_AGENT: build_spec(None, given)}
    for name in list_names(config_folder(), "agents"):
        own = read_agent(config_folder(), name).values
        shared = {key: given[key] for key in SHARED_OPTIONS if key in given and key not in own}
        specs[name] = build_spec(None, {**shared, "agent": name})
    return specs


@contextmanager
def lock_thread(store: Store, specs: Mapping[str, AgentSpec], thread: str) -> Iterator[None]:
    """Lock a thread while it runs; wait for another command that has it."""
    agent = thread.partition(":")[0]
    with ExitStack() as stack:
        while True:
            try:
                lock = stack.enter_context(store.hold(thread))
            except CommandError:
                time.sleep(POLL_SECONDS)
                continue
            stack.enter_context(lock.mark_running())
            break
        with store.saver.lock:  # other runs write on the same connection
            if store.find(thread) is None:
                store.remember(thread, specs.get(agent, specs[DEFAULT_AGENT]), "")
        yield


def print_line(text: str) -> None:
    """Print a line at once, since others may be following the output."""
    write_text(clean_line(text, 500), sys.stdout)
