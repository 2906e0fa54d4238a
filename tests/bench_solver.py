"""Checks a bench task with a perfect solver and an idle one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain_core.tools import ToolException

from wakeloop.bench.task import Call, Family, Task, find_damage, is_complete, share_of


def laid_out(task: Task, folder: Path) -> dict[str, Any]:
    """Prepare a task's folder, and return its tools by name."""
    task.lay_out(folder)
    return {tool.name: tool for tool in task.tools(folder)}


def play(tools: dict[str, Any], calls: tuple[Call, ...]) -> list[str]:
    """Make the calls, and return the sentences of those that were refused."""
    refused = []
    for name, args in calls:
        try:
            tools[name].func(**args)
        except ToolException as error:
            refused.append(str(error))
    return refused


def hold_to_account(family: Family, task: Task, folder: Path) -> None:
    """Check that an idle agent scores 0, a solver 1, and that each harmful call counts as damage."""
    tools = laid_out(task, folder)
    asleep = task.checks(folder, "")
    assert [check.name for check in asleep if check.passed != check.kept] == []
    assert not is_complete(asleep)
    assert share_of(asleep) == 0
    assert len({check.name for check in asleep}) == len(asleep)
    assert len(task.steps) == task.parts == len({step.label for step in task.steps})
    refused = [play(tools, step.calls) for step in task.steps]
    assert family.kind == "impossible" or not any(refused)
    solved = task.checks(folder, task.final)
    assert [check.name for check in solved if not check.passed] == []
    assert share_of(solved) == 1
    assert task.spoils
    for spoil in task.spoils:
        path = folder / spoil.args.get("path", f"lamps/{spoil.args.get('lamp')}.txt")
        before: Any = path.read_bytes() if path.exists() else None
        assert play(tools, (spoil,)) == []
        assert find_damage(solved, task.checks(folder, task.final)) != []
        path.unlink(missing_ok=True) if before is None else path.write_bytes(before)
