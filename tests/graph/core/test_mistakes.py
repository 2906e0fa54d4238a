"""Mistakes of a new user, and the one sentence that explains each."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any

import pytest
from guessing import AT, BUILD, GO, UPDATE, hi
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import EmptyInputError
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Overwrite
from shared_tools import City

from wakeloop import (
    InputError,
    LoopSettings,
    WakeloopError,
    build_todo_graph,
    preset,
    register_dialect,
    session_of,
)
from wakeloop.display import TodoPanel, compare
from wakeloop.display.report import thread_report
from wakeloop.testing import ScriptedModel, calls
from wakeloop.tools import FileLimits, file_tools, shell_tool

PRESET: Any = preset
SETTINGS: Any = LoopSettings
WRONG: Any = "agent"
GRAPH = "The first argument must be a compiled graph, such as an agent of create_todo_agent, got "
EXAMPLE = "Example: agent.invoke({'messages': [('user', 'TEXT')]}, {'configurable': {'thread_id': 'NAME'}})."


@tool
def look(place: str) -> str:
    """Look."""
    return f"seen {place}"


@tool
def todo_write(text: str) -> str:
    """Clash with a todo tool."""
    return text


@tool(return_direct=True)
def answer(text: str) -> str:
    """Answer."""
    return text


async def shrink(state: Any) -> dict[str, Any]:
    return {}


def build(**more: Any) -> Callable[[], Any]:
    return lambda: BUILD(ScriptedModel(), **more)


def model(given: Any) -> Callable[[], Any]:
    return lambda: BUILD(given)


def settings(**given: Any) -> Callable[[], Any]:
    return lambda: SETTINGS(**given)


def run(given: Any, config: Any = AT) -> Callable[[], Any]:
    return lambda: hi().invoke(given, config)


def edit(config: Any = AT, **changes: Any) -> Callable[[], Any]:
    return lambda: UPDATE(hi(), config, **changes)


def wait_on(event: Event) -> str:
    """Wait on an event."""
    return str(event)


class Looker:
    """Has tools by another name."""

    def get_tools(self) -> list[Any]:
        return []


NO = "create_todo_agent has no argument"
SAVER = (
    "`checkpointer` must be an open checkpointer, such as InMemorySaver() or the `saver` of "
    "`with SqliteSaver.from_conn_string(…) as saver:`,"
)
SCHEMA = "a pydantic model, a TypedDict or a JSON schema with a 'title',"
TOOL = "A tool must be a LangChain tool, a function or a provider's dict,"
MODEL = "`model` must be a name such as 'openai:NAME' or a chat model of LangChain,"
OPTIONS = "Pass options such as stop and max_retries to the model itself, and tools as tools=[…]. For"
NO_THREAD = (
    "An agent with a checkpointer needs a thread: pass config={'configurable': {'thread_id': 'NAME'}}."
)
PRICES = '{"default": {"input": 1.25, "cached": 0.13, "output": 10}}'
MISTAKES: list[tuple[Callable[[], Any], str]] = [
    # arguments under names from elsewhere
    (build(prompt="x"), f"{NO} 'prompt'. Pass the system message as system_prompt=…."),
    (build(instructions="x"), f"{NO} 'instructions'. Pass the system message as system_prompt=…."),
    (build(llm="x"), f"{NO} 'llm'. Pass the model as model=…."),
    (build(preset="loki"), f"{NO} 'preset'. Pass the name of a preset as settings='NAME'."),
    (build(output_schema=City), f"{NO} 'output_schema'. Pass the schema of the answer as response_format=…."),
    (
        build(middleware=[]),
        f"{NO} 'middleware'. An agent takes no LangChain middleware. Use pre_model_hook or verify, or ",
    ),
    (
        build(max_wake_cycles=3),
        f"{NO} 'max_wake_cycles'. It is a setting: settings={{'max_wake_cycles': …}}.",
    ),
    (
        build(recursion_limit=9),
        f"{NO} 'recursion_limit'. It belongs to the config of a run: agent.invoke(…, {{'recursion_limit': ",
    ),
    (build(max_iterations=9), f"{NO} 'max_iterations'. It is a setting: settings={{'max_requests': …}}."),
    (build(max_wakes=9), f"{NO} 'max_wakes'. It is a setting: settings={{'max_wake_cycles': …}}."),
    (
        build(todos=[]),
        f"{NO} 'todos'. It belongs to the input: agent.invoke({{'messages': […], 'todos': […]}}).",
    ),
    (build(temperature=0), f"{NO} 'temperature'. It is an option of the model: model=ChatOpenAI(…)."),
    (build(model_options={}), f"{NO} 'model_options'. It is an option of the model: model=ChatOpenAI(…)."),
    (build(checkpointr=None), f"{NO} 'checkpointr'. Did you mean 'checkpointer'?"),
    (build(zzz=1), f"{NO} 'zzz'. Available: model, tools, "),
    (
        lambda: build_todo_graph(ScriptedModel(), checkpointer=None),  # type: ignore[call-arg]
        "build_todo_graph has no argument 'checkpointer'. Pass it to compile(…) of the graph.",
    ),
    # their values
    (build(settings=5), "`settings` must be a preset's name, LoopSettings(…) or a mapping, got an int."),
    (build(system_prompt=["a"]), "`system_prompt` must be a string or a SystemMessage, got a list."),
    (build(checkpointer=InMemorySaver), f"{SAVER} got the class InMemorySaver."),
    (build(checkpointer="threads.db"), f"{SAVER} got a str."),
    (build(store="x"), "`store` must be a LangGraph store such as InMemoryStore(), got a str."),
    (build(verify=True), "`verify` must be a function, as in def verify(todo, state), got a bool."),
    (
        build(verify=lambda _todo: None),
        "`verify` is called as verify(todo, state), but the function takes (_todo)",
    ),
    (
        build(pre_model_hook="trim"),
        "`pre_model_hook` must be a function, as in def pre_model_hook(state), got",
    ),
    (build(response_format="json"), f"{SCHEMA} got 'json'."),
    (build(response_format=City(city="Bern")), f"{SCHEMA} got City(city='Bern')."),
    (build(response_format=list[City]), f"{SCHEMA} got list[shared_tools.City]."),
    (build(response_format={"type": "object"}), f"{SCHEMA} got {{'type': 'object'}}."),
    # tools
    (
        lambda: BUILD(ScriptedModel(), "You are kind."),
        "`tools` must be a list of tools, got 'You are kind.'.",
    ),
    (build(tools=5), "`tools` must be a list of tools, got 5."),
    (build(tools=Looker()), "`tools` must be a list of tools, got <test_mistakes.Looker object at"),
    (build(tools=ToolNode([look])), f"{TOOL} got a ToolNode."),
    (build(tools=[City]), f"{TOOL} got the class City."),
    (build(tools=[Looker]), f"{TOOL} got the class Looker."),
    (build(tools=["look"]), f"{TOOL} got a str."),
    (build(tools=[lambda place: place]), "Cannot make a tool of <lambda>: "),
    (build(tools=[wait_on]), "Cannot make a tool of wait_on: Failed to generate JSON schema for 'wait_on'"),
    (
        build(tools=[tool(wait_on)]),
        "Cannot make a tool of wait_on: Failed to generate JSON schema for 'wait_on'",
    ),
    (build(tools=[look, look]), "Two tools are called 'look'. Rename one of them."),
    (build(tools=[todo_write]), "belongs to a todo tool of the dialect 'parley'. Rename your tool."),
    (
        build(tools=[answer]),
        "Tool 'answer' has return_direct=True, which would end a run while todos are open.",
    ),
    # models
    (model(ScriptedModel), f"{MODEL} got the class ScriptedModel."),
    (model(5), f"{MODEL} got an int."),
    (model(ScriptedModel().with_retry()), f"{MODEL} got a RunnableRetry. {OPTIONS}"),
    (model(ScriptedModel().bind(stop=["x"])), f"{MODEL} got a _ChatModelBinding. {OPTIONS}"),
    (
        model("claude-sonnet-4-5"),
        "is not OpenAI's. Write 'anthropic:claude-sonnet-4-5'; for a server of your own",
    ),
    (model("anthropic/claude-3"), "Write 'anthropic:claude-3'; for a server"),
    (model("moonshotai/kimi-k2"), "Write 'PROVIDER:kimi-k2'; for a server"),
    (model("llama3:8b"), "Write 'ollama:llama3:8b'; for a server"),
    (model("Anthropic:claude-3"), "Providers are written in lower case. Write 'anthropic:claude-3'."),
    # settings
    (settings(max_wake_cycle=1), "Unknown setting 'max_wake_cycle'. Did you mean 'max_wake_cycles'?"),
    (settings(max_steps=5), "Unknown setting 'max_steps'. Did you mean 'max_requests'?"),
    (settings(max_turns=5), "Unknown setting 'max_turns'. Did you mean 'max_requests'?"),
    (settings(max_iterations=5), "Unknown setting 'max_iterations'. Did you mean 'max_requests'?"),
    (settings(recursion_limit=5), "Unknown setting 'recursion_limit'. Did you mean 'max_requests'?"),
    (settings(maxSteps=5), "Unknown setting 'maxSteps'. Did you mean 'max_requests'?"),
    (settings(**{"max-items": 5}), "Unknown setting 'max-items'. Did you mean 'max_items'?"),
    (settings(max_time=5), "Unknown setting 'max_time'. Did you mean 'max_seconds'?"),
    (settings(max_recursion=5), "Unknown setting 'max_recursion'. Available: "),
    (
        lambda: setattr(preset("loki"), "nag_after", 3),
        "Settings are frozen. Make a copy: model_copy(update={'nag_after': …}).",
    ),
    (settings(max_wakes=5), "Unknown setting 'max_wakes'. Did you mean 'max_wake_cycles'?"),
    (settings(preset="loki"), "Unknown setting 'preset'. Use preset('loki').model_copy(update={…})"),
    (settings(system_prompt="x"), "Unknown setting 'system_prompt'. It is an argument of create_todo_agent."),
    (settings(nag_after=False), "Setting 'nag_after' must be a number, got False."),
    (settings(nag_after="many"), "Setting 'nag_after' must be a number, got 'many'."),
    (settings(nag_after=-1), "Setting 'nag_after' must be greater than or equal to 0, got -1."),
    (settings(repeats="no"), "Setting 'repeats' must be 'store' or 'name', got 'no'."),
    (settings(prompts={"nudg": "x"}), "Unknown prompt 'nudg'. Did you mean 'nudge'?"),
    (settings(prompts={"nag": "$zzz"}), "Prompt 'nag' has an unknown blank $zzz. Available: $open, $rounds."),
    (settings(prices={"m": {"inptu": 1, "output": 2}}), "Did you mean 'input'?"),
    (settings(prices=5), f"Setting 'prices' must be a mapping, got 5. Example of prices: {PRICES}."),
    (
        settings(prices={"input": 1}),
        f"Setting 'prices.input' must be a mapping, got 1. Example of prices: {PRICES}.",
    ),
    (settings(api_key="x"), "'api_key'. API keys come from the environment, such as OPENAI_API_KEY."),
    (settings(max_requests=3.5), "Setting 'max_requests' must be a valid integer, got 3.5."),
    (build(settings={"dialect": "parly"}), "Unknown dialect 'parly'. Did you mean 'parley'?"),
    (lambda: PRESET("lokki"), "Unknown preset 'lokki'. Did you mean 'loki'?"),
    (lambda: PRESET(None), "A preset's name must be a string such as 'loki', got None."),
    (
        lambda: PRESET("loki", nag_after=1),
        "Vary a preset with preset('loki').model_copy(update={'nag_after': …}).",
    ),
    # arguments of other functions
    (build(name=3), "`name` must be a string, got 3."),
    (lambda: register_dialect(WRONG), "`dialect` must be an instance of Dialect, got a str."),
    (lambda: TodoPanel(WRONG), f"{GRAPH}str."),
    (lambda: TodoPanel(BUILD), f"{GRAPH}function."),
    (lambda: thread_report(WRONG, AT), f"{GRAPH}str."),
    (lambda: compare([3], "go", model=ScriptedModel()), "LoopSettings(…) or a mapping, got an int."),
    (lambda: compare({"a": 3}, "go", model=ScriptedModel()), "LoopSettings(…) or a mapping, got an int."),
    (lambda: shell_tool(None), "`root` must be a folder's path, got None."),
    (lambda: shell_tool(".", timeout="5"), "`timeout` must be a number from 0, got '5'."),
    (lambda: shell_tool(".", timeout=-1), "`timeout` must be a number from 0, got -1."),
    (lambda: shell_tool(".", limit=2.5), "`limit` must be a number from 0, got 2.5."),
    (lambda: file_tools(3), "`root` must be a folder's path, got an int."),
    (lambda: file_tools(".", limits=3), "`limits` must be FileLimits(…), got an int."),
    (lambda: FileLimits(read="x"), "`read` must be a number from 0, got 'x'."),
    (lambda: file_tools(".", hidden=".env"), "`hidden` must be names of files, as in ['.env'], got '.env'."),
    (
        lambda: BUILD(ScriptedModel("Hi."), pre_model_hook=shrink).invoke(GO),
        "This agent's pre_model_hook is asynchronous. Run it with ainvoke or astream.",
    ),
    # inputs
    (run({"mesages": []}), f"Unknown input key 'mesages'. Did you mean 'messages'? {EXAMPLE}"),
    (run({"input": "go"}), f"Unknown input key 'input'. Did you mean 'messages'? {EXAMPLE}"),
    (run({**GO, "todo": []}), "Unknown input key 'todo'. Did you mean 'todos'?"),
    (
        run({**GO, "max_requests": 3}),
        "Unknown input key 'max_requests'. It is a setting: {'todo_settings': {'max_requests': …}}.",
    ),
    (
        run({**GO, "settings": {"max_requests": 3}}),
        "Unknown input key 'settings'. Did you mean 'todo_settings'?",
    ),
    (
        lambda: hi().invoke(GO, AT, context={"todo_setting": {}}),
        "Unknown context key 'todo_setting'. Did you mean 'todo_settings'?",
    ),
    (
        lambda: hi().invoke(GO, AT, context={"max_requests": 3}),
        "Unknown context key 'max_requests'. It is a setting: {'todo_settings': {'max_requests': …}}.",
    ),
    (run({"settings": {}}), "Unknown input key 'settings'. Did you mean 'todo_settings'?"),
    (run({"zzz": 1}), "The agent knows none of the input keys 'zzz'. Available: messages, todos"),
    (run("go"), f"The input must be a mapping, got 'go'. {EXAMPLE}"),
    (run([]), f"The input must be a mapping, got []. {EXAMPLE}"),
    (run(Command(resume=None)), "Command(resume=None) answers nothing. Pass the answer, or False for a no."),
    (run({"messages": 5}), "Item 1 of 'messages' is not a message ("),
    (run({"messages": ["a", None]}), "Item 2 of 'messages' is not a message ("),
    (
        run({"messages": [HumanMessage("a", name=None, id=None), ("usr", "x")]}),
        "Item 2 of 'messages' is not a",
    ),
    (run(Command(resume=1, update={"messages": ["a", 5]})), "Item 2 of 'messages' is not a message ("),
    (run(Command(resume=1, update={"todo_settings": {"max_steps": 5}})), "Unknown setting 'max_steps'. Did"),
    (run(Command(resume=1, update={"todo_settings": {"nag_after": -1}})), "Setting 'nag_after' must be"),
    (run(Command(goto="wake", update=[("todos", [{"content": ""}])])), "todos item 1 has no content"),
    (
        run({"messages": Overwrite("x")}),
        "Item 1 of 'messages' is not a message (Overwrite takes a list of messages, as in [HumanMessage(",
    ),
    (run({**GO, "todos": [{"content": "a", "status": "open"}]}), "has the status 'open'"),
    (run({**GO, "todos": "a"}), "todos must be a list of items"),
    # threads
    (run(GO, None), NO_THREAD),
    (run(GO, {"thread_id": "1"}), NO_THREAD),
    (lambda: hi().get_state({"thread_id": "1"}), NO_THREAD),  # type: ignore[typeddict-unknown-key]
    (run(GO, "t"), NO_THREAD),
    (run(GO, {"configurable": {"session_id": "t"}}), NO_THREAD),
    (run(GO, {"configurable": "t"}), NO_THREAD),
    (run(GO, {"configurable": {"thread_id": None}}), NO_THREAD),  # a variable that is not set
    (lambda: hi().get_state({}), NO_THREAD),
    (edit("1", add="a"), "No thread is named. Pass {'configurable': {'thread_id': 'NAME'}}."),
    (lambda: session_of(AT), "agent.get_state(config)"),
    # edits by hand
    (edit(complete=1), "update_todos has no argument 'complete'. Pass the ids to close as done=…."),
    (edit(add=5), "Nothing was changed: `add` must be a string or strings, as in add=['buy milk'], got 5."),
    (edit(done=True), "Nothing was changed: `done` must be an id or ids, as in done=[1, 2], got True."),
    (
        edit(block=1),
        "Nothing was changed: `block` must be a mapping of ids, as in block={1: 'the reason'}, got 1.",
    ),
    (
        edit(edit={1: 5}),
        "Nothing was changed: `edit` must be a mapping of ids, as in edit={1: 'the text'}, got",
    ),
    (edit(clear="no"), "Nothing was changed: `clear` must be True or False, got 'no'."),
    (edit(goal=5), "Nothing was changed: `goal` must be a string, got 5."),
]


def test_every_mistake_gets_one_clear_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    wrong = []
    for mistake, sentence in MISTAKES:
        try:
            mistake()
        except WakeloopError as error:
            said = str(error)
            if sentence not in said or "\n" in said or len(said) > 600:
                wrong.append((sentence, said))
        except Exception as error:  # noqa: BLE001 - which is what this is about
            wrong.append((sentence, repr(error)))
        else:
            wrong.append((sentence, "accepted"))
    assert wrong == []


async def test_a_run_without_an_input_names_the_empty_thread() -> None:
    sentence = r"^There is nothing to resume, since {}\. Pass another thread or a message\.$"
    with pytest.raises(EmptyInputError, match=sentence.format("the thread '1' is empty")):
        hi().invoke(None, AT)
    with pytest.raises(EmptyInputError, match=sentence.format("the thread '1' is empty")):
        await hi().ainvoke(None, AT)
    with pytest.raises(EmptyInputError, match=sentence.format("the agent has no checkpointer")):
        BUILD(ScriptedModel()).invoke(None)


@pytest.mark.parametrize("answer", ["yes", {"some-id": "yes"}, False])
async def test_an_answer_to_no_question_is_not_lost(answer: Any) -> None:
    agent, sentence = hi("Hello. Shall I go on?"), "answers an interrupt, but the thread '1' waits at none."
    for _ in ("empty", "at rest"):
        before = len(list(agent.get_state_history(AT)))
        with pytest.raises(InputError, match=sentence):
            agent.invoke(Command(resume=answer), AT)
        with pytest.raises(InputError, match=sentence):
            await agent.ainvoke(Command(resume=answer), AT)
        assert len(list(agent.get_state_history(AT))) == before
        if not before:
            agent.invoke(GO, AT)


def test_a_name_of_another_module_is_refused_with_that_module() -> None:
    with pytest.raises(ImportError, match=r"is not in wakeloop\. Import it from wakeloop\.middleware\."):
        from wakeloop import WakeLoopMiddleware  # noqa: F401


def test_a_verifier_answers_none_or_a_string() -> None:
    """False would have passed for consent; True raised in the middle of a node."""
    write, done = (
        calls(("todo_write", {"items": ["a"]})),
        calls(("todo_update", {"id": 1, "status": "done"})),
    )
    for verdict in (True, False, 0):
        said: list[Any] = [verdict]
        agent = hi(write, done, "Done.", verify=lambda _todo, _state, said=said: said[0])
        with pytest.raises(WakeloopError, match=f"must return None to accept the item .+ got {verdict!r}"):
            agent.invoke(GO, AT)
        said[0] = None  # once fixed, the run continues where it was
        assert agent.invoke(None, AT)["todo_session"]["reason"] == "settled"
