"""What every command says in terminals of 40, 80 and 120 columns: no line is broken inside a word."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterable, Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pyte
import pytest
from levels import Level
from nursery import Forked, nursery_for

from wakeloop import create_todo_agent
from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.store import DatabaseFile, open_to_write
from wakeloop.display.terminal_output import WORD, count_columns
from wakeloop.testing import ScriptedModel, calls, says

pytestmark = pytest.mark.slow

WIDE, FOLDER = "100000", "my folder"
MARK, ESCAPE = "\x1e", "\x1b"
PROGRAM = f"""
import json, sys
from wakeloop.cli.commands.app import main

for words in json.loads(sys.argv[1]) if __name__ == "__main__" else ():
    print({MARK!r} + json.dumps(words), flush=True)
    sys.argv = ["wakeloop", *words]
    try:
        main()
    except SystemExit:
        pass
"""
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\r")
VARIES = re.compile(r"\b[0-9a-f]{8,}\b|\d[\d.,:]*|[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]")  # ids, times, tokens
COPIED = re.compile(r"\bmy folder|\bwakeloop [a-z]+")  # a path with a blank in it, a command in a sentence
RUN = ["run", "Say what is in this folder", "--model", "m"]
HERE = ["--base-url", "http://127.0.0.1:9/v1"]  # it needs no key, and is not asked
SMALL = [
    "--model",
    "weak:stop=0.3",
    "--task",
    "one-setting",
    "--agent",
    "wakeloop",
    "--seeds",
    "1",
    "--out",
    "ran",
]
COMMANDS = [
    [],
    ["doctor"],
    ["doctor", "--model", "m"],
    ["config"],
    ["threads"],
    ["show"],
    ["show", "mine", "--history"],
    ["todo", "mine"],
    ["export", "mine"],
    ["report", "mine", "--force"],
    ["graph", "--ascii"],
    ["demo", "."],
    ["send", "mine", "Look at what has come in since"],
    ["ps"],
    ["cron", "add", "mine", "0 0 * * *", "Look at everything that has come in since yesterday, and say so"],
    ["cron", "list"],
    ["drain", "--timeout", "0"],
    ["bench", "--estimate", *SMALL],
    ["bench", *SMALL],
    ["bench", "report", "ran"],
    ["bench", "profile", "ran"],
    # refusals
    ["show", "nobody"],
    ["show", "mine", "--histroy"],
    ["rename", "mine"],
    ["shwo"],
    ["run"],
    RUN,
    [*RUN, "--output", "yaml"],
    [*RUN, "--set", "max_wake=1"],
    [*RUN, "--base-url", "http://[::1"],
    [*RUN, *HERE, "--mcp", "servers.json"],
    [*RUN, *HERE, "--tools", "files,mine:tools"],
    ["resume", "mine", "--max-requests", "0"],
    ["chat", "--thread", "mine", "--preset", "nothing"],
    ["todo", "mine", "fly"],
    ["cron", "fly"],
    ["send", "mine", "x", "--kind", "kick", "--answers", "1"],
    ["bench", "--task", "nothing"],
    ["serve", "--demo", "nowhere"],
    ["rm", "nobody"],
    ["init", "--now"],
]
ASKED = "Say which of the files in this folder are unexpectedly long, and why that may be so"
SCRIPT = [
    calls(("todo_write", {"items": ["Measure every file of the folder, whatever it holds", "Say it"]})),
    calls(("todo_update", {"id": 1, "status": "blocked", "reason": "the folder may not be read by anybody"})),
    *[says("There is nothing here that I could measure, since nobody may read the folder.")] * 8,
]


def filled(folder: Path) -> dict[str, str]:
    """A folder with threads, files and servers that clash, and the environment of a command in it."""
    folder.mkdir()
    with open_to_write(DatabaseFile(folder / "threads.sqlite", named=True)) as store:
        agent = create_todo_agent(ScriptedModel(SCRIPT), checkpointer=store.saver)
        agent.invoke({"messages": [("user", ASKED)]}, {"configurable": {"thread_id": "mine"}})
        store.remember("mine", AgentSpec(model="openai:a-model", root=str(folder)), ASKED)
    (folder / "one.py").write_text("def one():\n    return 1\n")
    (folder / "mine.py").write_text("def read_file():\n    '''Read.'''\n\ntools = [read_file, read_file]\n")
    (folder / "servers.json").write_text('{"mcpServers": {"notes": {"comand": "uvx"}}}')
    unset = ("COLUMNS", "LINES", "OPENAI_API_KEY")
    env = {name: value for name, value in os.environ.items() if name not in unset}
    return {
        **env,
        "WAKELOOP_DB": f"{folder}/threads.sqlite",
        "WAKELOOP_CONFIG": f"{folder}/conf",
        "TERM": "xterm",
    }


def told(folder: Path, columns: int) -> dict[str, str]:
    """Return what each command writes into a terminal of this width."""
    env = filled(folder)
    if (ran := folder.parents[1] / WIDE / FOLDER / "ran").is_dir():  # the bench need not run again
        copytree(ran, folder / "ran")
    (folder / "every.py").write_text(PROGRAM)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 60, columns, 0, 0))
    streams: Any = {
        "stdin": subprocess.DEVNULL,
        "stdout": theirs,
        "stderr": theirs,
        "cwd": folder,
        "env": env,
    }
    words = json.dumps(COMMANDS)
    if sys.platform.startswith("linux") and not Level.whole():
        process: Any = Forked(nursery_for(env), ["-m", "every", words], **streams)
    else:
        process = subprocess.Popen([sys.executable, "every.py", words], **streams)
    os.close(theirs)
    whole = b"".join(read(ours))
    assert process.wait(timeout=60) == 0
    _, *parts = whole.decode().split(MARK)
    return {head.strip(): text for head, _, text in (part.partition("\n") for part in parts)}


def read(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            data = os.read(terminal, 65_536)
        except OSError:  # nobody has it open any more
            os.close(terminal)
            return
        yield data


def on_screen(text: str, columns: int) -> str:
    """Return what an emulator shows of it, row by row."""
    rows = sum(1 + count_columns(ESCAPES.sub("", line)) // columns for line in text.split("\n"))
    screen = pyte.Screen(columns, rows)
    pyte.Stream(screen).feed(text)
    return "\n".join(screen.display)


def same(words: Iterable[str]) -> set[str]:
    return {VARIES.sub("0", word) for word in words}


def pieces(rows: str, written: set[str], columns: int) -> set[str]:
    """Return the words on a screen that nobody wrote, except those that are marked as cut or had no room."""
    known, long = same(written), same(word for word in written if count_columns(word) > columns)
    return {
        word
        for word in same(rows.split()) - known - {"\\"}
        if not any(word in one for one in long)
        and not (word.endswith("…") and any(one.startswith(word[:-1]) for one in known))
    }


def is_over(line: str, columns: int) -> bool:
    """Return whether a line is too long, unless it is a single long word."""
    return count_columns(line) > columns and len(WORD.findall(line.removesuffix("\\").rstrip())) > 1


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what each command writes if there is room for everything."""
    said = told(tmp_path_factory.mktemp(WIDE, numbered=False) / FOLDER, 10_000)
    assert list(said) == [json.dumps(words) for words in COMMANDS]
    return said


@pytest.mark.parametrize("columns", [40, pytest.param(80, marks=pytest.mark.large), 120])
def test_no_command_breaks_a_line_inside_a_word(
    tmp_path_factory: pytest.TempPathFactory, columns: int, unbroken: dict[str, str]
) -> None:
    broken = {}
    for command, text in told(
        tmp_path_factory.mktemp(f"{columns:06}", numbered=False) / FOLDER, columns
    ).items():
        rows = on_screen(text, columns)
        # drawings are checked on the screen
        lines = () if ESCAPE in text else text.replace("\r", "").split("\n")
        over = {line for line in lines if is_over(line, columns)}
        whole = unbroken[command]
        torn = set() if ESCAPE in text else set(COPIED.findall(whole)) - set(COPIED.findall(text))
        if odd := pieces(rows, set(ESCAPES.sub(" ", whole).split()), columns) | over | torn:
            broken[command] = (odd, rows)
    assert broken == {}
