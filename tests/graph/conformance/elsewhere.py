"""A run in its own process: a job on stdin, its outcome on stdout."""

import json
import os
import signal
import sys
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from stage import CONFIG, injected, look, names_of

from wakeloop import create_todo_agent, preset, session_of
from wakeloop.testing import ScriptedModel, calls, wire_faults


def die(messages: list[Any]) -> str:
    """End this process as `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


def reply(told: Any) -> Any:
    """Convert a reply from its JSON form."""
    if told is None:
        return die
    return told if isinstance(told, str) else calls(*map(tuple, told))


def main() -> None:
    """Run the job."""
    job = json.load(sys.stdin)
    with SqliteSaver.from_conn_string(job["db"]) as saver:
        model = ScriptedModel([reply(told) for told in job["replies"]])
        settings = preset(job["preset"]).model_copy(update=job["change"])
        agent = create_todo_agent(model, [look], settings=settings, checkpointer=saver)
        found = agent.get_state(CONFIG).values
        given = job["given"]
        message = {"messages": [("user", given)]} if isinstance(given, str) else given
        events = list(agent.stream(message, CONFIG, stream_mode="custom", durability="sync"))
        model.assert_done()
        snapshot = agent.get_state(CONFIG)
        told = {
            "found": {"todos": list(found.get("todos", ())), "ledger": found.get("todo_ledger")},
            "asked": len(model.requests),
            "tools": names_of(model.bound[-1]) if model.requests else [],
            "todos": list(snapshot.values["todos"]),
            "goal": snapshot.values["todo_goal"],
            "ledger": snapshot.values["todo_ledger"],
            "session": session_of(snapshot),
            "results": [[m.status, m.text] for m in snapshot.values["messages"] if m.type == "tool"],
            "notices": [f"{e['cycle']}/{e['budget']}" for e in events if e["type"] == "wake"],
            "nags": [e["rounds"] for e in events if e["type"] == "nag"],
            "wakes": injected(snapshot.values["messages"], "wake"),
            "corrections": injected(snapshot.values["messages"], "guard"),
            "faults": wire_faults(model.requests),
        }
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
