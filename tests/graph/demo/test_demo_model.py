"""The offline model: it stops and forgets, and yet the audit is finished."""

from pathlib import Path
from typing import Any

import pytest

from wakeloop import create_todo_agent
from wakeloop.demo.audit import OfflineAuditor, demo_tools, explain_missing_report, request_text
from wakeloop.presets import PRESETS, preset
from wakeloop.testing import prompt_faults, wire_faults


def audit(root: Path, settings: Any = "wakeloop") -> tuple[OfflineAuditor, dict[str, Any]]:
    model = OfflineAuditor(root)
    agent = create_todo_agent(model, demo_tools(root), settings=settings)
    state = agent.invoke({"messages": [("user", request_text(root))]}, {"recursion_limit": 500})
    return model, state


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for number in range(4):
        (tmp_path / f"part{number}.py").write_text(f"def part{number}():\n    return {number}\n")
    return tmp_path


def test_it_settles_after_several_wakes(root: Path) -> None:
    model, state = audit(root)
    session = state["todo_session"]
    assert (session["reason"], session["wakes"], len(model.requests)) == ("settled", 3, 10)
    assert [todo["content"] for todo in state["todos"]][-1] == "Write wakeloop-report.md"
    assert (root / "wakeloop-report.md").read_text().endswith("4 files, 8 lines.\n")
    assert wire_faults(model.requests) == prompt_faults(model.requests) == []


# it gives up after one wake without progress
@pytest.mark.parametrize("name", sorted(set(PRESETS) - {"loki"}))
def test_every_preset_gets_its_report(root: Path, name: str) -> None:
    audit(root, preset(name).model_copy(update={"auto_continue": True, "max_wake_cycles": 25}))
    assert (root / "wakeloop-report.md").exists()


def test_a_report_that_cannot_be_written_is_blocked(root: Path) -> None:
    (root / "wakeloop-report.md").mkdir()
    _, state = audit(root)
    assert [todo["status"] for todo in state["todos"]] == [*["completed"] * 4, "blocked"]
    assert "is a folder, not a file" in explain_missing_report(state["messages"])
    assert explain_missing_report([]) == ""
