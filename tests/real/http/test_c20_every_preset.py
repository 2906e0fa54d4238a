"""Case C20 for every preset: defaults over many turns, and a server that accepts no breach of order."""

from typing import Any

import pytest
from langchain_core.messages import SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from served import THREAD, Serve, by_invoke, by_stream, called, marks, said, users
from shared_tools import ask, look

from wakeloop import create_todo_agent, preset
from wakeloop.presets import PRESETS
from wakeloop.testing import prompt_faults, wire_faults

pytestmark = pytest.mark.loopback

PLAN: dict[str, tuple[str, dict[str, Any]]] = {
    "parley": ("todo_write", {"items": ["a", "b"]}),
    "loki": ("todo__add", {"task": "a"}),
    "checklist": ("todo", {"items": [{"id": "1", "text": "a", "status": "in_progress"}]}),
    "write_todos": ("write_todos", {"todos": [{"content": "a", "status": "in_progress"}]}),
}
SYSTEMS = {**PRESETS, "loki that wakes": preset("loki").model_copy(update={"auto_continue": True})}
HALF = said("Half", finish_reason="length")
STILL = said("Still here.", forever=True)

REQUESTS = {  # 9 replies of the first script and the last one, then the wakes and corrections; 3; 1; 1
    # in these two, an empty reply over open items is asked for again once
    "wakeloop": (10 + 5 + 1, 1, 4 + 5 + 1, 2 + 5 + 1),
    "langchain": (10 + 5 + 1, 1, 4 + 5 + 1, 2 + 5 + 1),
    "agentparley": (10 + 25, 1, 3 + 25, 2 + 25),
    "loki": (10, 1, 3, 2),
    "loki that wakes": (10 + 1, 1, 3 + 2, 2 + 1),
    "lesson": (10, 1, 3, 2),
    "cubepi": (10 + 1, 1, 3 + 1, 2 + 1),
    "cubepi-strict": (10 + 2 + 1, 1, 3, 2),  # after its explanation the guard is off
}
KINDS = {
    "wakeloop": {"wake", "nag", "guard", "retry", "repair", "activate"},  # what is still open from before
    "langchain": {"wake", "nag", "guard", "retry", "repair", "activate"},
    "agentparley": {"wake", "retry", "repair"},
    "loki": {"retry", "repair"},
    "loki that wakes": {"wake", "retry", "repair"},
    "lesson": {"nag", "retry", "repair"},
    "cubepi": {"nag", "guard", "retry", "repair"},
    "cubepi-strict": {"nag", "guard", "retry", "repair"},
}


@pytest.mark.slow
@pytest.mark.covering("name", "door")
@pytest.mark.parametrize("door", [by_invoke, by_stream])
@pytest.mark.parametrize("name", SYSTEMS)
def test_c20_every_preset_passes(serve: Serve, name: str, door: Any) -> None:
    plan = PLAN[SYSTEMS[name].dialect]
    looks = [called(("look", {"place": str(n)}), ("look", {"place": f"{n}b"})) for n in range(6)]
    activations = {
        "go": [
            called(plan),
            *looks,
            called(("look", '{"place": ')),
            said("Half", finish_reason="length"),
            STILL,
        ],
        "what now": [called(("ask", {"question": "Which?"}), ("look", {"place": "z"}))],
        "never mind": [
            called(("nothing", {}), (plan[0], "{no json"), (plan[0], {"what": 1})),
            called(("look", '{"place": "c'), finish_reason="stop"),
            said(""),
            STILL,
        ],
        "close": [called((plan[0], {}), finish_reason="length"), STILL],
    }
    saver = InMemorySaver()
    received: list[Any] = []
    counts = []
    for text, replies in activations.items():
        server = serve(*replies)
        agent = create_todo_agent(
            server.model(),
            [look, ask],
            settings=SYSTEMS[name],
            system_prompt="House rules.",
            checkpointer=saver,
        )
        door(agent, {"messages": [SystemMessage("Be terse."), ("user", text)]})
        received += server.requests
        counts.append(len(server.requests))
    assert wire_faults(received) == []
    assert prompt_faults(received) == []
    messages = agent.get_state(THREAD).values["messages"]
    assert users(messages) == list(activations)
    assert tuple(counts) == REQUESTS[name]
    assert set(marks(messages)) == KINDS[name]
