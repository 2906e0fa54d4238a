"""Databases whose n-th statement fails once: each statement of an operation, with each class of error.

`faults` counts the statements of the thread that armed it, on every connection made here, and raises an error
instead of one of them (or right after it, like a connection that is cut before the answer arrives).
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg
import sqlalchemy as sa
from langchain_core.messages import AIMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.prebuilt import ToolRuntime
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from wakeloop import create_todo_agent
from wakeloop.cli.stored_state import CompactSaver
from wakeloop.sessions.communication_tools import SessionTools, SubagentLimits
from wakeloop.sessions.dbos import DbosHost, SessionClient
from wakeloop.sessions.dbos import session_client as queues
from wakeloop.sessions.dbos.database import is_postgres, load_sqlite
from wakeloop.sessions.host import derive_id
from wakeloop.testing import ScriptedModel
from wakeloop.thread.patient_saver import PatientSaver
from wakeloop.thread.strict_saver import strict_saver

SQLITE_NAMES = ("BUSY", "LOCKED", "FULL", "IOERR", "IOERR_WRITE", "CANTOPEN", "READONLY")
POSTGRES_STATES = ("53100", "53200", "53300", "25006", "57P01", "57P02", "57P03", "08006", "40001", "40P01")
CUT, CUT_AFTER = "cut before", "cut after"  # before or after the statement took effect
CLASSES = {"sqlite": SQLITE_NAMES, "postgres": (*POSTGRES_STATES, CUT, CUT_AFTER)}


@dataclass
class Faults:
    """The faults that one thread's statements meet."""

    thread: int = 0
    at: int | None = None
    kind: str = ""
    statements: list[str] = field(default_factory=list)

    @contextmanager
    def armed(self, at: int | None = None, kind: str = "") -> Iterator[list[str]]:
        """Count this thread's statements, and let statement number `at` fail."""
        self.thread, self.at, self.kind, self.statements = threading.get_ident(), at, kind, []
        try:
            yield self.statements
        finally:
            self.thread = 0

    def meet(self, statement: Any, connection: Any, run: Callable[[], Any]) -> Any:
        """Run a statement, unless it is its turn to fail."""
        words = " ".join(str(statement).split())
        # a pool checks a connection with an empty statement
        if threading.get_ident() != self.thread or not words:
            return run()
        self.statements.append(words)
        if len(self.statements) - 1 != self.at:
            return run()
        if self.kind == CUT_AFTER:
            run()
        raise self.make_error(connection)

    def make_error(self, connection: Any) -> Exception:
        """Create the error as the driver does, with words that nobody should see."""
        words = "in INSERT INTO secret_table"
        if self.kind in (CUT, CUT_AFTER):
            connection.close()
            return psycopg.OperationalError(words)
        if self.kind in POSTGRES_STATES:
            if self.kind.startswith(("57", "08")):
                connection.close()
            return psycopg.errors.lookup(self.kind)(words)
        module = next(one for one in (load_sqlite(), sqlite3) if isinstance(connection, one.Connection))
        error: Exception = module.OperationalError(words)
        error.sqlite_errorcode = getattr(sqlite3, f"SQLITE_{self.kind}")  # type: ignore[attr-defined]
        return error


faults = Faults()


def failing_sqlite(module: Any) -> Any:
    """Return the connection class of a SQLite module, with faults."""

    class FailingCursor(module.Cursor):  # type: ignore[misc]
        def execute(self, statement: Any, *given: Any) -> Any:
            run = super().execute
            return faults.meet(statement, self.connection, lambda: run(statement, *given))

        def executemany(self, statement: Any, *given: Any) -> Any:
            run = super().executemany
            return faults.meet(statement, self.connection, lambda: run(statement, *given))

    class FailingConnection(module.Connection):  # type: ignore[misc]
        def cursor(self, *_: Any) -> Any:
            return super().cursor(FailingCursor)

        def commit(self) -> None:
            if self.in_transaction:
                faults.meet("COMMIT", self, super().commit)

    return FailingConnection


class FailingCursor(psycopg.Cursor[Any]):
    def execute(self, query: Any, *given: Any, **more: Any) -> Any:
        run = super().execute
        return faults.meet(query, self.connection, lambda: run(query, *given, **more))

    def executemany(self, query: Any, *given: Any, **more: Any) -> Any:
        run = super().executemany
        return faults.meet(query, self.connection, lambda: run(query, *given, **more))


class FailingPostgres(psycopg.Connection[Any]):
    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.cursor_factory = FailingCursor

    def commit(self) -> None:
        faults.meet("COMMIT", self, super().commit)


@contextmanager
def failing_engines() -> Iterator[None]:
    """Let the engines of session clients open connections with faults."""
    plain = queues.open_engine

    def opened(url: str) -> sa.Engine:
        engine = plain(url)
        kind = FailingPostgres.connect
        if not is_postgres(url):
            failing = failing_sqlite(load_sqlite())

            def kind(*given: Any, **more: Any) -> Any:  # type: ignore[misc]
                return load_sqlite().connect(*given, **more, factory=failing)

        sa.event.listen(engine, "do_connect", lambda _d, _r, given, more: kind(*given, **more))
        return engine

    with patch.object(queues, "open_engine", opened):
        yield


# -- a world to act in -------------------------------------------------------------------------------------


@dataclass
class World:
    """A saver, a client of sessions and its mailbox, all with faults."""

    saver: PatientSaver
    client: SessionClient

    @property
    def box(self) -> Any:
        """Return the mailbox."""
        return self.client.mailbox

    def queued_runs(self, thread: str) -> int:
        """Return how many runs are queued for a thread."""
        with self.box.engine.connect() as c:
            schema = "" if self.box.engine.dialect.name == "sqlite" else "wakeloop."
            query = f"SELECT count(*) FROM {schema}workflow_status WHERE workflow_uuid LIKE :name"
            return int(c.execute(sa.text(query), {"name": f"%@{derive_id(thread)}"}).scalar() or 0)


@contextmanager
def open_world(kind: str, url: str, folder: Path) -> Iterator[World]:
    """Open a world on a database whose tables already exist."""
    with ExitStack() as stack:
        saver: Any
        if kind == "sqlite":
            factory = failing_sqlite(sqlite3)
            connection = sqlite3.connect(folder / "threads.db", check_same_thread=False, factory=factory)
            stack.enter_context(closing(connection))
            saver = strict_saver(CompactSaver, connection)
        else:
            options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
            more: Any = {"min_size": 1, "check": ConnectionPool.check_connection}
            pool: Any = ConnectionPool(
                url, kwargs=options, connection_class=FailingPostgres, open=True, **more
            )
            saver = strict_saver(PostgresSaver, stack.enter_context(pool))
        saver.setup()
        with DbosHost(url, {}):  # creates the engine's tables
            pass
        agent = create_todo_agent(ScriptedModel([]), checkpointer=saver)
        stack.enter_context(failing_engines())
        client = stack.enter_context(closing(SessionClient(url, {"main": agent})))
        yield World(PatientSaver(saver), client)


Step = Callable[[World, str], Any]


@dataclass(frozen=True)
class Operation:
    """An operation on a thread: `act` meets the faults, `prepare` comes before, `read` shows its effect."""

    act: Step
    prepare: Step = lambda _w, _t: None
    read: Step | None = None

    def run(self, world: World, thread: str, at: int | None, kind: str) -> tuple[list[str], Any]:
        """Run it with a fault; return its statements and its result, which must not depend on the fault."""
        self.prepare(world, thread)
        with faults.armed(at, kind) as statements:
            found = self.act(world, thread)
        return statements, found if self.read is None else self.read(world, thread)


def event(thread: str, key: str = "e1", kind: str = "kick") -> Any:
    return {"kind": kind, "id": f"{thread}-{key}", "time": "2026-01-01T00:00:00+00:00", "text": "hello"}


def add(world: World, thread: str) -> None:
    world.box.add_event(thread, event(thread))


def waiting(world: World, thread: str) -> Any:
    stored = world.box.list_waiting(thread)
    rows = [(one.event["kind"], one.run is not None, one.error) for one in stored]
    return rows, [(n, error) for _, n, error in world.box.list_sessions(thread)]


def claim(world: World, thread: str) -> None:
    world.box.claim(f"run of {thread}", world.box.list_waiting(thread))


def take_events(world: World, thread: str) -> None:
    add(world, thread)
    claim(world, thread)


def schedule(world: World, thread: str) -> None:
    world.box.add_schedule(thread, thread, "0 9 * * *", "hello", datetime(2030, 1, 1, tzinfo=UTC))


def schedules(world: World, thread: str) -> Any:
    return [(row.cron, row.due) for row in world.box.find_schedules(thread=thread)]


def workers(world: World, thread: str) -> Any:
    return [draining for name, _, draining in world.box.list_workers() if name == thread]


MAILBOX: Mapping[str, Operation] = {
    "create_tables": Operation(lambda w, _: w.box.create_tables()),
    "add_event": Operation(add, read=waiting),
    "add_event, question": Operation(lambda w, t: w.box.add_event(t, event(t), ["q"]), read=waiting),
    "list_waiting": Operation(waiting, add),
    "has_event": Operation(lambda w, t: w.box.has_event(t, f"{t}-e1"), add),
    "list_unsettled": Operation(lambda w, t: len(w.box.list_unsettled(t)), add),
    "claim": Operation(claim, add, waiting),
    "settle_run": Operation(lambda w, t: w.box.settle_run(t, f"run of {t}"), take_events, waiting),
    "refuse": Operation(lambda w, t: w.box.refuse(t, f"{t}-e1", "no"), add, waiting),
    "requeue": Operation(lambda w, t: w.box.requeue(t, [f"{t}-e1"], "failed"), take_events, waiting),
    "note_error": Operation(lambda w, t: w.box.note_error(t, "failed"), add, waiting),
    "drop_question": Operation(lambda w, t: w.box.drop_question(t, [f"{t}-e1"]), add, waiting),
    "withdraw": Operation(
        lambda w, t: w.box.withdraw(f"{t}-e1", lambda one, _: (one, event(t, "answer", "human"))),
        add,
        waiting,
    ),
    "note_questions": Operation(lambda w, t: len(w.box.note_questions(t, ["q"])), add),
    "list_sessions": Operation(lambda w, t: [row[1:] for row in w.box.list_sessions(t)], add),
    "add_schedule": Operation(schedule, read=schedules),
    "find_schedules": Operation(schedules, schedule),
    "set_due": Operation(
        lambda w, t: w.box.set_due(t, datetime(2031, 1, 1, tzinfo=UTC)), schedule, schedules
    ),
    "remove_schedule": Operation(lambda w, t: w.box.remove_schedule(t), schedule, schedules),
    "register_worker": Operation(lambda w, t: w.box.register_worker(t), read=workers),
    "list_workers": Operation(workers, lambda w, t: w.box.register_worker(t)),
    "request_drain": Operation(
        lambda w, _: w.box.request_drain(), lambda w, t: w.box.register_worker(t), workers
    ),
    "unregister_worker": Operation(
        lambda w, t: w.box.unregister_worker(t), lambda w, t: w.box.register_worker(t), workers
    ),
}


def put(world: World, thread: str) -> Any:
    checkpoint: Any = {
        **empty_checkpoint(),
        "channel_values": {"messages": ["hello"]},
        "channel_versions": {"messages": "1"},
    }
    config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    return world.saver.put(config, checkpoint, {"source": "loop", "step": 0}, {"messages": "1"})


def put_writes(world: World, thread: str) -> None:
    config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    found = world.saver.get_tuple(config)
    assert found is not None
    world.saver.put_writes(found.config, [("messages", "a result"), ("todos", [1])], "task")


def stored(world: World, thread: str) -> Any:
    rows = [*world.saver.list({"configurable": {"thread_id": thread}})]
    return [(row.checkpoint["channel_values"], row.pending_writes) for row in rows]


def put_both(world: World, thread: str) -> None:
    put(world, thread)
    put_writes(world, thread)


SAVER: Mapping[str, Operation] = {
    "put": Operation(put, read=stored),
    "put_writes": Operation(put_writes, put, stored),
    "get_tuple": Operation(
        lambda w, t: len(w.saver.get_tuple({"configurable": {"thread_id": t}}).pending_writes),
        put_both,  # type: ignore[union-attr, arg-type]
    ),
    "list": Operation(stored, put_both),
}


def call_tool(name: str, **arguments: Any) -> Step:
    """Call a session tool as a thread's agent would."""

    def act(world: World, thread: str) -> str:
        calls: Any = [{"id": "call", "name": name, "args": {}}]
        owed = {"sender": f"main:{thread}", "id": "q", "chain": [f"main:{thread}"]}
        state = {"messages": [AIMessage("", id=thread, tool_calls=calls)]}
        if name == "reply_to_peer":
            state["owed_replies"] = [owed]  # type: ignore[list-item]
        runtime: Any = ToolRuntime(
            state=state,
            context=None,
            config={"configurable": {"thread_id": "main:sender"}},
            stream_writer=lambda _: None,
            tool_call_id="call",
            store=None,
        )
        tools: Any = SessionTools(lambda: world.client, None, SubagentLimits())  # type: ignore[arg-type, return-value]
        given = {key: value.format(t=f"main:{thread}") for key, value in arguments.items()}
        result = getattr(tools, name)(runtime=runtime, **given)
        return str(getattr(result, "update", result)).replace(thread, "THREAD")

    return act


def sent(world: World, thread: str) -> Any:
    """Return what has arrived, in any thread, and whether a run was queued for it."""
    rows = [row for row, *_ in world.box.list_sessions() if thread in row or row.startswith("main:sub")]
    found = [(len(world.box.list_waiting(row)), world.queued_runs(row)) for row in rows]
    for row in rows:
        for one in world.box.list_waiting(row):
            world.box.refuse(row, one.id, "read")
    return [one for one in found if one[0]]


def known(world: World, thread: str) -> None:
    world.client.send(f"main:{thread}", event(thread))


TOOLS: Mapping[str, Operation] = {
    "talk_to_agent": Operation(call_tool("talk_to_agent", agent="{t}", message="how?"), known, sent),
    "send_message": Operation(call_tool("send_message", agent="{t}", message="so"), known, sent),
    "reply_to_peer": Operation(call_tool("reply_to_peer", message="so"), read=sent),
    "spawn_subagent": Operation(call_tool("spawn_subagent", task="do it"), read=sent),
    "send": Operation(lambda w, t: w.client.send(f"main:{t}", event(t, kind="human")), read=sent),
    "schedule": Operation(
        lambda w, t: w.client.schedule(f"main:{t}", "0 9 * * *", "hello"),
        read=lambda w, t: len(w.client.schedules(f"main:{t}")),
    ),
    "status": Operation(lambda w, t: w.client.status(f"main:{t}").queued, known),
    "cancel": Operation(lambda w, t: w.client.cancel(f"{t}-e1"), known, sent),
}
GROUPS = {"saver": SAVER, "mailbox": MAILBOX, "session tools and client": TOOLS}


@dataclass(frozen=True)
class Case:
    """One statement of an operation, and the class of error that it met; `wrong` is "" if the result was
    right.
    """

    operation: str
    statement: str
    fault: str
    wrong: str


def try_all(
    world: World, kind: str, operations: Mapping[str, Operation], *, rotate: bool = False
) -> Iterator[Case]:
    """Let each statement of each operation meet each class of error; with `rotate`, one class each."""
    turns = cycle(CLASSES[kind])
    for name, operation in operations.items():
        slug = "".join(filter(str.isalnum, name))
        statements, expected = operation.run(world, f"{slug}-{kind}", None, "")
        for at, statement in enumerate(statements):
            for fault in (next(turns),) if rotate else CLASSES[kind]:
                wrong = ""
                try:
                    _, found = operation.run(world, f"{slug}-{at}-{fault.replace(' ', '')}", at, fault)
                    if found != expected:
                        wrong = f"{found} instead of {expected}"
                except Exception as error:  # noqa: BLE001 - a line of the table
                    wrong = f"{type(error).__name__}: {error}"
                yield Case(name, f"{at + 1} {statement[:60]}", fault, wrong)
