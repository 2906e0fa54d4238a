"""The Postgres of the tests: one database per test, and no trace of the server afterwards."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

TABLES = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"


@pytest.mark.parametrize("again", [False, True])
def test_every_test_has_an_empty_database(postgres: str, again: bool) -> None:
    with psycopg.connect(postgres) as connection:
        assert connection.execute(TABLES).fetchone() == (0,)
    with PostgresSaver.from_conn_string(postgres) as saver:
        saver.setup()
    with psycopg.connect(postgres) as connection:
        assert connection.execute(TABLES).fetchone() == (4,)


async def test_it_is_reached_without_blocking(postgres: str) -> None:
    async with AsyncPostgresSaver.from_conn_string(postgres) as saver:
        await saver.setup()
        assert [item async for item in saver.alist(None)] == []


def alive(pid: int) -> bool:
    """Return whether a process exists, even as a zombie."""
    try:
        os.kill(pid, signal.SIG_DFL)
    except ProcessLookupError:
        return False
    return True


USER = """
import sys, time
import postgres
with postgres.running() as server, server.database() as url:
    print(server.folder, (server.folder / "data/postmaster.pid").read_text().split()[0], flush=True)
    time.sleep(600 if sys.argv[1] == "killed" else 0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("end", ["at ease", "killed"])
def test_the_server_ends_with_its_user(end: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", USER, end], cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True
    ) as user:
        assert user.stdout is not None
        folder, pid = user.stdout.readline().split()
        if end == "killed":
            user.kill()
    until = time.monotonic() + 30
    while (Path(folder).exists() or alive(int(pid))) and time.monotonic() < until:
        time.sleep(0.05)
    assert not Path(folder).exists()
    assert not alive(int(pid))
