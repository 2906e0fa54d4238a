"""The pipeline of its page, run as shown: the model is a server's, and it is killed."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_server import Reply, Server
from levels import Level
from nursery import Forked, nursery_for
from processes import until
from test_docs import ROOT, assert_shown
from test_docs import blocks as blocks_of

PAGE = ROOT / "docs" / "pipeline.md"
BLOCKS = [block for block in blocks_of(PAGE) if block.kind == "run by"]
DONE = "todo_update"
SCRIPT = [
    Reply(calls=[("todo_write", {"items": ["where the chair is", "may she return it"]})]),
    Reply(calls=[("look_up", {"customer": "Ada"})]),
    Reply("Nobody hears this.", delay=60),
    Reply(calls=[(DONE, {"id": 1, "status": "done"})]),
    Reply("Your chair is on its way."),
    Reply(calls=[(DONE, {"id": 2, "status": "done"})]),
    Reply("Your chair is on its way, and you may return it."),
    Reply("Dear Ada, your chair is on its way, and you may return it."),
    Reply(calls=[(DONE, {"id": 3, "status": "done"})]),
    Reply("Dear Ada, and here is a voucher."),
]
KILLED_AT = 3  # the request that is not answered


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server(SCRIPT)
    yield server
    server.close()


def started(folder: Path, env: dict[str, str], words: list[str]) -> subprocess.Popen[str]:
    """Run the page's program in a process of its own."""
    pipes: dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
    }
    options = {"cwd": folder, "env": env, "text": True, **pipes}
    if sys.platform.startswith("linux") and not Level.whole():
        return Forked(nursery_for(env), ["-m", "pipeline", *words], **options)
    return subprocess.Popen([sys.executable, "pipeline.py", *words], **options)


@pytest.mark.loopback
def test_the_page_runs_as_it_is(server: Server, tmp_path: Path) -> None:
    program, *steps = BLOCKS
    assert len(program.body.splitlines()) <= 60
    (tmp_path / "pipeline.py").write_text(program.body)
    env = os.environ | {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": server.url}
    behind: list[subprocess.Popen[str]] = []
    for command, shown in (step for block in steps for step in commands(block.body)):
        match shlex.split(command):
            case ["python", "pipeline.py", *words, "&"]:
                behind.append(started(tmp_path, env, words))
            case ["kill", "-9", "%1"]:
                until(lambda: len(server.requests) == KILLED_AT, behind[0])
                behind[0].kill()
                behind[0].communicate()
                assert behind[0].returncode == -9
            case ["python", "pipeline.py", *words]:
                out, err = (process := started(tmp_path, env, words)).communicate(timeout=60)
                assert (process.returncode, err) == (0, "")
                assert_shown(shown.rstrip(), out, command)
            case _:
                pytest.fail(f"The page has another command: {command}")
    assert len(server.requests) == len(SCRIPT)
    woken = server.requests[5]["messages"][-1]
    assert (woken["role"], woken["content"].partition(",")[0]) == (
        "user",
        "(automatic) 1 of 2 items open. Continue",
    )
    assert server.requests[KILLED_AT]["messages"] == server.requests[KILLED_AT - 1]["messages"]


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["letter"], ["answer", "yes", "no"], ["fly"]], ids=" ".join)
def test_without_its_words_the_program_says_which(tmp_path: Path, words: list[str]) -> None:
    program, *_ = BLOCKS
    (tmp_path / "pipeline.py").write_text(program.body)
    env = os.environ | {"OPENAI_API_KEY": "none"}
    _, err = (process := started(tmp_path, env, words)).communicate(timeout=60)
    assert (process.returncode, err) == (
        1,
        "Usage: letter TEXT, answer WORDS, add ITEM, or resume.\n",
    )


@pytest.mark.parametrize("words", [["resume"], ["answer", "yes"]], ids=" ".join)
def test_where_nothing_waits_the_program_says_so(tmp_path: Path, words: list[str]) -> None:
    program, *_ = BLOCKS
    (tmp_path / "pipeline.py").write_text(program.body)
    env = os.environ | {"OPENAI_API_KEY": "none"}
    _, err = (process := started(tmp_path, env, words)).communicate(timeout=60)
    said = "No letter waits, and none was interrupted: send a letter.\n"
    assert (process.returncode, err) == (1, said)


def commands(body: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block, and what it shows."""
    for step in body.removeprefix("$ ").split("\n$ "):
        command, _, shown = step.partition("\n")
        yield command, shown
