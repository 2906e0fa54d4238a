"""The cost of importing and starting, each in another process."""

from __future__ import annotations

import os
import pty
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from parts.clock import ratio

CODE = {
    "import langgraph.graph": "import langgraph.graph",
    "import wakeloop": "import wakeloop",
    "from wakeloop import create_todo_agent": "from wakeloop import create_todo_agent",
    "langgraph.prebuilt.create_react_agent": "from langgraph.prebuilt import create_react_agent",
    "langchain.agents.create_agent": "from langchain.agents import create_agent",
    "deepagents.create_deep_agent": "from deepagents import create_deep_agent",
}
COUNTED = "import time\nstart = time.process_time()\n{}\nprint((time.process_time() - start) * 1000)"
HELP = "wakeloop --help"
COMMAND = str(Path(sys.executable).with_name("wakeloop"))
LISTED, BEGUN = "wakeloop threads", "wakeloop run, its first line"
THREADS = 5  # the threads to list
OFTEN = {"full": 9, "quick": 3, "tiny": 1}


def imported(code: str) -> float | None:
    """Return CPU ms of an import in a new interpreter; None if it is not installed."""
    command = [sys.executable, "-c", COUNTED.format(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return float(done.stdout) if done.returncode == 0 else None


def commanded(*args: str) -> float:
    """Return CPU ms of a command, the whole process."""
    with subprocess.Popen([COMMAND, *args], stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return (usage.ru_utime + usage.ru_stime) * 1000


def first_line(folder: Path) -> float:
    """Return CPU ms of `wakeloop run` until its first line is on a terminal; it is killed there."""
    args = [
        "run",
        "x",
        "--model",
        "m",
        "--base-url",
        "http://127.0.0.1:9/v1",
        "--db",
        str(folder / "none.db"),
    ]
    ours, theirs = pty.openpty()
    with subprocess.Popen([COMMAND, *args], stdout=subprocess.DEVNULL, stderr=theirs) as process:
        assert b"Starting m" in os.read(ours, 1000)
        process.kill()
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = -signal.SIGKILL
    os.close(ours)
    os.close(theirs)
    return (usage.ru_utime + usage.ru_stime) * 1000


def filled(folder: Path) -> Path:
    """Yield a database with the threads to list."""
    from wakeloop import create_todo_agent
    from wakeloop.cli.agent_spec import AgentSpec
    from wakeloop.cli.store import DatabaseFile, open_to_write
    from wakeloop.testing import ScriptedModel, calls, says

    with open_to_write(DatabaseFile(folder / "threads.db", named=True)) as store:
        for number in range(THREADS):
            model = ScriptedModel([calls(("todo_write", {"items": ["a"]})), *[says("no")] * 7])
            agent = create_todo_agent(model, checkpointer=store.saver)
            agent.invoke({"messages": [("user", "go")]}, {"configurable": {"thread_id": f"t-{number}"}})
            store.remember(f"t-{number}", AgentSpec(model="m"), "go")
    return folder / "threads.db"


def measure(size: str) -> list[dict[str, Any]]:
    """Take turns; the first turn fills the caches and is not counted."""
    with TemporaryDirectory() as database:
        return in_turns(size, Path(database))


def in_turns(size: str, folder: Path) -> list[dict[str, Any]]:
    """Run each start as often as the size says."""
    db = filled(folder)
    todo: dict[str, Callable[[], float | None]] = {
        **{name: lambda code=code: imported(code) for name, code in CODE.items()},
        HELP: lambda: commanded("--help"),
        LISTED: lambda: commanded("threads", "--db", str(db)),
        BEGUN: lambda: first_line(folder),
    }
    times: dict[str, list[float]] = {name: [] for name in todo}
    for turn in range(OFTEN[size] + 1):
        for name, start in list(todo.items()):
            taken = start()
            if taken is None:
                del todo[name]
            elif turn:
                times[name].append(taken)
    return [{"start": name, "ms": times[name]} for name in todo]


def tables(rows: list[dict[str, Any]]) -> str:
    """Return a row for each."""
    base = next(row["ms"] for row in rows if row["start"] == "import langgraph.graph")
    lines = ["| | CPU ms | of `import langgraph.graph` |", "|---|--:|--:|"]
    for row in rows:
        against = "" if row["start"].startswith("wakeloop ") else f"{ratio(row['ms'], base):.2f}"
        lines.append(f"| `{row['start']}` | {statistics.median(row['ms']):.0f} | {against} |")
    return "\n".join(lines)
