"""The cost of one update of a list in each dialect, and what the preset `wakeloop` adds, in characters.

A list of N items of which half are done; the model closes the next one. It counts the arguments of the call
as JSON and the text of its result, both of which stay in the conversation. Then it counts the preset, part by
part: what is in every request, and what a close and a wake add. It prints the tables of docs/dialects.md,
which a test compares with these.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from typing import Any

from wakeloop import create_todo_agent, preset
from wakeloop.bench.task import CONTINUE_PROMPT
from wakeloop.testing import ScriptedModel, calls
from wakeloop.testing.captured_requests import CHARACTERS_PER_TOKEN

BY_TEXT = "write_todos` of `langchain"
PRESET = {
    "parley": "wakeloop",
    "loki": "loki",
    "checklist": "lesson",
    "write_todos": "cubepi",
    BY_TEXT: "langchain",
}
Row = dict[str, Any]


def items(n: int) -> list[Row]:
    """Return a list of n items, the first half completed, the next in progress."""
    done = n // 2
    status = ["completed"] * done + ["in_progress"] + ["pending"] * (n - done - 1)
    return [
        {"id": i, "content": f"Look at module_{i:03}.py and note what it needs", "status": status[i - 1]}
        for i in range(1, n + 1)
    ]


def update(dialect: str, before: list[Row]) -> tuple[str, dict[str, Any]]:
    """Return the call that closes the item in progress; a whole list also starts the next."""
    at = next(i for i, item in enumerate(before) if item["status"] == "in_progress")
    if dialect == "parley":
        return "todo_update", {"ids": [before[at]["id"]]}
    if dialect == "loki":
        return "todo__done", {"id": before[at]["id"]}
    if dialect == BY_TEXT:
        return "write_todos", {"completed": [before[at]["content"]]}
    after = [dict(item) for item in before]
    after[at]["status"], after[at + 1]["status"] = "completed", "in_progress"
    if dialect == "checklist":
        rows = [{"id": str(item["id"]), "text": item["content"], "status": item["status"]} for item in after]
        return "todo", {"items": rows}
    return "write_todos", {"todos": [{key: item[key] for key in ("content", "status")} for item in after]}


@dataclass(frozen=True)
class Cost:
    """The cost of one update: the tool, and characters of its arguments and of its result."""

    dialect: str
    tool: str
    arguments: int
    result: int

    @property
    def both(self) -> int:
        """Everything that stays in the conversation."""
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
    """Return the table as the documentation shows it."""
    costs = [measure(dialect, n) for dialect in PRESET]
    rows = [
        f"| `{cost.dialect}` | `{cost.tool}` | {cost.arguments:,} | {cost.result:,} | {cost.both:,} "
        f"| {cost.both / costs[0].both:.1f} |"
        for cost in costs
    ]
    head = "| dialect | call | characters of arguments | of the result | both | times `parley` |"
    return "\n".join([head, "|---|---|--:|--:|--:|--:|", *rows])


def parts() -> str:
    """Return the table of what the preset `wakeloop` adds, in characters and tokens of four."""
    plan = calls(("todo_write", {"items": [f"write note {number}" for number in range(1, 21)]}))
    close = ("todo_update", {"ids": [1]})
    model = ScriptedModel(plan, calls(close, ("look", {"path": "2"})), "All done.", "All done.")

    def look(path: str) -> str:
        """Look at a file."""
        return path

    settings = preset("wakeloop").model_copy(
        update={"max_wake_cycles": 1, "earn_wakes": 0, "guard_retries": 0}
    )
    state = create_todo_agent(model, [look], settings=settings).invoke({"messages": [("user", "go")]})
    [nudge] = [
        one for one in state["messages"] if one.additional_kwargs.get("wakeloop", {}).get("kind") == "wake"
    ]
    [result] = [one for one in state["messages"] if one.type == "tool" and one.name == "todo_update"]
    schemas = {
        tool["function"]["name"]: len(json.dumps(tool))
        for tool in model.bound[0]
        if tool["function"]["name"] != "look"
    }
    standing = {"instructions": len(model.requests[0][0].content)}
    standing |= {f"schema of `{name}`": size for name, size in schemas.items()}
    lines = {
        **standing,
        "**in every request**": sum(standing.values()),
        "closing an item together with the next call, and its result": len(
            f"{close[0]}{json.dumps(close[1])}{result.content}"
        ),
        "a wake": len(nudge.content),
        f"for comparison, without a list: “{CONTINUE_PROMPT}”": len(CONTINUE_PROMPT),
    }
    rows = [f"| {part} | {size:,} | {round(size / CHARACTERS_PER_TOKEN)} |" for part, size in lines.items()]
    return "\n".join(["| part | characters | tokens |", "|---|--:|--:|", *rows])


def main() -> None:
    """Read the sizes and print a table for each, and the parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, default=[100], help="numbers of items (100)")
    for n in parser.parse_args().sizes:
        print(table(n))
    print(parts())


if __name__ == "__main__":
    main()
