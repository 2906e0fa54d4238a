"""A row that somebody else wrote fails closed."""

import itertools
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command, interrupt

from wakeloop import DamagedError, WakeloopError, create_todo_agent, session_of
from wakeloop.testing import ScriptedModel, calls, says

THREAD: Any = {"configurable": {"thread_id": "t"}}
NEWEST = "(SELECT MAX(checkpoint_id) FROM checkpoints)"


@tool
def ask() -> str:
    """Ask the person."""
    return str(interrupt("?"))


def saver(connection: sqlite3.Connection) -> SqliteSaver:
    """A saver that is strict, whatever the environment says."""
    return SqliteSaver(connection, serde=JsonPlusSerializer(allowed_msgpack_modules=None))


def start_thread(connection: sqlite3.Connection, *, parked: bool) -> None:
    """Start a thread with two items, parked at a question or stalled."""
    end = calls(("ask", {})) if parked else says("x")
    model = ScriptedModel([calls(("todo_write", {"items": ["a", "b"]})), *[end] * (1 if parked else 7)])
    create_todo_agent(model, [ask], checkpointer=saver(connection)).invoke(
        {"messages": [("user", "go")]}, THREAD
    )
    model.assert_done()


def unpack(blob: bytes) -> Any:
    """Unpack a blob, leaving its extensions as they are."""
    return ormsgpack.unpackb(blob, ext_hook=ormsgpack.Ext, option=ormsgpack.OPT_NON_STR_KEYS)


def change_checkpoint(connection: sqlite3.Connection, change: Callable[[dict[str, Any]], None]) -> None:
    """Write other values into the newest checkpoint."""
    (blob,) = connection.execute(
        f"SELECT checkpoint FROM checkpoints WHERE checkpoint_id = {NEWEST}"
    ).fetchone()
    checkpoint = unpack(blob)
    change(checkpoint["channel_values"])
    put(connection, "msgpack", ormsgpack.packb(checkpoint))


def put(connection: sqlite3.Connection, kind: str, blob: bytes) -> None:
    """Replace the newest checkpoint."""
    connection.execute(
        f"UPDATE checkpoints SET type = ?, checkpoint = ? WHERE checkpoint_id = {NEWEST}", (kind, blob)
    )
    connection.commit()


def try_every_way(connection: sqlite3.Connection) -> Iterator[tuple[str, int, Any]]:
    """Read and run a thread in every way; yield the way, the requests, and the session or the exception."""
    ways: dict[str, Callable[[Any, Any], Any]] = {
        "read": lambda agent, config: session_of(agent.get_state(config)),
        "continue": lambda agent, config: agent.invoke(None, config),
        "answer": lambda agent, config: agent.invoke(Command(resume="yes"), config),
        "message": lambda agent, config: agent.invoke({"messages": [("user", "more")]}, config),
    }
    for way, do in ways.items():
        with closing(sqlite3.connect(":memory:", check_same_thread=False)) as copy:
            connection.backup(copy)
            model = ScriptedModel([says("y")] * 100)
            agent = create_todo_agent(model, [ask], checkpointer=saver(copy))
            try:
                result = do(agent, {**THREAD, "recursion_limit": 60})
            except Exception as error:  # noqa: BLE001 - the test examines it
                result = error
            yield way, len(model.requests), result


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection:
        yield connection


LEDGERS: list[Any] = [
    {"wake_cycles": -(10**9)},
    {"idle_wakes": -1},
    {"todo_stale_iterations": 2**60},
    {"wake_cycles": "1"},
    {"wake_cycles": True},
    {"wake_cycles": None},
    {"next_id": 1.5},
    {"todo_guard_retries": -5},
    {"todo_calls": "call"},
    {"refusals": [1]},
    {"events": 5},
    {"seen": 5},
    {"settings": "x"},
    {"end": 5},
    {"waking": "yes"},
    {"todo_guard_blocked": "x"},
]
CHANNELS: list[Any] = [
    *({"todo_ledger": value} for value in ([1], "x", 5, [["a", 1]], True)),
    *({"todos": value} for value in (["a"], 5, "ab", {"all": []}, [{"id": 1}], [[]], [{"content": 5}])),
    {"todos": [{"id": 1, "content": "a", "status": "run"}]},
    *({"messages": value} for value in (5, "x", {"role": "user"})),
    *({"todo_session": value} for value in ("x", 5, ["state"])),
    *({"todo_settings": value} for value in ("x", 5)),
    {"todo_goal": ["x"]},
]


@pytest.mark.slow
@pytest.mark.parametrize("parked", [False, True])
@pytest.mark.parametrize("ledger", LEDGERS, ids=repr)
def test_notes_that_the_graph_cannot_have_written(db: sqlite3.Connection, ledger: Any, parked: bool) -> None:
    start_thread(db, parked=parked)
    change_checkpoint(db, lambda values: values["todo_ledger"].update(ledger))
    # an ended thread has nothing to continue, and a question is only asked again
    idle = ("continue",) if parked else ("continue", "answer")
    for way, requests, result in try_every_way(db):
        assert requests == 0
        assert isinstance(result, DamagedError) or way in idle, (way, result)


@pytest.mark.slow
@pytest.mark.parametrize("parked", [False, True])
@pytest.mark.parametrize("channels", CHANNELS, ids=repr)
def test_channels_of_another_shape(db: sqlite3.Connection, channels: Any, parked: bool) -> None:
    start_thread(db, parked=parked)
    change_checkpoint(db, lambda values: values.update(channels))
    results = {way: (requests, result) for way, requests, result in try_every_way(db)}
    assert isinstance(results["read"][1], DamagedError)
    assert results["message"][0] == 0
    assert isinstance(results["message"][1], DamagedError)
    for requests, result in results.values():
        assert requests <= 7  # an answered question continues with the list as its notes have it
        assert not isinstance(result, Exception) or isinstance(result, WakeloopError), result


@pytest.mark.parametrize("values", [{}, {"max_wake_cycles": 10**9, "max_idle_wakes": 0}])
def test_settings_in_the_notes_remove_no_limit(db: sqlite3.Connection, values: Any) -> None:
    start_thread(db, parked=True)
    change_checkpoint(db, lambda channels: channels["todo_ledger"].update(settings=values))
    asked = {way: requests for way, requests, _ in try_every_way(db)}
    assert all(requests <= (60 - 3) / 2 for requests in asked.values())


def blobs() -> Iterator[tuple[str, str, bytes]]:
    """Yield rows that try to run code, or are invalid."""
    command = f"touch {{}}{os.sep}ran"
    for code, module, name in itertools.product(range(7), ("os", "builtins"), ("system", "exec")):
        inner = [
            module,
            name,
            [command] if code == 1 else {"command": command} if code > 1 else command,
            "run",
        ]
        value = ormsgpack.Ext(code, ormsgpack.packb(inner))
        yield f"ext {code} {module}.{name}", "msgpack", ormsgpack.packb({"channel_values": {"todos": value}})
    yield "lc", "json", b'{"lc":2,"type":"constructor","id":["os","system"],"args":["touch {}/ran"]}'
    yield (
        "lc 1",
        "json",
        b'{"lc":1,"type":"constructor","id":["os","system"],"kwargs":{"command":"touch {}/ran"}}',
    )
    yield "pickle", "pickle", b"cos\nsystem\n(S'touch {}/ran'\ntR."
    yield "nonsense", "msgpack", b"\xc1\xc1"
    yield "nothing", "msgpack", b""
    yield "another type", "python", b"import os"
    yield "a list", "msgpack", ormsgpack.packb([1, 2])
    yield "null", "null", b""
    yield "deep", "msgpack", b"\x91" * 5_000 + b"\xc0"


BLOBS = list(blobs())


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "blob"), [row[1:] for row in BLOBS], ids=[row[0] for row in BLOBS])
def test_no_row_runs_code(db: sqlite3.Connection, kind: str, blob: bytes, tmp_path: Path) -> None:
    start_thread(db, parked=True)
    put(db, kind, blob.replace(b"{}", str(tmp_path).encode()))
    for _, requests, result in try_every_way(db):
        assert requests == 0 or not isinstance(result, Exception)
        assert list(tmp_path.iterdir()) == []
    with pytest.raises(Exception):  # noqa: B017, PT011 - the saver's own, where it is one
        saver(db).get_tuple(THREAD).checkpoint["channel_values"]["todo_ledger"]  # type: ignore[union-attr]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_blob_that_was_cut_short(db: sqlite3.Connection, share: float) -> None:
    start_thread(db, parked=True)
    (blob,) = db.execute(f"SELECT checkpoint FROM checkpoints WHERE checkpoint_id = {NEWEST}").fetchone()
    put(db, "msgpack", blob[: int(len(blob) * share)])
    for _, requests, result in try_every_way(db):
        assert requests == 0
        assert isinstance(result, Exception)
