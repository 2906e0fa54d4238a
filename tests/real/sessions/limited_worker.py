"""A worker whose model is a server: `python limited_worker.py DATABASE URL`; it runs until it is killed."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager
from typing import Any

from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver

from wakeloop import create_todo_agent
from wakeloop.cli.sessions.postgres import open_postgres_saver
from wakeloop.sessions.dbos import DbosHost
from wakeloop.tools import wait_for_work


def open_saver(database: str) -> AbstractContextManager[Any]:
    """Open the saver of the threads: in the same Postgres, or in a file next to that of the sessions."""
    if database.startswith("postgresql"):
        return open_postgres_saver(database)
    return SqliteSaver.from_conn_string(f"{database.removeprefix('sqlite:///')}.threads")


def main(database: str, url: str) -> None:
    model = ChatOpenAI(model="small", base_url=url, api_key="none", max_retries=0)  # type: ignore[arg-type]
    with open_saver(database) as saver:
        agent = create_todo_agent(model, [wait_for_work], checkpointer=saver)
        with DbosHost(database, {"main": agent}, polling=0.05):
            print("up", flush=True)
            time.sleep(600)


if __name__ == "__main__":
    main(*sys.argv[1:])
