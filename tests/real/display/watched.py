"""A small notebook whose agent continues when a file appears."""

from __future__ import annotations

from pathlib import Path

CELLS = [
    """
import sys
import time
from pathlib import Path

from langgraph.checkpoint.memory import InMemorySaver

from wakeloop import create_todo_agent, preset
from wakeloop.display import TodoPanel, show
from wakeloop.testing import ScriptedModel, calls, says

HEARD = []


def alone(event, given):
    if event in ("socket.connect", "socket.getaddrinfo", "subprocess.Popen"):
        HEARD.append((event, *given))
        raise OSError("these cells work alone")


def read(name: str) -> str:
    \"\"\"Read what is there, as soon as it is there.\"\"\"
    while not Path(f"{name}.txt").exists():
        time.sleep(0.01)
    return Path(f"{name}.txt").read_text()


def done(number: int):
    return calls(("todo_update", {"id": number, "status": "done"}))


model = ScriptedModel([
    calls(("todo_write", {"items": ["Read the letters", "Count the ships"]})),
    calls(("read", {"name": "letters"})),
    done(1),
    says("The letters name four ships."),
    calls(("read", {"name": "ships"})),
    done(2),
    says("Four ships, and one of them twice."),
    calls(("read", {"name": "address"})),
    done(3),
    says("Ada knows."),
    calls(("todo_write", {"items": ["Rest"]})),
    calls(("read", {"name": "bed"})),
    done(4),
    says("Good night."),
])
agent = create_todo_agent(model, tools=[read], checkpointer=InMemorySaver())
thread = {"configurable": {"thread_id": "harbour"}}
sys.addaudithook(alone)
""",
    """
panel = TodoPanel(agent, thread, title="The harbour in 1902")
panel.run({"messages": [("user", "What do the letters say?")]})
""",
    'panel.edit(add="Tell Ada")',
    'await panel.arun({"messages": [("user", "Go on.")]})',
    """
own = TodoPanel(agent, thread)
given = {"messages": [("user", "And now rest.")]}
async for mode, data in agent.astream(given, thread, stream_mode=["custom", "updates"]):
    own.feed(mode, data)
""",
    "agent",
    'preset("wakeloop").model_copy(update={"nag_after": 2})',
    "show(panel.result)",
    "HEARD",
]
RUN, EDIT, ASYNC, OWN, AGENT, SETTINGS, SHOWN, ALONE = range(1, len(CELLS))


def written(file: Path) -> None:
    """Write the notebook, without outputs."""
    import nbformat

    cells = [nbformat.v4.new_code_cell(source.strip(), id=f"c{n}") for n, source in enumerate(CELLS)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), file)


def let_continue(folder: Path, name: str) -> None:
    """Let the agent read this."""
    (folder / f"{name}.txt").write_text(f"{name}, of 1902")
