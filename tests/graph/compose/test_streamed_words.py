"""With one condition, a loop that prints a stream's words prints only the model's."""

import asyncio
from typing import Any

import pytest
from laid_over import GO, THREAD, laid, look, looks, plan
from langgraph.checkpoint.memory import InMemorySaver

from wakeloop import create_todo_agent
from wakeloop.testing import ScriptedModel, calls, says

SCRIPT = [
    calls(plan("a")), says(""), says(""),  # the turn ends, and an assistant's line is added after the results
    calls(looks(1)), says("I stop."), says("I stop again."),  # wakes, and a correction
    calls(plan("a!")), says("Bye."),
]  # fmt: skip
WORDS = ["I stop.", "I stop again.", "Bye."]
ENOUGH = {"max_wake_cycles": 2, "on_question": "wake"}


def make(kind: str, model: ScriptedModel) -> Any:
    settings = {"preset": "langchain", **ENOUGH}
    if kind == "middleware":
        return laid(model, settings=settings)
    return create_todo_agent(model, [look], settings=settings, checkpointer=InMemorySaver())


def is_hidden(key: str | None) -> bool:
    return (key or "").startswith("do-not-render-")


def read(parts: list[Any]) -> tuple[str, int]:
    """Return the words of all tokens except tools', and the number of hidden messages."""
    tokens = [token for token, _ in parts if token.type != "tool"]
    words = "".join(token.text for token in tokens if not is_hidden(token.id))
    return words, sum(is_hidden(token.id) for token in tokens)


async def collect(stream: Any) -> list[Any]:
    return [part async for part in stream]


@pytest.mark.parametrize("kind", ["graph", "middleware"])
@pytest.mark.parametrize("door", ["v1", "v2", "v1, async", "v2, async"])
def test_tokens_without_hidden_messages_are_the_models_words(kind: str, door: str) -> None:
    model = ScriptedModel(*SCRIPT)
    agent, version = make(kind, model), door[:2]
    if "async" in door:
        parts = asyncio.run(collect(agent.astream(GO, THREAD, stream_mode="messages", version=version)))
    else:
        parts = list(agent.stream(GO, THREAD, stream_mode="messages", version=version))
    words, hidden = read(parts if version == "v1" else [part["data"] for part in parts])
    assert words == "".join(WORDS)
    assert hidden >= 3
    model.assert_done()


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
@pytest.mark.parametrize("kind", ["graph", "middleware"])
def test_messages_of_version_3_without_hidden_ones_are_the_models(kind: str) -> None:
    """There, a nudge looks like a message of the model."""
    model = ScriptedModel(*SCRIPT)
    run = make(kind, model).stream_events(GO, THREAD, version="v3")
    said = [(message.message_id, str(message.text)) for message in run.messages]
    assert [text for key, text in said if text and not is_hidden(key)] == WORDS
    assert sum(is_hidden(key) for key, _ in said) >= 3
    model.assert_done()
