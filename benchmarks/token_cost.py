"""What one update of a list costs in each dialect, in characters.

A list of N items of which half are done; the model closes the next one. Counted are the arguments of the call
as JSON and the text of its result, both of which stay in the conversation. It prints the table of
docs/dialects.md; a test compares the two.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from typing import Any

from wakeloop import create_todo_agent, preset
from wakeloop.testing import ScriptedModel, calls

PRESET = {"parley": "wakeloop", "loki": "loki", "checklist": "lesson", "write_todos": "cubepi"}
Row = dict[str, Any]


def items(n: int) -> list[Row]:
    """A list of n items, the first half completed, the next in progress."""
    done = n // 2
    status = ["completed"] * done + ["in_progress"] + ["pending"] * (n - done - 1)
    return [
        {"id": i, "content": f"Look at module_{i:03}.py and note what it needs", "status": status[i - 1]}
        for i in range(1, n + 1)
    ]


def update(dialect: str, before: list[Row]) -> tuple[str, dict[str, Any]]:
    """The call that closes the item in progress; where the whole list is sent, it starts the next, too."""
    at = next(i for i, item in enumerate(before) if item["status"] == "in_progress")
    if dialect == "parley":
        return "todo_update", {"id": before[at]["id"], "status": "done"}
    if dialect == "loki":
        return "todo__done", {"id": before[at]["id"]}
    after = [dict(item) for item in before]
    after[at]["status"], after[at + 1]["status"] = "completed", "in_progress"
    if dialect == "checklist":
        rows = [{"id": str(item["id"]), "text": item["content"], "status": item["status"]} for item in after]
        return "todo", {"items": rows}
    return "write_todos", {"todos": [{key: item[key] for key in ("content", "status")} for item in after]}


@dataclass(frozen=True)
class Cost:
    """What one update took: the tool, and characters of its arguments and of its result."""

    dialect: str
    tool: str
    arguments: int
    result: int

    @property
    def both(self) -> int:
        """All that stays in the conversation."""
        return self.arguments + self.result


def measure(dialect: str, n: int) -> Cost:
    """Play one update through the graph and count."""
    before = items(n)
    tool, arguments = update(dialect, before)
    settings = preset(PRESET[dialect]).model_copy(
        update={"auto_continue": True, "max_items": None, "max_wake_cycles": 0, "guard_retries": 0}
    )
    model = ScriptedModel(calls((tool, arguments)), "Stopping here.")
    agent = create_todo_agent(model, settings=settings)
    told = [{**item, "id": str(item["id"])} for item in before] if dialect == "checklist" else before
    state = agent.invoke({"messages": [("user", "go")], "todos": told})
    (result,) = [message for message in state["messages"] if message.type == "tool"]
    assert result.status == "success", result.content
    assert sum(todo["status"] == "completed" for todo in state["todos"]) == n // 2 + 1
    return Cost(dialect, tool, len(json.dumps(arguments, ensure_ascii=False)), len(result.content))


def table(n: int) -> str:
    """The table as the documentation shows it."""
    costs = [measure(dialect, n) for dialect in PRESET]
    rows = [
        f"| `{cost.dialect}` | `{cost.tool}` | {cost.arguments:,} | {cost.result:,} | {cost.both:,} "
        f"| {cost.both / costs[0].both:.1f} |"
        for cost in costs
    ]
    head = "| dialect | call | characters of arguments | of the result | both | times `parley` |"
    return "\n".join([head, "|---|---|--:|--:|--:|--:|", *rows])


def main() -> None:
    """Read the sizes and print a table for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, default=[100], help="numbers of items (100)")
    for n in parser.parse_args().sizes:
        print(table(n))


if __name__ == "__main__":
    main()
