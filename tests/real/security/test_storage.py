"""Stored data: plain, only for its owner, without code and keys."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from wakeloop import SettingsError
from wakeloop.cli.store import DatabaseFile, open_to_write
from wakeloop.config.files import read_yaml
from wakeloop.dialects import DIALECTS
from wakeloop.server import make_graph

KEY = "sk-0123456789abcdef"

EVERY_CHANNEL = """
import json, sqlite3, sys
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command, interrupt
from wakeloop import create_todo_agent, preset, session_of
from wakeloop.testing import ScriptedModel, calls, says

path, dialect, half = sys.argv[1:]
writes = {
    "parley": ("todo_write", {"items": ["a"]}),
    "loki": ("todo__add", {"task": "a"}),
    "checklist": ("todo", {"items": [{"id": "1", "text": "a", "status": "in_progress"}]}),
    "write_todos": ("write_todos", {"todos": [{"content": "a", "status": "in_progress"}]}),
}

@tool
def wait() -> Command:
    "Owe and wait."
    interrupt({"question": "?"})
    entry = {"id": "1", "on": "peer", "sender": "bob"}
    return Command(update={"owed_replies": [entry], "waiting_on": [{**entry, "id": "2"}]})

begin = [calls(writes[dialect], ("nothing", {})), calls(("wait", {}), writes[dialect])]
model = ScriptedModel(begin if half == "begin" else [says("x")] * 2)
settings = preset("wakeloop").model_copy(update={"dialect": dialect, "max_wake_cycles": 1})
connection = sqlite3.connect(path, check_same_thread=False)
agent = create_todo_agent(model, [wait], settings=settings, checkpointer=SqliteSaver(connection))
thread = {"configurable": {"thread_id": "t"}}
given = {
    "messages": [("user", "go")],
    "todo_goal": "all",
    "todo_settings": {"nag_after": 1},
    "todo_inbox": [{"kind": "peer_message", "id": "e", "sender": "bob", "text": "hi"}],
}
if half == "begin":
    agent.invoke(given, thread)
else:
    agent.invoke(Command(resume="yes"), thread)
snapshot = agent.get_state(thread)
values = {key: value for key, value in snapshot.values.items() if key != "messages"}
values["todo_ledger"] = sorted(values["todo_ledger"])
types = [message.type for message in snapshot.values["messages"]]
print(json.dumps([values, types, session_of(snapshot)], allow_nan=False))
connection.close()
"""


def half(path: Path, dialect: str, which: str, *, strict: bool) -> Any:
    """Run one half in another process, where a warning is an error and any log line shows."""
    env = {**os.environ, "LANGGRAPH_STRICT_MSGPACK": str(strict).lower(), "PYTHONWARNINGS": "error"}
    line = [sys.executable, "-c", EVERY_CHANNEL, str(path), dialect, which]
    done = subprocess.run(line, capture_output=True, text=True, env=env, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    for session in (told[0]["todo_session"], told[2]):
        if "spent" in session:
            session["spent"]["seconds"] = 0  # varies with the clock
    for waits in (told[0]["todo_session"], told[2], *told[0]["waiting_on"]):
        if "until" in waits:
            waits["until"] = 0
    return told


@pytest.mark.slow
@pytest.mark.rotating("dialect")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_strict_msgpack_changes_nothing_in_any_dialect(tmp_path: Path, dialect: str) -> None:
    strict, loose = (
        [half(tmp_path / f"{mode}.db", dialect, which, strict=mode) for which in ("begin", "end")]
        for mode in (True, False)
    )
    assert strict == loose
    values, _, session = strict[1]
    left = 1  # sent twice in a round of a whole list: refused; appended twice: named, not stored again
    told = {key: session[key] for key in ("list", "items", "spent")}
    became = dict.fromkeys(("completed", "cancelled", "blocked"), 0)
    counts = {"open": left, "wakes": 0, "budget": 1, **became, **told}
    assert session == {"state": "waiting", "reason": "waiting", "on": "peer", "until": 0, **counts}
    channels = {"todos", "todo_goal", "todo_session", "todo_inbox", "todo_settings", "todo_ledger"}
    assert set(values) == channels | {"owed_replies", "waiting_on", "todo_handoff", "todo_subagents"}
    assert strict[0][2]["reason"] == "interrupted"


def test_a_database_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with open_to_write(DatabaseFile(tmp_path / "db", named=True)) as store, store.hold("t"):
            store.connection.execute("CREATE TABLE x (y)")  # type: ignore[union-attr]
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("db", "db-locks", "db-shm", "db-wal"), 0o600)


@pytest.mark.parametrize(
    "text",
    [
        "model: !!python/object/apply:os.system [touch ran]",
        "model: !!python/name:os.system",
        "!!python/object/new:os.system [touch ran]",
        "model: !!python/module:os",
    ],
)
def test_a_configuration_names_no_python(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(SettingsError, match="could not determine a constructor"):
        read_yaml(tmp_path / "c.yaml")
    assert [path.name for path in tmp_path.iterdir()] == ["c.yaml"]


def test_a_servers_schemas_and_picture_hold_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("WAKELOOP_MODEL", "openai:m")
    make_graph.cache_clear()
    graph = make_graph()
    try:
        told = [
            graph.get_input_jsonschema(),
            graph.get_output_jsonschema(),
            graph.get_context_jsonschema(),
            graph.get_graph().to_json(),
            graph.config,
            repr(graph),
        ]
        assert KEY not in json.dumps(told, default=str)
    finally:
        make_graph.cache_clear()
