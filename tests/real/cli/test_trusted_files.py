"""The files that start code: no tool writes them, and a changed one is asked about at each door (C84)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chat_server import Reply
from processes import Shell
from test_terminal import Terminal

from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.trusted_files import describe_change, find_scripts, list_code_files, take_fingerprints

pytestmark = pytest.mark.loopback
MINE = """
import helper
from inner.deep import x

def weigh(thing: str) -> int:
    "Weigh."
    return helper.W
"""
BYE = Reply("bye")


@pytest.fixture
def folder(shell: Shell) -> Path:
    """A folder with one file of each kind that starts code."""
    files = {
        "mine.py": MINE,
        "helper.py": "W = 3\n",
        "inner/deep.py": "from . import near\nx = 1\n",
        "inner/near.py": "",
        "check.py": "import helper\n",
        "goal.sh": "exit 0\n",
        "server.py": "raise SystemExit\n",
        "mcp.json": json.dumps(
            {"mcpServers": {"s": {"command": "python", "args": ["server.py"], "disabled": True}}}
        ),
        "free.py": "",
    }
    for name, text in files.items():
        (shell.folder / name).parent.mkdir(exist_ok=True)
        (shell.folder / name).write_text(text)
    return shell.folder


def options(url: str) -> list[str]:
    return [
        *("--model", "m", "--base-url", url, "--tools", "files,mine:weigh", "--mcp", "mcp.json"),
        *("--verify", "python check.py", "--done-when", "sh ./goal.sh"),
    ]


STARTED = ["mine.py", "helper.py", "inner/deep.py", "inner/near.py", "check.py", "goal.sh", "mcp.json"]
SHADOWS = ["helper/__init__.py", "mine/__init__.py", "inner/__init__.py", "MINE.py", "x/../mine.py"]


def test_c84_files_that_the_next_start_runs_are_not_written(shell: Shell, folder: Path, serve: Any) -> None:
    names = [*STARTED, *SHADOWS, "settings/agents/new.yaml", "free.py"]
    calls = [("write_file", {"path": name, "content": "import os\n"}) for name in names]
    server = serve(Reply(calls=calls), BYE)
    shell.env["WAKELOOP_CONFIG"] = str(folder / "settings")
    before = {name: (folder / name).read_bytes() for name in STARTED}
    assert shell("run", "go", "--thread", "t", *options(server.url)).returncode == 0
    told = [m["content"] for m in server.requests[-1]["messages"] if m["role"] == "tool"]
    refused = (
        " is code or configuration of the next start, so it is not written; ask the person to change it."
    )
    assert [refused in text for text in told] == [True] * (len(names) - 1) + [False]
    assert {name: (folder / name).read_bytes() for name in STARTED} == before
    assert [name for name in SHADOWS if (folder / name).exists()] == ["x/../mine.py"] * (
        folder / "x"
    ).exists()


DOORS = [["resume", "t", "more"], ["run", "more", "--thread", "t"], ["chat", "--thread", "t"]]


@pytest.mark.slow
@pytest.mark.parametrize("bound", [1, 3])
def test_c84_a_changed_file_is_not_used_silently(shell: Shell, folder: Path, serve: Any, bound: int) -> None:
    """Each file at several doors."""
    server = serve(*[BYE] * 99)
    assert shell("run", "go", "--thread", "t", *options(server.url)).returncode == 0
    assert shell("resume", "t", "again").returncode == 0  # nothing has changed
    for number, name in enumerate(["mine.py", "inner/near.py", "check.py", "goal.sh", "mcp.json"]):
        (folder / name).write_text((folder / name).read_text() + "\n")
        doors = [DOORS[(number + place) % len(DOORS)] for place in range(bound)]
        told = (
            f"wakeloop: Files that start code have changed since their last use: {folder / name}. Check "
            "them, then pass --trust.\n"
        )
        for words in doors:
            refused = shell(*words, typed="")
            assert (refused.returncode, refused.stdout, refused.stderr) == (2, "", told)
        asked = len(server.requests)
        for words in doors:
            assert shell(*words, "--trust", typed="more\n").returncode == 0
        assert len(server.requests) == asked + bound
    asked = len(server.requests)
    assert shell("resume", "t", "again").returncode == 0  # the changes are known by now
    assert len(server.requests) == asked + 1


def test_c84_at_a_terminal_the_difference_is_shown_and_decided(
    shell: Shell, folder: Path, serve: Any
) -> None:
    server = serve(BYE, BYE)
    assert shell("run", "go", "--thread", "t", *options(server.url)).returncode == 0
    (folder / "helper.py").write_text("W = 3\nimport os  # sk-proj-0123456789abcdefghijklmnop\n")
    for answer, code in (("n\n", 2), ("y\n", 0)):
        terminal = Terminal(shell, "resume", "t", "more")
        terminal.until("Use them as they are now? [y/N]")
        assert "2 + import os" in terminal.raw
        assert "0123456789abcdef" not in terminal.raw
        terminal.types(answer)
        assert terminal.ends() == code
    assert len(server.requests) == 2


@pytest.mark.slow
def test_c84_serve_asks_about_agent_files_and_tools(shell: Shell, folder: Path, serve: Any) -> None:
    server = serve(*[BYE] * 9)
    agents = folder / "settings" / "agents"
    agents.mkdir(parents=True)
    (agents / "clerk.yaml").write_text("system_prompt: Be brief.\n")
    shell.env["WAKELOOP_CONFIG"] = str(folder / "settings")

    def serve_once(*more: str) -> tuple[int, str]:
        with shell.start("serve", *options(server.url), *more) as started:
            assert started.stdout is not None
            if started.stdout.readline():
                assert shell("drain").returncode == 0
            code = started.wait(timeout=60)
            assert started.stderr is not None
            return code, started.stderr.read()

    assert serve_once()[0] == 0
    assert serve_once()[0] == 0
    for file in (agents / "clerk.yaml", folder / "mine.py"):
        file.write_text(file.read_text() + "\n")
        code, told = serve_once()
        assert (code, str(file) in told, told.count("\n")) == (2, True, 1)
        assert serve_once("--trust")[0] == 0
        assert serve_once()[0] == 0


def test_c84_scripts_of_a_command(tmp_path: Path) -> None:
    commands = {
        "./check.sh && python -u a.py --x": ["./check.sh", "a.py"],
        "PYTHONPATH=. python3.12 -m tools.check": ["tools/check.py", "tools/check/__main__.py"],
        "cd x; bash b.sh | grep -q done report.md": ["b.sh"],
        "python -c 'print(1)'": [],
        "timeout -k 5 60 ./check.sh || env -i A=1 python a.py": ["./check.sh", "a.py"],
        "if ! bash -o pipefail b.sh; then exec ./c.sh; fi": ["b.sh", "./c.sh"],
        "bash -c 'cd x && node --require ./hook.js server.mjs'": ["server.mjs"],
        "uv run check.py; npx tsx check.ts; deno run a.ts": ["check.py", "check.ts", "a.ts"],
        ". ./env.sh && source more.sh && sh < check.sh": ["./env.sh", "more.sh", "check.sh"],
        "time python -W error -X dev a.py": ["a.py"],
        "timeout 60 pytest tests/test_x.py": [],
        "python -m": [],
        "pytest tests/test_x.py": [],
        "diff a.txt b.txt": [],
        "'": [],
        "": [],
    }
    for command, scripts in commands.items():
        assert find_scripts(command, tmp_path) == [tmp_path / script for script in scripts], command


def test_c84_no_content_is_stored_and_a_difference_is_found(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("one\nkey = 'sk-secret'\nthree\n")
    before = take_fingerprints([file])
    assert "secret" not in json.dumps(before)
    file.write_text("one\nthree\nfour\n")
    assert describe_change(str(file), before[str(file)]) == [
        f"{file} has changed:",
        "  - 1 line removed",
        "  3 + four",
    ]
    file.write_text("\n".join(map(str, range(100))))
    assert describe_change(str(file), [])[-1] == "  … 61 lines more"
    file.unlink()
    assert describe_change(str(file), before[str(file)]) == [f"{file} is empty or gone."]


def test_c84_code_that_is_not_python_or_imports_itself_is_handled(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import mine, other\n")
    (tmp_path / "other.py").write_text("import mine\nx = (\n")
    spec = AgentSpec(tools=("mine:x",), imports=str(tmp_path), root=str(tmp_path))
    names = ("mine.py", "mine/__init__.py", "other.py", "other/__init__.py")
    assert sorted(list_code_files(spec)) == sorted(tmp_path / name for name in names)
