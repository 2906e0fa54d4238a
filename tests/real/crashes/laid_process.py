"""An agent with the middleware, killed after a wake: `python laid_process.py PATH HOW go|on|anew`."""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langgraph.checkpoint.sqlite import SqliteSaver

from wakeloop import session_of
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.testing import ScriptedModel, calls, says, wire_faults

THREAD: Any = {"configurable": {"thread_id": "1"}}
GO: Any = {"messages": [("user", "go")]}
NEW: Any = {"messages": [("user", "and now?")]}
BEGUN = [calls(("todo_write", {"items": ["a"]})), says("stop"), calls(("look", {}))]
REST = [calls(("todo_update", {"id": 1, "status": "done"})), says("bye")]


def main(path: Path, how: Any, part: str) -> None:
    """Run one half. The first is killed, the second prints the thread's session."""

    def look() -> str:
        """Look."""
        with path.with_suffix(".log").open("a") as log:
            log.write("look\n")
        if part == "go":
            time.sleep(0.5)  # what is stored beside the run is stored by then
            os.kill(os.getpid(), signal.SIGKILL)
        return "seen"

    given, script = {"go": (GO, BEGUN), "on": (None, REST), "anew": (NEW, REST)}[part]
    if how == "exit" and part != "go":
        given, script = GO, [*BEGUN, *REST]
    model = ScriptedModel(list(script))
    with SqliteSaver.from_conn_string(str(path)) as saver:
        agent: Any = create_agent(
            model, [look], middleware=[WakeLoopMiddleware(settings="wakeloop")], checkpointer=saver
        )
        left = agent.get_state(THREAD).next
        agent.invoke(given, THREAD, durability=how)
        snapshot = agent.get_state(THREAD)
    model.assert_done()
    session: Any = session_of(snapshot)
    results = [m.text for m in snapshot.values["messages"] if m.type == "tool" and m.name == "look"]
    told = {"left": left, "reason": session["reason"], "wakes": session["wakes"], "results": results}
    told |= {"requests": session["spent"]["requests"], "faults": wire_faults(model.requests)}
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
