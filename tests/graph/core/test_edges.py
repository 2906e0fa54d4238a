"""Edges that no other test reaches: wrong names, late changes, refusals in each dialect's words."""

import json
import sys
from dataclasses import dataclass
from typing import Any

import pytest
from agents import Make, session, settings, write
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command

from wakeloop import create_todo_agent, session_of
from wakeloop.errors import InputError, ModelSetupError, SettingsError
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.model.chat_models import create_openai_model
from wakeloop.presets import preset
from wakeloop.testing import ScriptedModel, calls, walk, wire_faults


@dataclass
class Context:
    """A context as a program may have it."""

    todo_settings: Any = None


@pytest.mark.parametrize("given", [7, "x", [1]])
def test_a_context_whose_settings_are_not_a_mapping_is_refused(given: Any) -> None:
    model = ScriptedModel("never")
    agent = create_todo_agent(model, context_schema=Context)
    with pytest.raises(InputError, match=r"The context's todo_settings must map settings to values, got "):
        agent.invoke({"messages": [("user", "go")]}, context=Context(given))
    assert model.requests == []


def test_a_context_without_settings_changes_nothing() -> None:
    agent = create_todo_agent(ScriptedModel("hi"), context_schema=Context)
    output = agent.invoke({"messages": [("user", "go")]}, context=Context())
    assert output["todo_session"] == session("dormant", "answered", 0)


def test_a_word_that_the_dialect_lacks_is_refused_when_the_agent_is_built() -> None:
    with pytest.raises(
        SettingsError, match="The dialect 'parley' has no status 'finished'; it has in_progress"
    ):
        create_todo_agent(ScriptedModel("hi"), settings=settings(statuses=("done", "finished")))


def test_a_model_is_a_name_or_a_chat_model() -> None:
    with pytest.raises(ModelSetupError, match="got an int"):
        create_todo_agent(7)  # type: ignore[arg-type]
    for name in ("", "openai:"):
        with pytest.raises(ModelSetupError, match="The model name is empty"):
            create_todo_agent(name)


def test_a_model_by_name_gets_the_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    assert create_todo_agent("openai:some-model").name == "wakeloop"
    assert create_todo_agent("some-model").name == "wakeloop"


def test_a_model_by_name_needs_a_key() -> None:
    with pytest.raises(ModelSetupError, match="The model has no API key: set OPENAI_API_KEY"):
        create_todo_agent("some-model")


def test_an_address_without_its_scheme_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "127.0.0.1:8000/v1")
    with pytest.raises(ModelSetupError, match="OPENAI_BASE_URL must be an address"):
        create_todo_agent("some-model")


@pytest.mark.parametrize("given", [["http://h/v1"], 8000, b"http://h/v1", "http://h:x/v1", "http://[h/v1"])
def test_anything_but_an_address_is_refused_in_one_sentence(given: Any) -> None:
    with pytest.raises(ModelSetupError, match="base_url must be an address"):
        create_openai_model("some-model", base_url=given)


OWN = "For a model of your own server write "
OPNAI = (
    "The model 'opnai:gpt-5' cannot be created: the provider 'opnai' is unknown. "
    f"Did you mean 'openai:gpt-5'? {OWN}'openai:opnai:gpt-5'."
)
TINY = f"The model 'tiny:3b' cannot be created: the provider 'tiny' is unknown. {OWN}'openai:tiny:3b'."
NEEDS = "cannot be created: it needs langchain and its provider's package: pip install langchain langchain-"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("opnai:gpt-5", OPNAI),
        ("tiny:3b", TINY),
        ("google_genai:gemini-3", f"The model 'google_genai:gemini-3' {NEEDS}google-genai."),
        ("bedrock_converse:m", f"The model 'bedrock_converse:m' {NEEDS}aws."),
    ],
)
def test_no_package_is_invented_for_a_provider(
    monkeypatch: pytest.MonkeyPatch, name: str, sentence: str
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setitem(sys.modules, "langchain.chat_models", None)
    with pytest.raises(ModelSetupError) as raised:
        create_todo_agent(name)
    assert str(raised.value) == sentence


def test_a_provider_that_langchain_does_not_have_is_corrected() -> None:
    with pytest.raises(ModelSetupError) as raised:
        create_todo_agent("opnai:gpt-5")
    assert str(raised.value) == OPNAI


def test_lokis_verifier_refuses_in_json(thread: Make) -> None:
    agent = thread(
        calls(("todo__add", {"task": "a"})),
        calls(("todo__done", {"id": 1})),
        "stop",
        settings=preset("loki").model_copy(update={"auto_continue": True, "max_wake_cycles": 0}),
        verify=lambda todo, state: "no proof",
    )
    agent.run("go")
    refusal = next(m for m in reversed(agent.values["messages"]) if isinstance(m, ToolMessage))
    assert json.loads(str(refusal.content)) == {"error": "task 1 was not accepted as done: no proof"}
    assert refusal.status == "error"
    assert agent.session == session("idle", "disabled", 1, 0, 0, verified=False)


def test_no_reminder_if_the_round_has_emptied_the_list(thread: Make) -> None:
    def drop(call_id: str) -> Command[Any]:
        """Drop the list."""
        return Command(update={"todos": [], "messages": [ToolMessage("gone", tool_call_id=call_id)]})

    agent = thread(
        write("a"),
        calls(("drop", {"call_id": "1"}, "1")),
        "bye",
        tools=[drop],
        change={"nag_after": 1},
    )
    assert agent.walk("go").count("nag") == 1  # it was pending when the reply was stored
    assert [m.content for m in agent.values["messages"] if m.type == "tool"][-1] == (
        "gone\n\n(automatic) The todo list was changed, and not by you. Go by what it says now.\n"
        "Removed by drop:\n  [1] a"
    )
    assert agent.session == session("dormant", "settled", 0)


def test_blocks_of_malformed_calls_are_not_kept_in_the_content(thread: Make) -> None:
    broken = {"type": "invalid_tool_call", "name": "look", "args": "{", "id": "b", "error": None}
    reply = AIMessage(
        content=[{"type": "text", "text": "so"}, broken], invalid_tool_calls=[broken], tool_calls=[]
    )
    agent = thread(reply, "bye", tools=[looking])
    agent.run("go")
    stored = next(m for m in agent.values["messages"] if isinstance(m, AIMessage))
    assert stored.content == [{"type": "text", "text": "so"}]
    assert [call["id"] for call in stored.tool_calls] == ["b"]
    assert stored.invalid_tool_calls == []


def looking(path: str) -> str:
    """Look."""
    return path


NODES = ("activate", "call_model", "validate_todos", "run_tools", "nag", "finalization_guard", "wake")
EMPTIED = [("an emptied history", node) for node in NODES]
NEW = [("a new thread", node) for node in NODES if node != "finalization_guard"]  # it would have no ruling


@pytest.mark.parametrize(("before", "node"), [*EMPTIED, *NEW])
def test_c92_a_thread_without_a_message_continues_from_every_node(before: str, node: str) -> None:
    quiet = {"stop_on_repeat": True, "max_wake_cycles": 2, "guard_retries": 0}
    model = ScriptedModel(*(f"Reply {n}." for n in range(6)))
    agent = create_todo_agent(model, checkpointer=InMemorySaver(), settings=quiet)
    config: Any = {"configurable": {"thread_id": "1"}}
    update: dict[str, Any] = {"todos": [{"id": 1, "content": "a", "status": "pending"}]}
    if before == "an emptied history":
        agent.invoke({"messages": [("user", "go")], **update}, config)
        update["messages"] = [RemoveMessage(REMOVE_ALL_MESSAGES)]
    agent.invoke(None, agent.update_state(config, update, as_node=node))
    ended = agent.get_state(config).values["todo_session"]
    assert (ended["state"], ended["reason"], ended["open"]) == ("idle", "wake_budget", 1)


GUARD, LOOP = "finalization_guard", ["call_model", "finalization_guard"]
WRITTEN: dict[str, tuple[Any, Any, list[str], list[str]]] = {
    "a result": (ToolMessage("edited", tool_call_id="a", id="r"), None, [GUARD, *LOOP], ["edited"]),
    "words": (HumanMessage("Look again."), None, [GUARD, *LOOP], ["p", "[interrupted]", "Look again."]),
    "calls": (
        calls(("looking", {"path": "q"}), ("todo_write", {"items": ["b"]})),
        "call_model",
        [GUARD, "call_model", "run_tools", "validate_todos", *LOOP],
        ["Stored 1 item:\n  [1] b", "q"],
    ),
}


@pytest.mark.parametrize("door", ["graph", "middleware"])
@pytest.mark.parametrize("name", WRITTEN)
def test_a_fork_written_in_the_models_place_ends_no_turn(name: str, door: str) -> None:
    """A fork that edits the result of a call, or the calls of a reply, continues with them."""
    written, node, way, end = WRITTEN[name]
    quiet = {"preset": "wakeloop", "max_wake_cycles": 0, "guard_retries": 0}
    model = ScriptedModel(calls(("looking", {"path": "p"}, "a")), "Old.", "New.")
    saver: Any = InMemorySaver()
    agent: Any = create_todo_agent(model, [looking], settings=quiet, checkpointer=saver)
    if door == "middleware":
        laid = [WakeLoopMiddleware(settings=quiet)]
        agent = create_agent(model, [looking], middleware=laid, checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "1"}}
    agent.invoke({"messages": [("user", "go")]}, config)
    place = next(row for row in agent.get_state_history(config) if row.values["messages"][-1].type == "tool")
    if isinstance(written, ToolMessage):
        written = written.model_copy(update={"id": place.values["messages"][-1].id})
    node = "model" if node and door == "middleware" else node
    fork = agent.update_state(place.config, {"messages": [written]}, as_node=node)
    walked = walk(agent, None, fork)
    assert door == "middleware" or walked == way
    assert [message.text for message in model.requests[-1][-len(end) :]] == end
    assert len(model.requests) == 3
    assert wire_faults(model.requests) == []
    assert session_of(agent.get_state(config))["open"] == (name == "calls")


def test_a_call_written_in_the_models_place_is_approved_like_the_models() -> None:
    def remove(path: str) -> str:
        """Remove."""
        return f"removed {path}"

    model = ScriptedModel(calls(("looking", {"path": "p"}, "a")), "Old.", "New.")
    saver, asks = InMemorySaver(), {"remove": True}
    agent = create_todo_agent(model, [looking, remove], interrupt_on=asks, checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "1"}}
    agent.invoke({"messages": [("user", "go")]}, config)
    for place in [*agent.get_state_history(config)][:4]:  # with the notes of a round, or without
        update = {"messages": [calls(("remove", {"path": "q"}))]}
        fork = agent.update_state(place.config, update, as_node="call_model")
        (asked,) = agent.invoke(None, fork)["__interrupt__"]
        assert [request["name"] for request in asked.value["action_requests"]] == ["remove"]
    agent.invoke(Command(resume="yes"), config)
    assert model.requests[-1][-1].text == "removed q"
