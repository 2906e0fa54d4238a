"""Cases C31 and C32: running loops, savers of the wrong kind, a server."""

import asyncio
from typing import Any

import pytest
from langchain_core.tools import tool
from rig import Rig, close, marks, results, users, write

from wakeloop import answer_of, server
from wakeloop.errors import InputError, ToolError
from wakeloop.testing import ScriptedModel, calls, says

# -- C31 -------------------------------------------------------------------------------------------------


@tool
async def slow() -> str:
    """Wait a moment: it has only an asynchronous version."""
    await asyncio.sleep(0)
    return "waited"


def in_a_cell(rig: Rig, given: Any) -> dict[str, Any]:
    """Run as in a notebook cell, where an event loop is always running, whatever the door."""

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
    """They run in a loop; a synchronous run says what to do, and the thread continues."""
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
            assert rig.session["state"] == "failed"
    rig.model.assert_done()
    rig.follow_up()


def test_c31_a_saver_without_a_thread(kept: Rig) -> None:
    kept.build("never asked")
    thread, kept.config = kept.config, {}
    with pytest.raises(InputError, match="thread_id"):
        kept.run("go")
    assert kept.model.requests == []
    kept.config = thread
    assert kept.state == {}
    kept.follow_up()
    assert len(users(kept.messages)) == 1


def test_c32_a_server_uses_its_own_saver(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exported graph through every door, with the saver that a server puts in, and without."""
    model = ScriptedModel(write("a"), says("stop"), close(1), says("Done."), says("Hello."))
    monkeypatch.setenv("WAKELOOP_MODEL", "openai:some-model")
    monkeypatch.setattr(server, "create_model", lambda _: model)
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
