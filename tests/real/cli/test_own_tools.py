"""The user's own tools: MODULE:NAME, asynchronous ones in a synchronous run."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from chat_server import Reply
from processes import Shell, lines

from wakeloop.cli.agent_spec import AgentSpec
from wakeloop.cli.chat.conversation import Conversation
from wakeloop.cli.external_tools import ExternalTools
from wakeloop.cli.failures import USAGE, CommandError
from wakeloop.cli.store import DatabaseFile, open_to_write

MODULE = '''
"""The user's own."""
import asyncio
from langchain_core.tools import tool
from langgraph.types import interrupt
import helper

def weigh(thing: str) -> int:
    """Weigh a thing."""
    return helper.WEIGHT

@tool
async def look(where: str) -> str:
    """Look somewhere."""
    await asyncio.sleep(0)
    return f"seen {where}"

async def ask(what: str) -> str:
    """Ask the person."""
    return f"they said {interrupt(what)}"

several = [weigh, look, ask]
nothing = []
number = 7

def made():
    return [weigh, look]

async def made_later():
    await asyncio.sleep(0.2)
    return look

def now() -> str:
    """Tell the time."""
    return "noon"

def fails():
    raise LookupError("no key")

class Kept:
    """No tool."""
'''

CANNOT = "{} of --tools cannot be used: "
NOW = (
    "mine:now of --tools is not a list of tools: A tool must be a LangChain tool, a function or a provider's "
    "dict, got a str."
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "mine.py").write_text(MODULE)
    (tmp_path / "helper.py").write_text("WEIGHT = 3\n")
    (tmp_path / "broken.py").write_text("\nimport nothing\n")
    (tmp_path / "wrong.py").write_text("x = (\n")
    (tmp_path / "ends.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "panics.py").write_text("raise BaseException('panicked')\n")
    (tmp_path / "later.py").write_text("def make():\n    raise SystemExit(3)\n")
    yield tmp_path
    for name in ("mine", "helper", "broken", "wrong", "ends", "panics", "later"):
        sys.modules.pop(name, None)


def tools_of(folder: Path, *names: str) -> dict[str, Any]:
    with ExternalTools() as outside:
        groups = outside.tool_groups(AgentSpec(tools=("files", *names), imports=str(folder)), ask=True)
        assert [owner for owner, _ in groups] == list(names)
        return {one.name: one.invoke({"thing": "x", "where": "here"}) for _, tools in groups for one in tools}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("mine:weigh", {"weigh": 3}),
        ("mine:look", {"look": "seen here"}),
        ("mine:made", {"weigh": 3, "look": "seen here"}),
        ("mine:made_later", {"look": "seen here"}),
        ("mine:nothing", {}),
    ],
)
def test_a_tool_a_list_or_a_callables_return_value(folder: Path, name: str, says: dict[str, Any]) -> None:
    assert tools_of(folder, name) == says
    assert sys.path[-1] == str(folder)
    assert sys.path.count(str(folder)) == 1


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gone:x", f"{CANNOT.format('gone:x')}ModuleNotFoundError: No module named 'gone'."),
        ("mine:xyz", f"{CANNOT.format('mine:xyz')}AttributeError: module 'mine' has no attribute 'xyz'."),
        (
            "broken:x",
            f"{CANNOT.format('broken:x')}ModuleNotFoundError: No module named 'nothing' (broken.py, line 2).",
        ),
        ("wrong:x", f"{CANNOT.format('wrong:x')}SyntaxError: '(' was never closed (wrong.py, line 1)."),
        ("ends:x", f"{CANNOT.format('ends:x')}SystemExit: 3 (ends.py, line 1)."),
        ("panics:x", f"{CANNOT.format('panics:x')}BaseException: panicked (panics.py, line 1)."),
        ("later:make", "later:make of --tools cannot be used: SystemExit: 3 (later.py, line 2)."),
        ("mine:fails", "mine:fails of --tools cannot be used: LookupError: no key (mine.py, line 38)."),
        (
            "mine:number",
            "mine:number of --tools is not a list of tools: `tools` must be a list of tools, got 7.",
        ),
        ("mine:now", NOW),
        (
            "mine:Kept",
            "mine:Kept of --tools is not a list of tools: A tool must be a LangChain tool, a function or a ",
        ),
    ],
)
def test_anything_else_is_refused_in_one_sentence(folder: Path, name: str, says: str) -> None:
    with pytest.raises(CommandError) as refused:
        tools_of(folder, name)
    assert refused.value.code == USAGE
    assert str(refused.value).startswith(says.format(folder))


def test_a_chat_accepts_new_tools_after_a_stopped_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-secret")
    database = DatabaseFile(folder / "threads.sqlite", named=True)
    with open_to_write(database) as store, ExternalTools() as outside:
        talk = Conversation(database, store, "t", AgentSpec(model="m", root=str(folder)), external=outside)
        outside.stop.set()
        talk.reconfigure({"tools": ("mine:made_later",), "imports": str(folder)})
        assert talk.spec.tools == ("mine:made_later",)


@pytest.mark.loopback
def test_a_run_calls_them_and_its_thread_knows_where_they_are(shell: Shell, serve: Any) -> None:
    (shell.folder / "mine.py").write_text(MODULE)
    (shell.folder / "helper.py").write_text("WEIGHT = 3\n")
    calls = [("weigh", {"thing": "x"}), ("look", {"where": "here"})]
    model = serve(Reply(calls=calls), Reply(calls=[("ask", {"what": "Which colour?"})]), Reply("Done."))
    options = ["--model", "m", "--base-url", model.url, "--tools", "files,mine:several", "--thread", "mine"]
    waits = shell("run", "go", *options)
    assert (waits.returncode, lines(waits.stdout, "question: ")[0]) == (4, "question: Which colour?")
    (shell.folder / "elsewhere").mkdir()
    (shell.folder / "elsewhere" / "mine.py").write_text("raise SystemExit('not this one')\n")
    done = shell("resume", "mine", "green", cwd=shell.folder / "elsewhere")
    assert (done.returncode, done.stderr) == (0, "")
    told = [m["content"] for m in model.requests[-1]["messages"] if m["role"] == "tool"]
    assert told == ["3", "seen here", "they said green"]


NOISY = """
import atexit, ctypes, os, subprocess, sys

def shout(where):
    print(f"printed at {where}")
    os.write(1, f"written at {where}\\n".encode())
    os.system(f"echo by a child at {where}")
    ctypes.CDLL(None).puts(f"put at {where}".encode())
    ctypes.CDLL(None).fflush(None)

shout("import")
atexit.register(shout, "exit")

def weigh(thing: str) -> int:
    'Weigh a thing.'
    shout("the call")
    return 3
"""
LOUD = {"printed", "written", "by a child", "put"}


@pytest.mark.loopback
@pytest.mark.parametrize(
    "flags", [["--json"], ["--output", "stream-json"], ["-q"]], ids=["json", "stream", "quiet"]
)
def test_c85_what_own_tools_print_is_never_in_the_data(shell: Shell, serve: Any, flags: list[str]) -> None:
    (shell.folder / "noisy.py").write_text(NOISY)
    model = serve(Reply(calls=[("weigh", {"thing": "x"})]), Reply("It weighs 3."))
    options = ["--model", "m", "--base-url", model.url, "--tools", "noisy:weigh"]
    done = shell("run", "go", *options, *flags)
    assert done.returncode == 0, done.stderr
    for where in ("import", "the call", "exit"):
        assert {f"{how} at {where}" for how in LOUD} <= {*done.stderr.splitlines()}
    if flags == ["-q"]:
        assert done.stdout == "It weighs 3.\n"
        return
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[-1]["answer"] == "It weighs 3."
    assert len(events) == 1 or events[-1]["type"] == "result"


def test_the_first_calls_of_one_round_share_one_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    made, make = [], asyncio.new_event_loop

    def slowly() -> asyncio.AbstractEventLoop:
        time.sleep(0.1)
        made.append(make())
        return made[-1]

    async def here() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    monkeypatch.setattr(asyncio, "new_event_loop", slowly)
    with ExternalTools() as outside, ThreadPoolExecutor(2) as pool:
        ran = [one.result() for one in [pool.submit(lambda: outside.run_in_loop(here())) for _ in range(2)]]
    assert ran == 2 * made
