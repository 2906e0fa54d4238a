"""A second worker that prints what it is given to run. It ends when its input closes."""

from __future__ import annotations

import sys
from pathlib import Path

from wakeloop import create_todo_agent
from wakeloop.cli.sessions.postgres import open_postgres_saver
from wakeloop.sessions.dbos import DbosHost
from wakeloop.testing import ScriptedModel, says

url, log = sys.argv[1:]


def work(n: int) -> str:
    """Work."""
    with Path(log).open("a") as file:
        file.write(f"{n}\n")
    return f"{n} done elsewhere"


if __name__ == "__main__":
    with open_postgres_saver(url) as saver:
        agent = create_todo_agent(ScriptedModel([says("elsewhere")] * 9), [work], checkpointer=saver)
        with DbosHost(url, {"main": agent}, polling=0.05):
            print("up", flush=True)
            sys.stdin.read()
