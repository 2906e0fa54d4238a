"""Cases C28 and C30: what a thread costs, and how it is written."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from langchain_core.messages import AIMessage
from rig import DOORS, Rig, statuses

from wakeloop import preset
from wakeloop.testing import calls, says

HERE = Path(__file__).parent
ONE_WAKE = preset("wakeloop").model_copy(
    update={"max_wake_cycles": 1, "guard_retries": 0, "max_idle_wakes": 0}
)
PLAN = calls(("todo_write", {"items": ["a"]}, "w"))
WAKING = pytest.mark.parametrize("waking", [False, True], ids=["plain", "waking"])

# -- C28 -------------------------------------------------------------------------------------------------


def talking(rig: Rig, count: int, *, waking: bool) -> None:
    """An agent that answers with 1 kB; over an open list each turn wakes once and then waits."""
    texts = [counted(says("x" * 1000))] * count * (2 if waking else 1)
    rig.build(*([counted(PLAN)] if waking else []), *texts, settings=ONE_WAKE)


def counted(reply: AIMessage) -> AIMessage:
    """Return a reply that reports its tokens, because an estimate would sometimes grow by a byte."""
    usage = {"input_tokens": 1000, "output_tokens": 250, "total_tokens": 1250}
    return reply.model_copy(update={"usage_metadata": usage})


def stored(rig: Rig) -> tuple[int, int, int]:
    """Return checkpoints, bytes written to our own channels, bytes written to all others."""
    if not rig.requests:
        return 0, 0, 0  # a saver makes its tables at the first run
    if rig.kind == "memory":
        steps = sum(len(rows) for spaces in rig.saver.storage.values() for rows in spaces.values())
        written = [(w[1], len(w[2][1])) for task in rig.saver.writes.values() for w in task.values()]
    else:
        with closing(sqlite3.connect(rig.path)) as connection:
            ((steps,),) = connection.execute("SELECT count(*) FROM checkpoints").fetchall()
            written = connection.execute("SELECT channel, length(value) FROM writes").fetchall()
    own = sum(size for channel, size in written if channel.startswith("todo"))
    return steps, own, sum(size for _, size in written) - own


def row_sizes(rig: Rig) -> list[int]:
    """Return the bytes of each row of `checkpoints`."""
    with closing(sqlite3.connect(rig.path)) as connection:
        rows = connection.execute(
            "SELECT length(checkpoint) + length(metadata) FROM checkpoints ORDER BY checkpoint_id"
        )
        return [size for (size,) in rows]


def block(rig: Rig, turns: int) -> tuple[int, int, int]:
    """Return what these turns added."""
    before = stored(rig)
    for _ in range(turns):
        rig.run("go on")
    steps, own, others = (new - old for new, old in zip(stored(rig), before, strict=True))
    return steps, own, others


@WAKING
def test_c28_every_door_and_saver_stores_the_same(kept: Rig, waking: bool) -> None:
    """A plain turn is 5 checkpoints, a turn with a wake 8; the plan is 2 more."""
    talking(kept, 40, waking=waking)
    first, second = block(kept, 20), block(kept, 20)
    kept.model.assert_done()
    assert first[:2] == ((162, 72936) if waking else (100, 23274))
    assert second[:2] == ((160, 73836) if waking else (100, 23422))
    if kept.kind == "sqlite":
        assert max(row_sizes(kept)) < 5_000  # names, versions, a waiting message; no history
    kept.follow_up()


@pytest.mark.large
@WAKING
def test_c28_storage_grows_linearly(tmp_path: Path, waking: bool) -> None:
    """200 turns: the last 50 add exactly as many bytes as the 50 before them."""
    rig = Rig("invoke", "sqlite", tmp_path / "threads.db")
    rig.saver.conn.execute("PRAGMA synchronous=OFF")
    talking(rig, 200, waking=waking)
    blocks = [block(rig, 50) for _ in range(4)]
    assert blocks[3] == blocks[2]
    assert blocks[2][:2] == ((400, 184800) if waking else (250, 58750))
    rows = row_sizes(rig)
    # now and then LangGraph stores the messages whole; otherwise a row holds only names and versions
    assert len([size for size in rows if size > 10_000]) == (1 if waking else 0)
    # while a run waits for a person, its session and its entry in `waiting_on` hold the message of 1 kB
    assert max(size for size in rows if size <= 10_000) < 3_000 + (2_000 if waking else 0)
    rig.follow_up()
    rig.check()
    rig.shut()


# -- C30 -------------------------------------------------------------------------------------------------

PATHS = [f"{door}-{saver}" for door, savers in DOORS.items() for saver in savers if saver != "none"]


def half(folder: Path, which: str, *, strict: bool) -> dict[str, Any]:
    """Run one half in a new process, through every door; return the thread's state by door and saver."""
    env = {
        **os.environ,
        "LANGGRAPH_STRICT_MSGPACK": "true" if strict else "false",
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYTHONWARNINGS": "error",
    }
    command = [sys.executable, str(HERE / "fresh_process.py"), str(folder), which]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return dict(json.loads(done.stdout))


@pytest.mark.timeout(300)  # four new processes in turn
def test_c30_strict_msgpack_in_new_processes(tmp_path: Path) -> None:
    """No allow-list, no warning, the same behaviour; a thread in memory lives in the first process."""
    strict, loose = tmp_path / "strict", tmp_path / "loose"
    for folder in (strict, loose):
        folder.mkdir()
    begun, ended = (half(strict, which, strict=True) for which in ("begin", "end"))
    assert begun == half(loose, "begin", strict=False)
    assert ended == half(loose, "end", strict=False)
    one, *others = begun.values()
    assert others == [one] * 7
    assert one["session"]["reason"] == "interrupted"
    assert one["ledger"]["wake_cycles"] == 1
    assert one["ledger"]["refusals"] == {"2": 1}
    assert one["todo_settings"] == {"max_wake_cycles": 7}
    end, *others = ended.values()
    assert others == [end] * 3
    assert list(begun) == [*PATHS]
    assert list(ended) == [path for path in PATHS if "sqlite" in path]
    assert end["structured_response"] == {"number": 7}
    assert statuses(end["todos"]) == ["completed", "blocked", "completed"]
    assert end["session"] == {
        "state": "dormant",
        "reason": "settled",
        "open": 0,
        "completed": 2,
        "cancelled": 0,
        "blocked": 1,
        "verified": True,
        "wakes": 0,
        "budget": 8,
        "list": ANY,
        "items": 3,
        "spent": ANY,
    }
    kinds = [kind for *_, kind in end["messages"] if kind]
    # the second nag is about the repeated call, the third about the item that a person added
    assert kinds == ["nag", "nag", "wake", "retry", "wake", "format", "format", "nag", "format", "format"]
    no_type_of_ours_is_stored(strict)


def no_type_of_ours_is_stored(folder: Path) -> None:
    """Assert that the rows hold only plain JSON or langchain messages."""
    files = sorted(folder.glob("*.db"))
    assert len(files) == 4
    for file in files:
        with closing(sqlite3.connect(file)) as connection:
            rows = connection.execute(
                "SELECT value FROM writes UNION ALL SELECT checkpoint FROM checkpoints"
            ).fetchall()
        assert len(rows) > 20
        assert not [row for (row,) in rows if b"wakeloop." in row]
