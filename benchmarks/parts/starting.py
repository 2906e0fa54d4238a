"""What importing and starting cost, in processes of their own."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path
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
OFTEN = {"full": 9, "quick": 3, "tiny": 1}


def imported(code: str) -> float | None:
    """CPU ms of an import in a new interpreter; None where it is not installed."""
    command = [sys.executable, "-c", COUNTED.format(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return float(done.stdout) if done.returncode == 0 else None


def helped() -> float | None:
    """CPU ms of `wakeloop --help`, the whole process."""
    command = [str(Path(sys.executable).with_name("wakeloop")), "--help"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return (usage.ru_utime + usage.ru_stime) * 1000


def measure(size: str) -> list[dict[str, Any]]:
    """Take turns; the first turn fills the caches and is not counted."""
    todo = {name: lambda code=code: imported(code) for name, code in CODE.items()} | {HELP: helped}
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
    """A row for each."""
    base = next(row["ms"] for row in rows if row["start"] == "import langgraph.graph")
    lines = ["| | CPU ms | of `import langgraph.graph` |", "|---|--:|--:|"]
    for row in rows:
        against = "" if row["start"] == HELP else f"{ratio(row['ms'], base):.2f}"
        lines.append(f"| `{row['start']}` | {statistics.median(row['ms']):.0f} | {against} |")
    return "\n".join(lines)
