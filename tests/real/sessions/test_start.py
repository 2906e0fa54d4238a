"""Workers that start at the same moment on an empty database."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from processes import start_python

from wakeloop import create_todo_agent
from wakeloop.sessions.dbos import SessionClient
from wakeloop.testing import ScriptedModel

pytestmark = pytest.mark.slow

WORKER = Path(__file__).with_name("first_worker.py")


@contextmanager
def begun(url: str) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    with start_python(WORKER, url, stdin=pipe, stdout=pipe, stderr=pipe) as worker:
        yield worker


def said(worker: subprocess.Popen[str]) -> str:
    assert worker.stdout is not None
    return worker.stdout.readline()


def test_four_first_workers_at_once_all_come_up(postgres: str) -> None:
    with ExitStack() as stack:
        workers = [stack.enter_context(begun(postgres)) for _ in range(4)]
        assert [said(worker) for worker in workers] == ["ready\n"] * 4
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        assert [said(worker) for worker in workers] == ["up\n"] * 4
        with PostgresSaver.from_conn_string(postgres) as saver:
            agent = create_todo_agent(ScriptedModel([]), checkpointer=saver)
            with closing(SessionClient(postgres, {"main": agent})) as client:
                assert len(client.mailbox.list_workers()) == 4
                for number in range(8):
                    client.send(f"main:{number}", {"kind": "human", "text": "who is there?"})
                assert client.wait(timeout=60)
                assert [(s.reason, s.error) for s in client.list()] == [("answered", None)] * 8
        with psycopg.connect(postgres) as db:
            [(versions, most)] = db.execute("SELECT count(*), max(v) FROM checkpoint_migrations").fetchall()
            assert versions == most + 1  # each once
        for worker in workers:
            _, complaints = worker.communicate()  # its input closes: it ends
            assert (worker.returncode, complaints) == (0, "")
