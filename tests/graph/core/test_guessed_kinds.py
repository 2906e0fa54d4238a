"""Values of a kind that people guess: each works, or gets one sentence with the right spelling."""

from __future__ import annotations

from typing import Any

import pytest
from guessing import AT, BUILD, GO, UPDATE, hi
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import BaseTool, tool
from langgraph.prebuilt import ToolNode
from langgraph.types import Overwrite
from lent import City

from wakeloop import (
    ArgumentError,
    EditError,
    InputError,
    ModelError,
    SettingsError,
    ToolError,
    VerifyError,
    WakeloopError,
    answer_of,
    preset,
    session_of,
    update_todos,
)
from wakeloop.testing import ScriptedModel, calls

PRESET: Any = preset


@tool
def look(place: str) -> str:
    """Look."""
    return f"seen {place}"


class Mine(BaseTool):
    name: str = "mine"
    description: str = "Do it."

    def _run(self) -> str:
        return "done"


class Looker:
    """Something that can be called."""

    def __call__(self, place: str) -> str:
        return place


# -- tools, formats, verifiers, hooks --------------------------------------------------------------------


def test_tools_by_name() -> None:
    model = ScriptedModel(calls(("look", {"place": "x"})), "Done.")
    out = BUILD(model, {"look": look}).invoke(GO)
    assert [str(m.content) for m in out["messages"]] == ["go", "", "seen x", "Done."]
    assert len(BUILD(ScriptedModel(), {"type": "web_search"}).builder.nodes["run_tools"].runnable.tools) == 0


@pytest.mark.parametrize(
    ("tools", "right"),
    [
        ([Mine], r"the class Mine itself: make one, Mine\(…\)"),
        ([City], "response_format=City"),
        ([Looker], "the class Looker itself"),
        ([Looker()], "cannot be made a tool"),
        ([lambda place: place], "<lambda>.+docstring"),
        (ToolNode([look]), r"list\(….tools_by_name.values\(\)\)"),
        ([BUILD(ScriptedModel())], r"as_tool\("),
        ([[look]], "Not a tool: a list"),
        (["look"], "Not a tool: 'look'"),
    ],
)
def test_tools_of_another_kind(tools: Any, right: str) -> None:
    with pytest.raises(ToolError, match=right) as told:
        hi(tools=tools)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 250


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ("json", "not a str"),
        (True, "not a bool"),
        (City(city="Bern"), "the class City itself"),
        (("You are kind.", City), "not a tuple"),
        (list[City], "a model with a field for it"),
        (int, "a model with a field for it"),
        (dict, "a model with a field for it"),
        ({"type": "object", "properties": {}}, "'title'"),
        ({"type": "json_object"}, "'title'"),
    ],
)
def test_a_format_of_another_kind(given: Any, right: str) -> None:
    with pytest.raises(ArgumentError, match=right) as told:
        hi(response_format=given)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("more", "right"),
    [
        ({"verify": "make test"}, r"verify takes a function, as in def verify\(todo, state\)"),
        ({"verify": lambda _todo: None}, r"called as verify\(todo, state\)"),
        ({"verify": lambda: None}, r"called as verify\(todo, state\)"),
        ({"pre_model_hook": dict}, ""),
        ({"pre_model_hook": lambda: None}, r"called as pre_model_hook\(state\)"),
        ({"store": "x"}, "store takes"),
        ({"state_schema": "x"}, "state_schema must be a subclass of TodoState"),
    ],
)
def test_functions_that_are_called_otherwise(more: Any, right: str) -> None:
    if not right:
        assert hi(**more) is not None
        return
    with pytest.raises(WakeloopError, match=right):
        hi(**more)


@pytest.mark.parametrize("verdict", [True, False, 0, {"ok": True}])
@pytest.mark.parametrize("door", ["invoke", "ainvoke"])
async def test_a_verdict_is_none_or_a_text(verdict: Any, door: str) -> None:
    """False would have passed for consent, True raised in the middle of a node."""
    said = [verdict]
    write = calls(("todo_write", {"items": ["a"]}))
    done = calls(("todo_update", {"id": 1, "status": "done"}))
    agent = hi(write, done, "Done.", verify=lambda _todo, _state: said[0])
    with pytest.raises(VerifyError, match=f"returned {verdict!r}.+None accepts"):
        await agent.ainvoke(GO, AT) if door == "ainvoke" else agent.invoke(GO, AT)
    said[0] = None  # mended: the run goes on where it was
    out = await agent.ainvoke(None, AT) if door == "ainvoke" else agent.invoke(None, AT)
    assert [todo["status"] for todo in out["todos"]] == ["completed"]
    assert out["todo_session"]["reason"] == "settled"


@pytest.mark.parametrize("returned", ["x", [AIMessage("a")], 5])
def test_a_hook_that_returns_no_mapping(returned: Any) -> None:
    agent = hi(pre_model_hook=lambda _state: returned)
    with pytest.raises(SettingsError, match=r"pre_model_hook returned .+ llm_input_messages"):
        agent.invoke(GO, AT)


# -- models ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("groq/llama-3.3-70b", "'groq:llama-3.3-70b'"),
        ("ollama/llama3", "'ollama:llama3'"),
        ("bedrock/anthropic.claude-3", "'bedrock_converse:anthropic.claude-3'"),
        ("moonshotai/kimi-k2", "'PROVIDER:kimi-k2'"),
        ("gpt-oss:20b", "'ollama:gpt-oss:20b'"),
        ("global.anthropic.claude-sonnet-4", "'bedrock_converse:global.anthropic.claude-sonnet-4'"),
        ("Anthropic:claude-3", "'anthropic:claude-3'"),
    ],
)
def test_a_name_of_elsewhere(name: str, right: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ModelError, match=f"write {right}"):
        BUILD(name)
    assert BUILD("gpt-5-mini") is not None


def test_a_model_that_tries_again() -> None:
    with pytest.raises(ModelError, match="max_retries=N"):
        BUILD(ScriptedModel().with_retry())


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("temperature", "model=ChatOpenAI"),
        ("base_url", "model=ChatOpenAI"),
        ("subagents", "session_tools"),
        ("version", "there are model"),
    ],
)
def test_arguments_of_other_builders(name: str, right: str) -> None:
    with pytest.raises(ArgumentError, match=f"create_todo_agent has no argument {name!r}: .*{right}"):
        BUILD(ScriptedModel(), **{name: "x"})


def test_a_preset_that_is_varied_at_once() -> None:
    with pytest.raises(ArgumentError, match=r"model_copy\(update=\{'auto_continue': …\}\)"):
        PRESET("loki", auto_continue=True)
    with pytest.raises(SettingsError, match="named by a text"):
        PRESET(None)


# -- a run's input ---------------------------------------------------------------------------------------

NO_MESSAGES = {
    "None": (None, "'messages'"),
    "a number": (5, "'messages'"),
    "None in a list": (["a", None], "message 2 "),
    "another role": ([("usr", "x")], "message 1 .+'usr'"),
    "no role": ([{"content": "x"}], "message 1 "),
    "a number as text": ([("user", 5)], "message 1 "),
    "a call without a name": (
        [{"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]}],
        "message 1 ",
    ),
    "a result of nothing": ([{"role": "tool", "content": "x"}], "message 1 .+tool_call_id"),
    "a pair past the reducer": (Overwrite([("user", "x")]), "Overwrite.+HumanMessage"),
    "no list past the reducer": (Overwrite("x"), "Overwrite.+HumanMessage"),
}


@pytest.mark.parametrize(("given", "right"), NO_MESSAGES.values(), ids=NO_MESSAGES)
@pytest.mark.parametrize("door", ["invoke", "ainvoke"])
async def test_messages_that_are_none_leave_the_thread_as_it_was(given: Any, right: str, door: str) -> None:
    """LangGraph commits an input before its reducer has seen it: state and run would raise from then on."""
    agent = hi("Hello.", "Again.")
    agent.invoke(GO, AT)
    before = agent.get_state(AT)
    with pytest.raises(InputError, match=right) as told:
        await agent.ainvoke({"messages": given}, AT) if door == "ainvoke" else agent.invoke(
            {"messages": given}, AT
        )
    assert "\n" not in str(told.value)
    assert agent.get_state(AT) == before
    assert answer_of(agent.invoke(GO, AT)) == "Again."


def test_messages_past_the_reducer_take_the_place_of_the_history() -> None:
    agent = hi("Hello.", "Again.", "Bye.")
    agent.invoke(GO, AT)
    agent.invoke({"messages": Overwrite([HumanMessage("anew")])}, AT)
    out = agent.invoke({"messages": [("user", "more")]}, AT)
    assert [message.text for message in out["messages"]] == ["anew", "Again.", "more", "Bye."]


@pytest.mark.parametrize(
    ("given", "right"), [({**GO, "Todos": []}, "'todos'"), ({"Messages": []}, "'messages'"), (5, "a mapping")]
)
def test_an_input_in_capitals_and_a_number(given: Any, right: str) -> None:
    with pytest.raises(InputError, match=right):
        hi().invoke(given, AT)


@pytest.mark.parametrize(
    ("config", "right"),
    [
        ("t", r"\{'configurable': \{'thread_id': 't'\}\}"),
        ({"configurable": "t"}, r"\{'configurable': \{'thread_id': 't'\}\}"),
        ({"configurable": {"thread": "t"}}, r"\{'configurable': \{'thread_id': 't'\}\}"),
        ({"configurable": {"threadId": "t"}}, r"\{'configurable': \{'thread_id': 't'\}\}"),
        ({"configurable": {"session_id": "t"}}, r"\{'configurable': \{'thread_id': 't'\}\}"),
    ],
)
def test_a_config_that_names_its_thread_otherwise(config: Any, right: str) -> None:
    with pytest.raises(InputError, match=right):
        hi().invoke(GO, config)


def test_keys_of_ones_own_in_a_config_are_left_alone() -> None:
    config: Any = {"configurable": {"session_id": "s", "user": "u", **AT["configurable"]}}
    assert answer_of(hi().invoke(GO, config)) == "Hello."
    bound = hi().with_config(AT)
    assert answer_of(bound.invoke(GO, {"configurable": {"session_id": "s"}})) == "Hello."
    assert answer_of(BUILD(ScriptedModel("Hi.")).invoke(GO, {"configurable": {"session_id": "s"}})) == "Hi."


# -- edits and readings ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "right"),
    [
        ({"goal": 5}, "goal takes a text"),
        ({"clear": "no"}, "clear takes True or False"),
        ({"clear": 1}, "clear takes True or False"),
    ],
)
def test_goal_and_clear_of_another_kind(changes: Any, right: str) -> None:
    agent = hi()
    update_todos(agent, AT, add="a", goal="g")
    with pytest.raises(EditError, match=f"Nothing was changed: {right}"):
        UPDATE(agent, AT, **changes)
    values = agent.get_state(AT).values
    assert (len(values["todos"]), values["todo_goal"]) == (1, "g")


def test_readings_of_what_is_none() -> None:
    agent = hi()
    result = agent.invoke(GO, AT)
    history = list(agent.get_state_history(AT))
    for wrong in (AT, history, [{"type": "parked"}], [1], {"zzz": 1}):
        for read in (session_of, answer_of):
            with pytest.raises(ArgumentError, match=r"agent.get_state\(config\)"):
                read(wrong)
    assert session_of(result["todo_session"]) == result["todo_session"]
    with pytest.raises(ArgumentError, match=r"agent.get_state\(config\)"):
        session_of(result["messages"])  # which say nothing of it
    assert answer_of([{"type": "human", "content": "go"}, {"type": "ai", "content": "Hello."}]) == "Hello."
    assert session_of({})["state"] == "dormant"
    assert answer_of({}) == answer_of([]) == ""
