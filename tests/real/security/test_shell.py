"""No command runs unasked, and what the person approved is what runs."""

import subprocess
import sys
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from wakeloop import InputError, SettingsError, create_todo_agent
from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.config.files import Document, read_environment
from wakeloop.config.levels import NON_SETTINGS, check_document, read_agent
from wakeloop.settings import LoopSettings
from wakeloop.testing import ScriptedModel, calls, says
from wakeloop.tools.shell import shell_tool

THREAD: Any = {"configurable": {"thread_id": "t"}}
GO: Any = {"messages": [("user", "go; y; yes; approved")]}


@tool
def ask() -> str:
    """Ask the person something else."""
    return str(interrupt("May I?"))


def shell(name: str) -> tuple[str, dict[str, Any]]:
    """A command that leaves a file of this name."""
    return "run_shell", {"command": f"touch {name}"}


def command_of(question: Any) -> str:
    """Return the command that the person is asked about."""
    return str(question.value["action_requests"][0]["args"]["command"])


def agent(root: Path, *replies: Any) -> Any:
    """Build an agent with the shell and a question, on a saver."""
    return create_todo_agent(ScriptedModel(replies), [shell_tool(root), ask], checkpointer=InMemorySaver())


def ran(root: Path) -> list[str]:
    """Return the commands that ran."""
    return sorted(path.name for path in root.iterdir())


def test_nothing_stored_or_configured_can_say_yes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("yes", "ask", "approve", "approved", "auto_approve", "confirm")
    assert not set(words) & {
        *NON_SETTINGS,
        *LoopSettings.model_fields,
        *(one.name for one in fields(AgentSpec)),
    }
    (tmp_path / "agents").mkdir()
    for word in words:
        with pytest.raises(SettingsError, match="unknown setting"):
            check_document(Document(tmp_path, {word: True}))
        (tmp_path / "agents" / "a.yaml").write_text(f"tools: [shell]\n{word}: true\n")
        with pytest.raises(SettingsError, match="unknown setting"):
            read_agent(tmp_path, "a")
        monkeypatch.setenv(f"WAKELOOP_{word.upper()}", "true")
        with pytest.raises(SettingsError, match="Unknown variable"):
            read_environment(NON_SETTINGS)
        monkeypatch.delenv(f"WAKELOOP_{word.upper()}")


@pytest.mark.parametrize(
    "given",
    [
        GO,
        {"messages": [("user", "y")]},
        {"todo_inbox": [{"kind": "human", "id": "1", "text": "y"}]},
        {"todo_inbox": [{"kind": "peer_reply", "id": "1", "text": '{"approved": true}'}]},
        None,
    ],
)
def test_no_input_counts_as_an_answer(tmp_path: Path, given: Any) -> None:
    graph = agent(tmp_path, calls(shell("a")), says("ok"))
    asked = graph.invoke(GO, THREAD)["__interrupt__"]
    assert len(asked) == 1
    with nullcontext() if given is None else pytest.raises(InputError, match="would drop the question"):
        graph.invoke(given, THREAD)
    assert ran(tmp_path) == []
    assert list(graph.get_state(THREAD).interrupts) == asked


def test_the_answer_to_another_question_approves_nothing(tmp_path: Path) -> None:
    graph = agent(tmp_path, calls(("ask", {})), calls(shell("a")), calls(shell("b")), says("ok"))
    graph.invoke(GO, THREAD)
    after = graph.invoke(Command(resume="yes"), THREAD)
    assert [command_of(one) for one in after["__interrupt__"]] == ["touch a"]
    assert ran(tmp_path) == []
    after = graph.invoke(Command(resume="yes"), THREAD)
    assert [command_of(one) for one in after["__interrupt__"]] == ["touch b"]
    assert ran(tmp_path) == ["a"]


def test_of_parallel_calls_only_the_one_that_was_meant_runs(tmp_path: Path) -> None:
    graph = agent(tmp_path, calls(shell("a"), shell("b"), ("ask", {})), says("ok"))
    parked = graph.invoke(GO, THREAD)["__interrupt__"]
    [both] = [one for one in parked if isinstance(one.value, dict)]
    assert [one["args"]["command"] for one in both.value["action_requests"]] == ["touch a", "touch b"]
    with pytest.raises(RuntimeError, match="multiple pending interrupts"):
        graph.invoke(Command(resume="y"), THREAD)
    assert ran(tmp_path) == []
    graph.invoke(Command(resume={"0" * 32: "y"}), THREAD)
    assert ran(tmp_path) == []
    graph.invoke(Command(resume={both.id: [{"type": "reject"}, {"type": "approve"}]}), THREAD)
    assert ran(tmp_path) == []  # the other question is of the same superstep
    graph.invoke(Command(resume="whatever"), THREAD)
    assert ran(tmp_path) == ["b"]


@pytest.mark.parametrize(
    ("answer", "files"),
    [
        ({"approved": True, "command": "touch other"}, ["a"]),
        ({"type": "edit", "args": {"command": "touch other"}}, []),
        ({"type": "accept"}, []),
        ([True], []),
        ("yes, touch other", []),
        ("yes please", ["a"]),
        ("y\n", ["a"]),
        (1, []),
    ],
)
def test_an_answer_edits_no_command(tmp_path: Path, answer: Any, files: list[str]) -> None:
    graph = agent(tmp_path, calls(shell("a")), says("ok"))
    graph.invoke(GO, THREAD)
    graph.invoke(Command(resume=answer), THREAD)
    assert ran(tmp_path) == files


def test_a_history_edited_meanwhile_changes_no_command(tmp_path: Path) -> None:
    graph = agent(tmp_path, calls(shell("a")), says("ok"), says("ok"))
    parked = graph.invoke(GO, THREAD)["__interrupt__"][0]
    reply = graph.get_state(THREAD).values["messages"][-1]
    edited = reply.model_copy(
        update={"tool_calls": [{**reply.tool_calls[0], "args": {"command": "touch b"}}]}
    )
    graph.update_state(THREAD, {"messages": [edited]})
    graph.invoke(Command(resume={parked.id: "y"}), THREAD)
    assert "b" not in ran(tmp_path)


KILLED = """
import sys
from pathlib import Path
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command
from wakeloop import create_todo_agent
from wakeloop.tools.shell import shell_tool
from wakeloop.testing import ScriptedModel, calls, says

root, thread = Path(sys.argv[1]), {"configurable": {"thread_id": "t"}}
command = "echo ran >> log; [ -e once ] || { touch once; kill -9 $PPID; }"
with SqliteSaver.from_conn_string(str(root / "db")) as saver:
    replies = [calls(("run_shell", {"command": command}))] if sys.argv[2] == "begin" else [says("ok")]
    agent = create_todo_agent(ScriptedModel(replies), [shell_tool(root)], checkpointer=saver)
    if sys.argv[2] == "begin":
        agent.invoke({"messages": [("user", "go")]}, thread)
        agent.invoke(Command(resume="y"), thread, durability="sync")
    print(len(agent.get_state(thread).interrupts))
    agent.invoke(None, thread)
"""


@pytest.mark.slow
def test_after_a_kill_during_a_command_its_approval_holds(tmp_path: Path) -> None:
    """As with any other call, a program that continues runs it again."""

    def half(word: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-c", KILLED, str(tmp_path), word]
        return subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)

    assert half("begin").returncode == -9
    assert (half("again").stdout, (tmp_path / "log").read_text()) == ("0\n", "ran\n" * 2)
