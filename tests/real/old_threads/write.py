"""Writes the old threads: `python write.py FOLDER`, run once with the code whose threads they are.

For each file that `files` tells of a database of threads (`NAME.sqlite.gz`), each begun in a process
of its own that may be killed, and beside it what the same code reads from them and what going on
with them brings (`NAME.json`). Later versions are held to these figures, so they are never written anew;
the threads of a later release get a folder of their own.
"""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import Any, NoReturn

from langgraph.checkpoint.sqlite import SqliteSaver
from more_stories import broken_off, others, progress, sessions
from old_agents import Letters, agent_of_story, continued, reply
from stories import PRESETS, Row, everywhere, parley

import wakeloop
from wakeloop.testing import ScriptedModel, calls

BEGIN = {"messages": [["user", "go"]]}
WIDTH = 120
ENDED, KILLED = 0, -signal.SIGKILL


def files() -> dict[str, list[Row]]:
    """The stories of each file, whole: a file a preset, and more of the first one's."""
    told = {name: (name, everywhere(name)) for name in PRESETS}
    told["killed"] = ("wakeloop", broken_off(parley("open"), parley("done")))
    told["sessions"] = ("wakeloop", sessions())
    told["others"] = ("wakeloop", others())
    told["progress"] = ("wakeloop", progress())
    return {
        file: [{"preset": name, "settings": PRESETS[name][1], "go_on": None, **story} for story in stories]
        for file, (name, stories) in told.items()
    }


def die() -> NoReturn:
    """End this process as a power cut would."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still here")


def waiting(request: list[Any]) -> Any:
    """A reply that waits for the subagent which the last results tell of."""
    handle = next(m.text for m in request if m.text.startswith("Started ")).split()[1].rstrip(".")
    return calls(("wait_for", {"handles": [handle]}, "wait"), id="m-wait")


def begin(database: Path, story: Row, log: Path) -> None:
    """Play what came before, in this process; it may not survive."""

    def note(text: str) -> None:
        with log.open("a") as file:
            file.write(f"{text}\n")

    steps = [
        waiting if row.get("wait_for") else reply(row, f"before{n}") for n, row in enumerate(story["before"])
    ]
    model, dies = ScriptedModel(steps), story.get("dies")
    config: Any = {"configurable": {"thread_id": story["thread"]}, "recursion_limit": story.get("limit", 100)}
    with closing(sqlite3.connect(database, check_same_thread=False)) as connection:
        saver = SqliteSaver(connection)
        agent = agent_of_story(story, model, saver, note, die if dies == "in a tool" else None, Letters())
        for given in [story.get("begin", BEGIN), story.get("then")]:
            if given is not None:
                with suppress(getattr(wakeloop, story["fails"])) if "fails" in story else nullcontext():
                    run(agent, given, config, *(dies or "").split())
        assert dies is None, f"{story['thread']} survived"
        model.assert_done()
        if "edit" in story:
            wakeloop.update_todos(agent, config, **story["edit"])


def run(agent: Any, given: Any, config: Any, node: str = "", times: str = "", *_: str) -> None:
    """Run; where a node is named, this process ends when that begins, for this many times."""
    left = int(times) if times.isdigit() else 0
    for event in agent.stream(given, config, stream_mode="tasks", durability="sync"):
        if event["name"] == node and "input" in event and (left := left - 1) == 0:
            time.sleep(0.5)  # what came before is stored by then
            die()


def apart(play: Callable[..., None], *args: Any) -> int | None:
    """Run in a process of its own; return how it ended."""
    process = multiprocessing.get_context("fork").Process(target=play, args=args)
    process.start()
    process.join()
    return process.exitcode


def written(database: Path, story: Row) -> Row:
    """Begin one thread, go on with a copy of it, and return the figures."""
    log = database.with_suffix(".log")
    log.unlink(missing_ok=True)
    code = apart(begin, database, story, log)
    assert code == (KILLED if "dies" in story else ENDED), (story["thread"], code)
    finished = log.read_text().splitlines() if log.exists() else []
    if key := story.get("reply_to"):
        with closing(sqlite3.connect(database)) as connection:
            at = {"configurable": {"thread_id": story["thread"]}}
            agent = agent_of_story(story, ScriptedModel(), SqliteSaver(connection), print)
            story["go_on"]["todo_inbox"][0][key] = agent.get_state(at).values["waiting_on"][0]["id"]
    copy = database.with_suffix(".copy")
    with closing(sqlite3.connect(database)) as one, closing(sqlite3.connect(copy)) as other:
        one.backup(other)
    before, after = continued(copy, story)
    copy.unlink()
    told = (
        "thread",
        "preset",
        "settings",
        "format",
        "sessions",
        "verified",
        "trimmed",
        "parent",
        "go_on",
        "after",
    )
    kept = {key: story[key] for key in told if key in story}
    return {**kept, "finished": sorted(finished), "stood": before, "brought": after}


def apart_from_system(figures: list[Row]) -> Row:
    """Tell the system prompt, the same in all requests, once."""
    [system] = {json.dumps(row["brought"]["requests"][0]["then"][0]) for row in figures if row["after"]}
    for row in figures:
        if row["after"]:
            row["brought"]["requests"][0]["then"][0] = "the system prompt"
    return {"system": json.loads(system), "threads": figures}


def packed(database: Path, to: Path) -> None:
    """Store a database, small."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("VACUUM")
    to.write_bytes(gzip.compress(database.read_bytes(), 9, mtime=0))


def laid_out(value: Any, indent: int = 0) -> str:
    """JSON with a line for each part that fits on one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= WIDTH or not isinstance(value, list | dict):
        return line
    named = isinstance(value, dict)
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    parts = [(f"{json.dumps(key)}: " if named else "") + laid_out(part, indent + 1) for key, part in pairs]
    inner = f",\n{' ' * (indent + 1)}".join(parts)
    left, right = "{}" if named else "[]"
    return f"{left}\n{' ' * (indent + 1)}{inner}\n{' ' * indent}{right}"


def main() -> None:
    """Write the threads of every preset into a folder."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    print(wakeloop.__file__)
    for name, stories in files().items():
        scratch = Path(tempfile.mkdtemp())
        database = scratch / "threads.sqlite"
        figures = apart_from_system([written(database, story) for story in stories])
        packed(database, folder / f"{name}.sqlite.gz")
        (folder / f"{name}.json").write_text(f"{laid_out(figures)}\n", encoding="utf-8")
        print(
            name,
            len(figures["threads"]),
            database.stat().st_size,
            (folder / f"{name}.sqlite.gz").stat().st_size,
        )
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
