"""Every command on databases whose rows were all replaced by rows that name code: none of it runs.

Each table of both databases has a row of each kind that a reader could mistake for code: in LangGraph's a
thread for each kind, in the engine's and in the package's own every column that holds a value.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
import sqlalchemy as sa
from dbos import DBOSClient, Serializer
from langchain_core.tools import tool
from langgraph.types import interrupt
from levels import Level
from processes import Shell, shell
from typer.testing import CliRunner
from waiting import until

from wakeloop import create_todo_agent
from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.commands.app import app
from wakeloop.cli.sessions.storage import SessionStorage
from wakeloop.sessions.dbos import DbosHost, SessionClient
from wakeloop.sessions.dbos.database import is_postgres, open_engine
from wakeloop.testing import ScriptedModel, calls, says

__all__ = ["shell"]
pytestmark = pytest.mark.timeout(300)

KINDS = ("pickle", "msgpack", "json")
VALUES = {"inputs", "output", "error", "message", "value", "context", "request"}  # of the engine's tables
OWN = {"event", "run", "error", "text", "cron", "due", "spec", "request", "since"}
WF = ("workflow_uuid", "destination_uuid")


def loose() -> dict[str, str]:
    """Return the environment of a process in which LangGraph's own default holds."""
    strict = {"LANGGRAPH_STRICT_MSGPACK": "false", "PYTHONUNBUFFERED": "1", "OPENAI_API_KEY": "sk-none"}
    return {**os.environ, **strict}


@tool
def ask() -> str:
    """Ask the person."""
    return str(interrupt("?"))


class Trap:
    """Runs `touch` in a folder where it is read as code, in each format."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def command(self, name: str) -> str:
        return f"touch {self.folder}/{name}"

    def pickled(self, name: str) -> bytes:
        return f"cos\nsystem\n(S'{self.command(name)}'\ntR.".encode()

    def row(self, kind: str, name: str) -> bytes:
        """Return a value of LangGraph's tables."""
        if kind == "pickle":
            return self.pickled(name)
        if kind == "json":
            both = [
                {"lc": 2, "type": "constructor", "id": ["os", "system"], "args": [self.command(name)]},
                {
                    "lc": 1,
                    "type": "constructor",
                    "id": ["os", "system"],
                    "kwargs": {"command": self.command(name)},
                },
            ]
            return str(both).replace("'", '"').encode()
        each = [
            ormsgpack.Ext(n, ormsgpack.packb(["os", "system", self.arguments(n, name), "run"]))
            for n in range(8)
        ]
        return ormsgpack.packb({"channel_values": {"todos": each}})

    def arguments(self, code: int, name: str) -> Any:
        command = self.command(name)
        return [command] if code == 1 else {"command": command} if code in (2, 4, 5) else command

    def value(self, name: str) -> str:
        """Return a value of the engine's tables."""
        return base64.b64encode(self.pickled(name)).decode()

    @property
    def sprung(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())


# -- a world with rows in every table -----------------------------------------------------------------------


@pytest.fixture(params=["sqlite", "postgres"])
def db(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database with a thread for each kind of row, each waiting for an answer, and a schedule."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("WAKELOOP_CONFIG", str(tmp_path / "config"))
    db = str(request.getfixturevalue("postgres") if request.param == "postgres" else tmp_path / "threads.db")
    where = SessionStorage(db)
    names = [thread_of(table, kind) for table in tables_of(db) for kind in KINDS]
    with where.open_saver() as (saver, store):
        model = ScriptedModel([calls(("ask", {}))] * len(names))
        agent = create_todo_agent(model, [ask], checkpointer=saver)
        with DbosHost(where.url, {"main": agent}, polling=0.05, concurrency=1) as host:
            for name in names:
                host.send(name, {"kind": "human", "id": f"to {name}", "text": "go"})
            until(lambda: all(status.on == "human" for status in host.list()))
            host.schedule(names[0], "0 0 29 2 *", "a leap day")
            host.send(names[0], {"kind": "cron", "id": "held", "text": "held"})
        for name in names if store is not None else ():
            store.remember(
                name, AgentSpec(model="openai:m", base_url="http://127.0.0.1:9/v1", tools=()), "go"
            )
    return db


def tables_of(db: str) -> tuple[str, ...]:
    return ("checkpoint_blobs", "checkpoint_writes") if is_postgres(db) else ("checkpoints", "writes")


def thread_of(table: str, kind: str) -> str:
    return f"{table}-{kind}"


def spoil_threads(db: str, trap: Trap, *kinds: str) -> None:
    """Replace the rows of LangGraph's tables: in each thread those of one table, by one kind."""
    engine = open_engine(db if is_postgres(db) else f"sqlite:///{db}")
    column = {
        "checkpoint_blobs": "blob",
        "checkpoint_writes": "blob",
        "checkpoints": "checkpoint",
        "writes": "value",
    }
    with closing_engine(engine), engine.begin() as c:
        for table in tables_of(db):
            for kind in kinds:
                name = thread_of(table, kind)
                query = f"UPDATE {table} SET type = :kind, {column[table]} = :row WHERE thread_id = :name"
                assert c.execute(
                    sa.text(query), {"kind": kind, "row": trap.row(kind, name), "name": name}
                ).rowcount


def spoil_engine(url: str, trap: Trap, *, schedules: bool = True) -> set[str]:
    """Put a pickle into every value of every table of the engine; return the tables.

    Its `schedules` are left out, because the package has none, and an unreadable one ends the engine's
    thread.
    """
    engine = open_engine(url)
    spoiled = set()
    with closing_engine(engine), engine.begin() as c:
        found = sa.MetaData()
        found.reflect(c, schema="wakeloop" if is_postgres(url) else None)
        status = next(table for table in found.tables.values() if table.name == "workflow_status")
        run = c.execute(sa.select(status.c.workflow_uuid)).scalars().first()
        for table in found.tables.values():
            held = [column.name for column in table.columns if column.name in VALUES]
            if not held or table.name.startswith("wakeloop_" if schedules else ("wakeloop_", "workflow_sch")):
                continue
            spoiled.add(table.name)
            evil = {name: trap.value(f"{table.name}.{name}") for name in held}
            if "serialization" in table.c:
                evil["serialization"] = "py_pickle"
            if not c.execute(sa.select(sa.func.count()).select_from(table)).scalar():
                c.execute(table.insert().values({**filling(table, run), **evil}))
            c.execute(table.update().values(evil))
        # ended runs should run once more
        c.execute(status.update().where(status.c.status == "SUCCESS").values(status="ENQUEUED"))
    return spoiled


def filling(table: sa.Table, run: Any) -> dict[str, Any]:
    """Return values for the columns that a row must have."""
    row: dict[str, Any] = {"schedule": "* * * * *", "workflow_name": "run", "status": "ACTIVE"}
    row = {name: value for name, value in row.items() if name in table.c}
    for column in table.columns:
        if column.name in WF:
            row[column.name] = run
        elif column.name not in row and not column.nullable and column.server_default is None:
            row[column.name] = "x" if isinstance(column.type, sa.Text | sa.String) else 0
    return row


def spoil_own(db: str, trap: Trap) -> None:
    """Put a pickle into every value of the package's own tables."""
    urls = {SessionStorage(db).url, db if is_postgres(db) else f"sqlite:///{db}"}
    for url in urls:
        engine = open_engine(url)
        with closing_engine(engine), engine.begin() as c:
            found = sa.MetaData()
            found.reflect(c)
            for table in found.tables.values():
                held = [one.name for one in table.columns if one.name in OWN and not one.primary_key]
                if table.name.startswith("wakeloop_") and held:
                    c.execute(
                        table.update().values({name: trap.value(f"{table.name}.{name}") for name in held})
                    )


def closing_engine(engine: sa.Engine) -> Any:
    class Closing:
        close = staticmethod(engine.dispose)

    return closing(Closing())


# -- every command ------------------------------------------------------------------------------------------


def commands(db: str, kinds: Sequence[str], share: int) -> Iterator[list[str]]:
    """Yield each command, on each thread; or on one thread of so many, in turn."""
    yield from (["ps"], ["ps", "--json"], ["cron", "list"], ["drain", "--timeout", "0"])
    yield ["cron", "add", "new", "0 0 29 2 *", "x"]
    for (number, table), (place, kind) in product(enumerate(tables_of(db)), enumerate(kinds)):
        each = list(over_a_thread(thread_of(table, kind)))[: 1 if is_postgres(db) else None]
        yield from (command for turn, command in enumerate(each) if (number + place + turn) % share == 0)
    if not is_postgres(db):
        yield from (["threads"], ["threads", "--all", "--json"], ["config"], ["graph"])


def over_a_thread(name: str) -> Iterator[list[str]]:
    model = ["--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1"]
    yield ["send", name, "yes"]
    yield ["show", name, "--history", "--json"]
    yield ["todo", name, "list"]
    yield ["todo", name, "add", "x"]
    yield ["resume", name, "yes"]
    yield ["resume", name]
    yield ["run", "more", "--thread", name, *model]
    yield ["chat", "--thread", name, *model]
    yield ["config", "--thread", name]


class Runner:
    """A process that runs the commands, in which LangGraph's default holds."""

    def __init__(self, db: str, trap: Trap, share: int) -> None:
        env = loose() | {"PYTHONPATH": os.pathsep.join(sys.path)}  # this file imports helpers
        self.share = share
        line, pipe = [sys.executable, __file__, db, str(trap.folder)], subprocess.PIPE
        self.process = subprocess.Popen(line, env=env, stdin=pipe, stdout=pipe, text=True)

    def run_all(self, *kinds: str) -> None:
        """Run each command, and check that all errors are in words."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps([self.share, *kinds]), file=self.process.stdin, flush=True)
        assert json.loads(self.process.stdout.readline()) == []


@pytest.fixture
def runner(db: str, trap: Trap) -> Iterator[Runner]:
    """In the full matrix each command meets each thread."""
    runner = Runner(db, trap, 1 if Level.whole() else 3)
    yield runner
    runner.process.communicate(timeout=60)  # its input closes: it ends


def one_by_one(db: str, folder: Path, share: int, *kinds: str) -> Iterator[str]:
    """Run each command in this process, and return what is wrong with it."""
    for command in commands(db, kinds, share):
        named = [] if command == ["graph"] else ["--db", db]
        done = CliRunner().invoke(app, [*command, *named], input="yes\n/exit\n")
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            yield f"{command}: {done.exception!r}"
        if sprung := list(folder.iterdir()):
            yield f"{command}: {sprung}"
            return


def serve_over_damaged_rows(shell: Shell, db: str, trap: Trap) -> None:
    """Serve in another process, and damage the engine's rows once more while it is up."""
    with shell.start("serve", "--db", db, "--demo", str(shell.folder)) as server:
        assert server.stdout is not None
        if server.stdout.readline().startswith("Serving"):  # it may refuse, in a sentence
            time.sleep(1)
            spoil_engine(SessionStorage(db).url, trap)
            time.sleep(2)
            server.send_signal(signal.SIGTERM)
        _, complaints = server.communicate(timeout=60)
    assert trap.sprung == [], complaints


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path / "trap")


@pytest.mark.slow
def test_no_command_runs_a_row(db: str, trap: Trap, runner: Runner, shell: Shell) -> None:
    spoil_threads(db, trap, "msgpack")
    runner.run_all()  # commands that read all threads meet no other fault before these
    spoil_threads(db, trap, *KINDS)
    spoiled = spoil_engine(SessionStorage(db).url, trap)
    assert spoiled >= {"workflow_status", "operation_outputs", "notifications", "workflow_events", "streams"}
    runner.run_all(*KINDS)
    serve_over_damaged_rows(shell, db, trap)
    spoil_engine(SessionStorage(db).url, trap)
    spoil_own(db, trap)
    runner.run_all(KINDS[0])
    serve_over_damaged_rows(shell, db, trap)


def test_the_traps_would_have_sprung(tmp_path: Path) -> None:
    trap = Trap(tmp_path / "trap")
    pickled = "import base64, pickle, sys; pickle.loads(base64.b64decode(sys.argv[1]))"
    packed = """
import sys
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
JsonPlusSerializer(allowed_msgpack_modules=True).loads_typed(("msgpack", bytes.fromhex(sys.argv[1])))
"""
    for code, row in ((pickled, trap.value("one")), (packed, trap.row("msgpack", "two").hex())):
        subprocess.run([sys.executable, "-c", code, row], check=True, capture_output=True)
    assert trap.sprung == ["one", "two"]


# -- pickles in the rows of the engine ----------------------------------------------------------------------


def test_engine_rows_that_are_pickles_are_dropped_and_their_runs_are_made(tmp_path: Path) -> None:
    """Waiting rows, a timer among them, are replaced by pickles."""
    url, trap = f"sqlite:///{tmp_path / 'sessions.db'}", Trap(tmp_path / "trap")
    with SessionStorage(str(tmp_path / "threads.db")).open_saver() as (saver, _):
        model = ScriptedModel([says("one"), says("two")])
        agent = create_todo_agent(model, checkpointer=saver)
        with DbosHost(url, {"main": agent}, polling=0.05) as host:
            host.send("main", {"kind": "human", "text": "go"})
            assert host.wait("main", timeout=60)
            key = host.schedule("main", "0 0 29 2 *", "a leap day")
        with closing(SessionClient(url, {"main": agent})) as post:
            post.send("main", {"kind": "human", "text": "while nobody is up"})
        spoil_engine(url, trap, schedules=False)
        with DbosHost(url, {"main": agent}, polling=0.05) as host:
            assert host.wait("main", timeout=60)
            assert host.status("main").reason == "answered"
            timers = host.client.list_workflows(status="DELAYED")
            assert [record.input["args"][0] for record in timers if record.input] == [key]
    assert trap.sprung == []
    model.assert_done()


def test_every_reader_of_the_engine_refuses_a_pickle(tmp_path: Path) -> None:
    """Even one that a row names although the engine is set to JSON: the engine would follow the row."""
    url, trap = f"sqlite:///{tmp_path / 'sessions.db'}", Trap(tmp_path / "trap")
    agent = create_todo_agent(ScriptedModel([]))
    with DbosHost(url, {"main": agent}, polling=0.05) as host:
        host.schedule("main", "0 0 29 2 *", "a leap day")
        spoil_engine(url, trap, schedules=False)
        [record] = host.client.list_workflows()
        assert record.input == trap.value("workflow_input.inputs")  # as it is stored
        assert isinstance(host.client, DBOSClient)
        pickles = [kind for kind in Serializer.__subclasses__() if kind.__name__ == "DefaultSerializer"]
        for kind in pickles:
            with pytest.raises(Exception, match="Refused to unpickle a DBOS row"):
                kind().deserialize(trap.value("x"))
    assert trap.sprung == []


if __name__ == "__main__":
    for line in sys.stdin:
        faults = list(one_by_one(sys.argv[1], Path(sys.argv[2]), *json.loads(line)))
        print(json.dumps(faults), flush=True)
