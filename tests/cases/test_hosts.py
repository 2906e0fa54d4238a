"""Cases C31 and C32: running loops, savers of the wrong kind, a server."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool
from rig import Rig, close, marks, results, users, write

from wakeloop import answer_of, server
from wakeloop.errors import ToolError
from wakeloop.testing import ScriptedModel, calls, says

ROOT = Path(__file__).parents[2]

# -- C31 -------------------------------------------------------------------------------------------------


@tool
async def slow() -> str:
    """Wait a moment: there is no synchronous way."""
    await asyncio.sleep(0)
    return "waited"


def in_a_cell(rig: Rig, given: Any) -> dict[str, Any]:
    """Run as in a notebook's cell: an event loop is running, whatever the door."""

    async def cell() -> dict[str, Any]:
        return rig.run(given)

    return rig.run(given) if rig.runner is not None else asyncio.run(cell())


def test_c31_inside_a_running_loop(rig: Rig) -> None:
    rig.build(write("a"), "stop", close(1), "Done.")
    out = in_a_cell(rig, "go")
    rig.model.assert_done()
    assert answer_of(out) == "Done."
    assert rig.ending == ("dormant", "settled", 1)
    rig.then("Hello.")
    assert answer_of(in_a_cell(rig, "hello")) == "Hello."
    assert users(rig.messages) == ["go", "hello"]
    rig.follow_up()


def test_c31_async_only_tools(rig: Rig) -> None:
    """They run in a loop; a synchronous run says what to do, and the thread goes on."""
    asynchronous = rig.runner is not None
    rig.build(write("a"), calls(("slow", {})), *([close(1), "Done."] if asynchronous else []), tools=[slow])
    if asynchronous:
        rig.run("go")
        assert [m.content for m in results(rig.messages) if m.name == "slow"] == ["waited"]
        assert rig.ending == ("dormant", "settled", 0)
    else:
        with pytest.raises(ToolError, match="ainvoke"):
            rig.run("go")
        if rig.keeps:
            assert rig.session["state"] == "running"
    rig.model.assert_done()
    rig.follow_up()


@pytest.fixture(params=["ainvoke", "astream"])
def on_sqlite(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """An asynchronous door, a synchronous saver."""
    rig = Rig(request.param, "sqlite", tmp_path / "threads.db")
    yield rig
    rig.check()
    rig.shut()


def test_c31_a_synchronous_saver_in_an_asynchronous_run(on_sqlite: Rig) -> None:
    rig = on_sqlite
    rig.build("never asked")
    with pytest.raises(NotImplementedError, match="AsyncSqliteSaver"):
        rig.run("go")
    assert rig.model.requests == []
    assert rig.agent.get_state(rig.config).values == {}
    runner, rig.runner = rig.runner, None
    rig.door = rig.door.removeprefix("a")
    rig.follow_up()
    assert users(rig.messages) == ["A second message, byte for byte: \u00e9\n  \t."]
    rig.runner = runner


@pytest.mark.parametrize("door", ["invoke", "stream"])
def test_c31_an_asynchronous_saver_in_a_synchronous_run(tmp_path: Path, door: str) -> None:
    rig = Rig("ainvoke", "asqlite", tmp_path / "threads.db")
    rig.build("never asked")

    async def cell() -> None:
        runner, rig.runner, rig.door = rig.runner, None, door
        try:
            rig.run("go")
        finally:
            rig.runner, rig.door = runner, "ainvoke"

    with pytest.raises(asyncio.InvalidStateError, match="different thread"):
        rig.wait(cell())
    assert rig.model.requests == []
    assert rig.state == {}
    rig.follow_up()
    assert len(users(rig.messages)) == 1
    rig.check()
    rig.shut()


def test_c31_a_saver_without_a_thread(kept: Rig) -> None:
    kept.build("never asked")
    thread, kept.config = kept.config, {}
    with pytest.raises(ValueError, match="thread_id"):
        kept.run("go")
    assert kept.model.requests == []
    kept.config = thread
    assert kept.state == {}
    kept.follow_up()
    assert len(users(kept.messages)) == 1


# -- C32 -------------------------------------------------------------------------------------------------


def test_c32_importing_it_needs_no_key_and_no_network() -> None:
    """As `langgraph.json` names it: a factory, and no graph with a saver of its own beside it."""
    path, name = json.loads((ROOT / "langgraph.json").read_text())["graphs"]["wakeloop"].split(":")
    program = f"""
import importlib.util, socket
class Shut(socket.socket):
    def __init__(self, *a, **k): raise AssertionError("a socket at import")
socket.socket = Shut
spec = importlib.util.spec_from_file_location("exported", {str(ROOT / path)!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
from langgraph.graph.state import CompiledStateGraph
graph = getattr(module, {name!r})()
assert isinstance(graph, CompiledStateGraph)
assert graph.checkpointer is None and graph.store is None
assert not [v for v in vars(module).values() if isinstance(v, CompiledStateGraph)]
print("fine")
"""
    env = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=env, timeout=60, check=False
    )
    assert done.stdout == "fine\n", done.stderr


def test_c32_a_server_brings_its_own_saver(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exported graph through every door, with the saver that a server puts in, and without."""
    model = ScriptedModel(write("a"), says("stop"), close(1), says("Done."), says("Hello."))
    monkeypatch.setenv("WAKELOOP_MODEL", "openai:some-model")
    monkeypatch.setattr(server, "model_named", lambda _: model)
    server.make_graph.cache_clear()
    exported = server.make_graph()
    rig.agent = exported.copy({"checkpointer": rig.saver})
    rig.model, rig.models = model, [model]
    out = rig.run("go")
    assert answer_of(out) == "Done."
    assert rig.ending == ("dormant", "settled", 1)
    assert marks(rig.messages) == ["wake"]
    assert answer_of(rig.run("hello")) == "Hello."
    assert users(rig.messages) == ["go", "hello"]
    model.assert_done()
    assert exported.checkpointer is None
    assert exported.store is None
    server.make_graph.cache_clear()
    rig.follow_up()
