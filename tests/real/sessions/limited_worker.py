"""A worker whose model is a server: `python limited_worker.py DATABASE URL`; it runs until it is killed."""

from __future__ import annotations

import sqlite3
import sys
import time

from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver

from wakeloop import create_todo_agent
from wakeloop.sessions.dbos import DbosHost


def main(database: str, url: str) -> None:
    connection = sqlite3.connect(f"{database}.threads", check_same_thread=False)
    model = ChatOpenAI(model="small", base_url=url, api_key="none", max_retries=0)  # type: ignore[arg-type]
    agent = create_todo_agent(model, checkpointer=SqliteSaver(connection))
    with DbosHost(f"sqlite:///{database}", {"main": agent}, polling=0.05):
        print("up", flush=True)
        time.sleep(600)


if __name__ == "__main__":
    main(*sys.argv[1:])
