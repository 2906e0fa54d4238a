"""The graph of `langgraph.json` loads without a key or a network."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wakeloop import ModelSetupError, server
from wakeloop.testing import ScriptedModel, calls, says

ROOT = Path(__file__).parents[3]
GO = {"messages": [("user", "go")]}


def factory() -> Any:
    """Load the factory as a server does, by the path in `langgraph.json`."""
    path, name = json.loads((ROOT / "langgraph.json").read_text())["graphs"]["wakeloop"].split(":")
    spec = importlib.util.spec_from_file_location("graph_of_the_server", ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def test_it_loads_without_a_key_and_without_a_saver() -> None:
    graph = factory()()
    assert graph.checkpointer is None
    assert graph.name == "wakeloop"
    assert "finalization_guard" in graph.get_graph().nodes


def test_a_read_costs_nothing() -> None:
    make_graph = factory()
    assert make_graph() is make_graph()


def test_a_run_without_a_model_says_what_to_set() -> None:
    """As a ValueError, because a server shows only the name of most other classes."""
    with pytest.raises(ModelSetupError, match="WAKELOOP_MODEL") as raised:
        factory()().invoke(GO)
    assert isinstance(raised.value, ValueError)


def test_a_run_without_a_key_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAKELOOP_MODEL", "openai:some-model")
    with pytest.raises(ModelSetupError, match="OPENAI_API_KEY"):
        factory()().invoke(GO)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedModel]:
    scripted = ScriptedModel(
        calls(("todo_write", {"items": ["a"]})),
        calls(("todo_update", {"id": 1, "status": "done"})),
        says("Done."),
    )
    monkeypatch.setenv("WAKELOOP_MODEL", "openai:some-model")
    monkeypatch.setattr(server, "create_model", lambda name: scripted)
    server.make_graph.cache_clear()
    yield scripted
    server.make_graph.cache_clear()


def test_the_named_model_is_asked_with_the_tools(model: ScriptedModel) -> None:
    assert server.make_graph().invoke(GO)["todo_session"]["reason"] == "settled"
    assert len(model.requests) == 3


async def test_the_named_model_is_awaited_with_the_tools(model: ScriptedModel) -> None:
    assert (await server.make_graph().ainvoke(GO))["todo_session"]["reason"] == "settled"
    assert len(model.requests) == 3
