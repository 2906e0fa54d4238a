"""A worker on an empty database: reports that it is ready, starts on command, runs until its input closes."""

from __future__ import annotations

import sys
import warnings
from contextlib import ExitStack
from typing import Any

from langgraph.checkpoint.postgres import PostgresSaver

from wakeloop import create_todo_agent
from wakeloop.sessions.dbos import DbosHost
from wakeloop.sessions.postgres_locks import set_up_tables
from wakeloop.testing import ScriptedModel, says


def answer(_: Any) -> Any:
    return says("here")


def main(url: str) -> None:
    print("ready", flush=True)
    sys.stdin.readline()
    with ExitStack() as stack:
        saver = stack.enter_context(PostgresSaver.from_conn_string(url))
        set_up_tables(saver, url)
        agent = create_todo_agent(ScriptedModel([answer] * 100), checkpointer=saver)
        stack.enter_context(DbosHost(url, {"main": agent}, polling=0.05))
        print("up", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    warnings.simplefilter("error")
    main(sys.argv[1])
