"""Every captured request is checked after each test: rules 11 and 13 always hold."""

from collections.abc import Iterator
from typing import Any

import pytest
from agents import Make, Thread, settings
from langgraph.checkpoint.memory import InMemorySaver

from wakeloop import create_todo_agent
from wakeloop.testing import ScriptedModel, prompt_faults, wire_faults


@pytest.fixture(params=["sync", "async"])
def door(request: pytest.FixtureRequest) -> str:
    """The door through which an agent is run."""
    return request.param


@pytest.fixture
def thread(door: str) -> Iterator[Make]:
    """Make a thread of an agent on a script; afterwards wire, prompt and script are checked.

    `left=True` allows leftover replies, `rewritten=True` lets the prefix change (a hook rewrote it),
    `checked=False` checks no request (the test does it itself).
    """
    made: list[tuple[Any, bool, bool]] = []

    def make(
        *replies: Any,
        model: Any = None,
        left: bool = False,
        rewritten: bool = False,
        checked: bool = True,
        saver: Any = None,
        config: Any = None,
        **options: Any,
    ) -> Thread:
        changes = options.pop("change", None)
        if changes is not None:
            options["settings"] = settings(**changes)
        chat = model if model is not None else ScriptedModel(*replies)
        graph = create_todo_agent(chat, checkpointer=saver or InMemorySaver(), **options)
        if checked:
            made.append((chat, left or model is not None, rewritten))
        return Thread(graph, chat, door, config=config or {})

    yield make
    for model, unfinished, rewritten in made:
        assert wire_faults(model.requests) == []
        if not rewritten:
            assert prompt_faults(model.requests) == []
        if not unfinished:
            model.assert_done()
