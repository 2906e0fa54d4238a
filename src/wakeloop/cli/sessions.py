"""Sessions by command: serve, send, cron, ps and drain."""

import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, cast

import psycopg
from langgraph.checkpoint.base import BaseCheckpointSaver
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.exc import DatabaseError

from wakeloop.cli.agent import graph_of
from wakeloop.cli.configured import configured
from wakeloop.cli.failures import FAILED, SETTLED, CommandError, database_words, usage
from wakeloop.cli.reader import reader
from wakeloop.cli.recipe import Recipe
from wakeloop.cli.report import as_json, columns, exit_code
from wakeloop.cli.run import handled
from wakeloop.cli.start import check_text, refuse_odd
from wakeloop.cli.store import Place, Store, exists, locked, made, writing
from wakeloop.config.levels import agent_level, config_folder, names
from wakeloop.display.clean import clean, one_line
from wakeloop.display.words import question
from wakeloop.errors import SessionError
from wakeloop.sessions.dbos.host import DbosHost, Post, on_postgres
from wakeloop.sessions.host import DEFAULT_AGENT, SessionStatus
from wakeloop.sessions.locks import set_up
from wakeloop.sessions.tools import session_tools
from wakeloop.thread.standing import answer_of, session_of

HEAD = ("SESSION", "STATE", "REASON", "OPEN", "WAKES", "WAITS FOR", "QUEUED", "ERROR")
LOOK = 0.2  # seconds between two looks at a session that is waited for
GRACE = 10.0  # seconds that a drain leaves to commands and requests under way, before it cuts them short


@dataclass(frozen=True)
class Where:
    """Where threads and events are kept: one Postgres database, or two SQLite files side by side."""

    db: str | None

    def __post_init__(self) -> None:
        if "://" in (self.db or "") and not (self.on_postgres and readable(str(self.db))):
            raise usage(
                "The address of the database cannot be read: write the name of a file or a postgresql://…, "
                "with %40 and %2F for @ and / in a password."
            )

    @property
    def on_postgres(self) -> bool:
        """Whether it is a server's address."""
        return on_postgres(self.db or "")

    @property
    def place(self) -> Place:
        """The SQLite file of the threads."""
        return Place.of(None if self.db is None else Path(self.db))

    @property
    def url(self) -> str:
        """Where the events are."""
        return str(self.db) if self.on_postgres else f"sqlite:///{self.beside('sessions')}"

    def beside(self, what: str) -> Path:
        """A file beside that of the threads: two copies of SQLite must not meet in one file."""
        path = self.place.path.resolve()
        return path.with_name(f"{path.name}-{what}")

    @contextmanager
    def saver(self) -> Iterator[tuple[BaseCheckpointSaver[Any], Store | None]]:
        """Open the checkpoints to write."""
        if self.on_postgres:
            with postgres_saver(self.url) as saver:
                yield saver, None
            return
        with writing(self.place) as store:
            events = Place(self.beside("sessions"), named=True)
            if not exists(events):
                made(events)
            assert store.saver is not None  # noqa: S101 - it is open
            try:
                yield store.saver, store
            except DatabaseError as error:
                raise CommandError(
                    f"The database {str(events.path)!r} cannot be used: {database_words(error)}."
                ) from error

    @contextmanager
    def post(self) -> Iterator[Post]:
        """Open the way in for events; agents are known by name, and can be read but not run."""
        with self.saver() as (saver, _):
            graph = reader(saver)
            post = Post(self.url, dict.fromkeys((DEFAULT_AGENT, *names(config_folder(), "agents")), graph))
            try:
                yield post
            finally:
                post.close()


def readable(url: str) -> bool:
    """Whether an address means one thing only; else a part of a password might be taken for a host."""
    try:
        conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return False
    return url.partition("?")[0].count("@") <= 1


@contextmanager
def postgres_saver(url: str) -> Iterator[BaseCheckpointSaver[Any]]:
    """Checkpoints on Postgres, with a connection for each turn under way."""
    from langgraph.checkpoint.postgres import PostgresSaver
    from psycopg.rows import dict_row
    from psycopg_pool import ConnectionPool, PoolTimeout

    options: dict[str, Any] = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    try:
        # it says why not; the pool would only say that it waited
        psycopg.connect(url, connect_timeout=10).close()
        with ConnectionPool(url, min_size=1, max_size=20, kwargs=options, timeout=10, open=False) as pool:
            pool.open(wait=True, timeout=10)
            saver = PostgresSaver(cast("Any", pool))
            set_up(saver, url)
            yield saver
    except (psycopg.OperationalError, PoolTimeout) as error:
        raise CommandError(f"The database cannot be reached: {database_words(error)}.") from error


# -- serve -----------------------------------------------------------------------------------------------


def serve(where: Where, given: Mapping[str, Any], demo: Path | None, delay: float, *, ask: bool) -> int:
    """Run sessions until a signal or `wakeloop drain`; returns the exit code."""
    stop, ended = threading.Event(), threading.Event()
    recipes = recipes_of(given, demo, delay)
    host: list[DbosHost] = []
    tools = [] if demo is not None else session_tools(lambda: host[0])
    graphs = {name: graph_of(recipe, ask=ask, stop=ended, more=tools) for name, recipe in recipes.items()}
    with ExitStack() as stack:
        saver, store = stack.enter_context(where.saver())
        if store is not None:
            stack.enter_context(alone(where))
        agents = {name: graph.compile(checkpointer=saver, name=name) for name, graph in graphs.items()}
        hold = None if store is None else partial(held, store, recipes)
        host.append(DbosHost(where.url, agents, report=told, hold=hold))
        with signals(stop), host[0] as running:
            say(f"Serving {', '.join(agents)}; Ctrl-C or wakeloop drain ends it, and nothing is lost.")
            while not (stop.wait(LOOK) or running.draining.is_set()):
                pass
            say("Draining: each turn stops at its next step.")
            running.drain(GRACE)
            ended.set()
        if running.running:  # requests that nobody answers; what they wait in would keep the process
            say(f"Stopped, with {len(running.running)} cut off in the middle of a step.")
            os._exit(SETTLED)
    say("Stopped.")
    return SETTLED


def recipes_of(given: Mapping[str, Any], demo: Path | None, delay: float) -> dict[str, Recipe]:
    """The agents that are served: `main`, made of the options, and one for each agent file."""
    if demo is not None:
        return {DEFAULT_AGENT: configured(Recipe(root=str(demo.resolve()), demo=True, delay=delay), given)}
    recipes = {DEFAULT_AGENT: configured(None, given)}
    for name in names(config_folder(), "agents"):
        own = agent_level(config_folder(), name).values
        shared = {
            k: v for k, v in given.items() if k in ("model", "base_url", "root", "tools") and k not in own
        }
        recipes[name] = configured(None, {**shared, "agent": name})
    return recipes


@contextmanager
def alone(where: Where) -> Iterator[None]:
    """One server a SQLite database."""
    path = where.beside("serve")
    with open(path, "ab", opener=partial(os.open, mode=0o600)) as file:
        if not locked(file, "serve"):
            raise CommandError(
                f"Another wakeloop serve has {str(where.place.path)!r}: stop it, or use Postgres for more."
            )
        yield


@contextmanager
def held(store: Store, recipes: Mapping[str, Recipe], thread: str) -> Iterator[None]:
    """Keep other commands off a thread while a turn runs; wait for one that has it."""
    agent = thread.partition(":")[0]
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(store.held(thread))
                break
            except CommandError:
                time.sleep(LOOK)
        assert store.saver is not None  # noqa: S101 - it is open
        with store.saver.lock:  # other turns write on the same connection
            if store.find(thread) is None:
                store.remember(thread, recipes.get(agent, recipes[DEFAULT_AGENT]), "")
        yield


@contextmanager
def signals(stop: threading.Event) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM drains, the second one ends the process."""

    def put(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
        if stop.is_set():
            os._exit(128 + number)  # as a kill: an exit would wait for the turns
        stop.set()

    with handled(put):
        yield


def told(status: SessionStatus) -> None:
    """Say how a turn has left a session."""
    say(line_of(status))


def say(text: str) -> None:
    """Write a line at once: a server's output is followed from elsewhere."""
    print(one_line(text, 500), flush=True)  # noqa: T201


# -- from another terminal -------------------------------------------------------------------------------


@contextmanager
def typed() -> Iterator[None]:
    """What the way in refuses was typed wrong."""
    try:
        yield
    except SessionError as refused:
        raise usage(str(refused)) from refused


def send(
    where: Where, thread: str, text: str, kind: str, key: str | None, *, wait: bool, json: bool
) -> tuple[list[str], int]:
    """Store an event for a session, and `wait` until its turn has ended; return lines and exit code."""
    refuse_odd(thread)
    if text or kind != "kick":
        check_text(text, "The text is empty: say what is to be sent.")
    with where.post() as post:
        with typed():
            key = post.send(thread, {"kind": kind, "text": text, **({"id": key} if key else {})})
        if not wait:
            line = as_json({"thread": thread, "event": key}) if json else f"Sent to {one_line(thread)}."
            return [line], SETTLED
        if not post.mailbox.workers():
            print("Waiting for a wakeloop serve: none is up.", file=sys.stderr, flush=True)  # noqa: T201
        graph = next(iter(post.agents.values()))
        while True:
            left = {letter.id for letter in post.mailbox.waiting(thread)}
            status, snapshot = post.status(thread), graph.get_state({"configurable": {"thread_id": thread}})
            if key not in left and "running" not in (status.state, session_of(snapshot)["state"]):
                break  # neither in its turn nor in one that followed
            time.sleep(LOOK)
    asked = [line for one in snapshot.interrupts for line in question(one.value)]
    answer = answer_of(snapshot)
    code = FAILED if status.error else exit_code(session_of(snapshot))
    if json:
        return [as_json({**asdict(status), "answer": answer, "questions": asked})], code
    said = asked or ([clean(answer)] if answer else [])
    return [*said, *([] if code == SETTLED else [line_of(status)])], code


def line_of(status: SessionStatus) -> str:
    """How a session stands, in a line."""
    why = status.error or status.reason or "not begun"
    return one_line(
        f"{status.thread}: {status.state}, {why}; {status.open} open, {status.wakes}/{status.budget} wakes",
        500,
    )


def overview(where: Where, *, json: bool) -> Iterator[str]:
    """The sessions, a line each."""
    with where.post() as post:
        found = post.list()
    if json:
        yield as_json([asdict(status) for status in found])
        return
    if not found:
        yield "No sessions yet."
        return
    yield from columns([HEAD, *map(cells_of, found)])


def cells_of(status: SessionStatus) -> tuple[str, ...]:
    """One session's cells."""
    return (
        one_line(status.thread),
        status.state,
        one_line(status.reason or "-", 20),
        str(status.open),
        f"{status.wakes}/{status.budget}",
        status.on or "-",
        str(status.queued),
        one_line(status.error or "-", 60),
    )


def drain(where: Where, timeout: float) -> tuple[list[str], int]:
    """Ask all workers to come to rest and wait for them."""
    with where.post() as post:
        begun = post.mailbox.workers()
        post.mailbox.ask_drain()
        deadline = time.monotonic() + timeout
        while (left := post.mailbox.workers()) and time.monotonic() < deadline:
            time.sleep(LOOK)
    if not begun:
        return ["No worker is at work here."], SETTLED
    if left:
        return [
            f"{len(left)} of {len(begun)} workers are still at work, or died and were not missed yet."
        ], FAILED
    return [f"{len(begun)} drained. What was under way goes on at the next start."], SETTLED


# -- cron ------------------------------------------------------------------------------------------------


def cron(where: Where, action: str, words: Sequence[str], *, json: bool) -> Iterator[str]:
    """Add, list or remove what wakes sessions by the clock."""
    match action, words:
        case "add", [thread, line, text]:
            refuse_odd(thread)
            check_text(text, "The text is empty: say what the session is to read.")
            with where.post() as post:
                with typed():
                    key = post.schedule(thread, line, text)
                due = next(one.due for one in post.schedules(thread) if one.id == key)
            yield as_json({"schedule": key, "due": due}) if json else f"{key}: due {due}"
        case "list", []:
            with where.post() as post:
                found = post.schedules()
            if json:
                yield as_json([asdict(one) for one in found])
            elif not found:
                yield "Nothing is scheduled."
            else:
                rows = [(s.id, one_line(s.thread), s.cron, s.due or "-", one_line(s.text, 60)) for s in found]
                yield from columns([("SCHEDULE", "SESSION", "CRON", "DUE", "TEXT"), *rows])
        case "remove", [key]:
            with where.post() as post:
                if not post.mailbox.schedules(key=key) or not post.cancel(key):
                    raise usage(f"There is no schedule {key!r}: wakeloop cron list shows them.")
            yield f"Removed {key}."
        case _:
            raise usage(
                'Write: cron add THREAD "MIN HOUR DAY MONTH WEEKDAY" TEXT, cron list, or cron remove ID.'
            )
