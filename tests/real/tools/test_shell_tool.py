"""The shell tool: approval, limits of time and output, and the end of its processes."""

import threading
import time
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.tools import ToolException
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from waiting import until

from wakeloop.loop.approval import read_decision
from wakeloop.tools.bounded_process import BoundedOutput
from wakeloop.tools.shell import approval_request, format_refusal, shell_tool


def run(root, command, **options):
    return shell_tool(root, ask=False, **options).invoke({"command": command})


def gone(pid):
    """Return whether a process has ended (a zombie has)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_it_runs_in_the_root_and_gives_code_and_output(tmp_path):
    assert run(tmp_path, "pwd; echo wrong >&2; exit 3") == f"[exit code 3]\n{tmp_path.resolve()}\nwrong\n"
    assert run(tmp_path, "true") == "[exit code 0]\n(no output)"
    assert run(tmp_path, "cat") == "[exit code 0]\n(no output)"
    assert run(tmp_path, "kill -9 $$") == "[exit code -9]\n(no output)"
    assert run(tmp_path, "printf '\\377'") == "[exit code 0]\n\ufffd"


def test_the_tool_is_named_and_described(tmp_path):
    tool = shell_tool(tmp_path)
    assert tool.name == "run_shell"
    assert list(tool.args) == ["command"]
    assert "description" in tool.args["command"]


@pytest.mark.parametrize("command", ["", "  \n", "echo a\0b"])
def test_an_empty_command_is_refused(tmp_path, command):
    with pytest.raises(ToolException, match=r"^command must not be empty\.$"):
        run(tmp_path, command)


def test_a_missing_root_is_reported_in_one_sentence(tmp_path):
    with pytest.raises(ToolException, match=r"^The command could not be started: .*\.$"):
        run(tmp_path / "missing", "true")


def test_the_time_limit_ends_the_whole_group(tmp_path):
    started = time.monotonic()
    text = run(tmp_path, "echo before; sleep 60 & echo $! > child; sh -c 'sleep 61'; echo after", timeout=0.5)
    assert text == "[ended after the limit of 0.5 s]\nbefore\n"
    assert time.monotonic() - started < 5
    until(lambda: gone(int((tmp_path / "child").read_text())))


def test_stop_ends_a_running_command_and_lets_no_other_begin(tmp_path):
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    started = time.monotonic()
    assert run(tmp_path, "echo before; sleep 60", stop=stop) == "[ended: the run was stopped]\nbefore\n"
    assert time.monotonic() - started < 5
    with pytest.raises(ToolException, match=r"^The run is being stopped; the command was not run\.$"):
        run(tmp_path, "touch ran", stop=stop)
    assert not (tmp_path / "ran").exists()


def test_a_command_that_closes_its_output_is_still_bounded(tmp_path):
    assert run(tmp_path, "exec >&- 2>&-; sleep 60", timeout=0.3).startswith(
        "[ended after the limit of 0.3 s]"
    )


def test_its_background_processes_are_ended_and_not_waited_for(tmp_path):
    started = time.monotonic()
    assert run(tmp_path, "sleep 60 & echo $! > child; echo done") == "[exit code 0]\ndone\n"
    assert run(tmp_path, "yes & echo done", limit=100).startswith("[exit code 0]\n")
    assert time.monotonic() - started < 5
    until(lambda: gone(int((tmp_path / "child").read_text())))


def test_output_is_bounded_and_keeps_both_ends(tmp_path):
    assert run(tmp_path, "seq 1 100000", limit=40) == (
        "[exit code 0]\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10"
        "\n[588,855 bytes left out; write the output to a file to see all of it]\n"
        "\n99998\n99999\n100000\n"
    )


def test_endless_output_stays_small_in_memory():
    output = BoundedOutput(1000)
    for _ in range(1000):
        output.add(b"x" * 10_000)
    assert len(output.head) + len(output.tail) == 1000
    assert output.total == 10_000_000
    assert "[9,999,000 bytes left out;" in output.render()


@pytest.mark.parametrize("sizes", [[], [1], [9, 1], [10], [5, 5, 1], [3] * 7, [100]])
def test_output_keeps_the_first_and_the_last_half(sizes):
    data = bytes(range(48, 48 + 75)) + bytes(range(48, 48 + 75))
    output, sent = BoundedOutput(10), b""
    for size in sizes:
        chunk = data[len(sent) :][:size]
        sent += chunk
        output.add(chunk)
    if len(sent) <= 10:
        assert output.render() == sent.decode()
    else:
        assert (bytes(output.head), bytes(output.tail)) == (sent[:5], sent[-5:])


def test_the_environment_carries_no_secrets(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "abc-secret")
    monkeypatch.setenv("HARMLESS", "kept")
    text = run(tmp_path, "env")
    assert "abc-secret" not in text
    assert "HARMLESS=kept" in text


# -- asking

YES = [
    *(True, "y", "yes", " YES ", "yes please", "true", {"approved": True}),
    *({"decisions": [{"type": "approve"}]}, {"type": "approve"}, '{"type": "approve"}'),
]
NO = [
    {"decisions": [{"type": "reject", "message": "no"}]},
    False,
    None,
    "",
    "n",
    "no",
    {},
]
NEITHER = [1, "yes, but", "hm", {"approved": "yes"}, {"approved": 1}, ["y"]]


@pytest.mark.parametrize("answer", NO)
def test_a_no_is_no(answer):
    assert read_decision(answer, approval_request("ls")).kind == "reject"


@pytest.mark.parametrize("answer", NEITHER)
def test_anything_else_is_asked_again_and_runs_nothing(tmp_path, answer):
    graph, config = asking(tmp_path), {"configurable": {"thread_id": "1"}}
    graph.invoke({"command": "touch ran"}, config)
    assert "error" in graph.invoke(Command(resume=answer), config)["__interrupt__"][0].value
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (False, ""),
        ("no", ""),
        ("No, use ls instead.", ' They said: "use ls instead."'),
        ({"approved": False, "reason": "too risky"}, ' They said: "too risky"'),
        ({"decisions": [{"type": "reject", "message": "too risky"}]}, ' They said: "too risky"'),
        ({"decisions": [{"type": "reject"}]}, ""),
    ],
)
def test_the_refusal_carries_the_persons_words(answer, said):
    assert (
        format_refusal(read_decision(answer, approval_request("ls")))
        == f"The user rejected this command; it was not run.{said}"
    )


class State(TypedDict, total=False):
    command: str
    result: Any


def asking(root):
    tool = shell_tool(root)
    graph = StateGraph(State)
    graph.add_node("run", lambda state: {"result": tool.invoke({"command": state["command"]})})
    graph.add_edge(START, "run")
    return graph.compile(checkpointer=InMemorySaver())


PUT = [*((answer, True) for answer in YES), *((answer, False) for answer in NO if answer not in (None, {}))]


@pytest.mark.parametrize(("answer", "ran"), PUT)  # LangGraph accepts neither None nor {} as an answer
def test_a_command_runs_only_after_a_yes(tmp_path, answer, ran):
    graph, config = asking(tmp_path), {"configurable": {"thread_id": "1"}}
    parked = graph.invoke({"command": "touch ran"}, config)
    assert parked["__interrupt__"][0].value == {
        "action_requests": [
            {"name": "run_shell", "args": {"command": "touch ran"}, "description": "Run this command?"}
        ],
        "review_configs": [{"action_name": "run_shell", "allowed_decisions": ["approve", "reject"]}],
        "on": "approval",
    }
    assert not (tmp_path / "ran").exists()
    result = graph.invoke(Command(resume=answer), config)["result"]
    assert (tmp_path / "ran").exists() is ran
    assert result.startswith("[exit code 0]" if ran else "The user rejected this command; it was not run.")


def test_no_process_is_left_when_the_wait_is_interrupted(tmp_path, monkeypatch):
    def broken(*_):
        until((tmp_path / "child").exists)
        raise KeyboardInterrupt

    monkeypatch.setattr("wakeloop.tools.bounded_process.collect_output", broken)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, "echo $$ > child.tmp; mv child.tmp child; sleep 60")
    assert gone(int((tmp_path / "child").read_text()))
    assert [path.name for path in tmp_path.iterdir()] == ["child"]


def test_an_invalid_decision_is_asked_for_again(tmp_path):
    graph, config = asking(tmp_path), {"configurable": {"thread_id": "1"}}
    graph.invoke({"command": "touch ran"}, config)
    edit = {"type": "edit", "edited_action": {"name": "run_shell", "args": {"command": "rm -r ."}}}
    parked = graph.invoke(Command(resume={"decisions": [edit]}), config)
    assert parked["__interrupt__"][0].value["error"] == (
        "The answer was not accepted: run_shell cannot be decided by 'edit'; allowed are approve, reject."
    )
    assert not (tmp_path / "ran").exists()
    graph.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
    assert (tmp_path / "ran").exists()
