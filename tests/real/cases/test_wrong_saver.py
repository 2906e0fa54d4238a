"""Cases C31 and C32: the wrong saver for the mode, and an import in a new process."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rig import Rig, users

ROOT = Path(__file__).parents[3]


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


# -- C32 -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_c32_importing_it_needs_no_key_and_no_network() -> None:
    """As `langgraph.json` names it: only a factory, and no graph with its own saver."""
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
