"""The middleware by itself: its settings, its supersteps, its endings, its thread."""

from itertools import chain, count
from typing import Any

import pytest
from laid_over import GO, THREAD, busy, ended, kinds, laid, look, looks, over, plan, settled
from langchain.agents.middleware import AgentMiddleware, ModelCallLimitMiddleware, TodoListMiddleware
from langchain.agents.structured_output import ProviderStrategy, StructuredOutputValidationError, ToolStrategy
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphDrained, GraphRecursionError
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import RunControl
from langgraph.types import Command, interrupt
from levels import every_third
from pydantic import BaseModel, SecretStr

from wakeloop import SettingsError, answer_of, session_of, update_todos
from wakeloop.errors import ArgumentError, ToolNameError, VerifyError
from wakeloop.middleware import ChangesState, WakeLoopMiddleware
from wakeloop.testing import ScriptedModel, calls, says


def test_one_line_is_changed() -> None:
    model = ScriptedModel(*settled())
    agent = over(model, WakeLoopMiddleware())
    assert answer_of(agent.invoke(GO, THREAD)) == "bye"
    assert ended(agent) == ("dormant", "settled", 4)
    assert [item["status"] for item in agent.get_state(THREAD).values["todos"]] == ["completed"]
    assert kinds(agent) == ["human", "ai", "tool", "ai", "human", "ai", "tool", "ai"]


def test_arguments_have_the_names_of_the_other_middleware() -> None:
    model = ScriptedModel(says("hello"))
    layer = WakeLoopMiddleware(system_prompt="Costs: $5.", tool_description="Plans.")
    over(model, layer, system_prompt="You keep house.").invoke(GO, THREAD)
    assert model.requests[0][0].text == "You keep house.\n\nCosts: $5."
    assert [t["function"]["name"] for t in model.tools] == ["look", "write_todos"]
    assert model.tools[1]["function"]["description"] == "Plans."


def test_a_prompt_that_is_not_a_string_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"^system_prompt must be a string, not an int\.$"):
        WakeLoopMiddleware(system_prompt=5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "name"),
    [("loki", "todo__init"), ({"max_wake_cycles": 1}, "write_todos"), (None, "write_todos")],
)
def test_any_preset_and_any_setting(settings: Any, name: str) -> None:
    layer = WakeLoopMiddleware(settings=settings)
    assert name in layer.dialect.tool_names
    with pytest.raises(SettingsError, match="Did you mean"):
        WakeLoopMiddleware(settings={"max_wake_cycle": 1})
    with pytest.raises(SettingsError, match="for_model"):
        WakeLoopMiddleware(settings="auto")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("sytem_prompt", "Did you mean 'system_prompt'?"),
        ("max_wake_cycles", "It is a setting: settings={'max_wake_cycles': …}."),
        ("tools", "Pass it to create_agent."),
        ("verifier", "Did you mean 'verify'?"),
        ("foo", "Available: system_prompt, tool_description, settings, verify, done_when."),
    ],
)
def test_an_unknown_argument_is_refused_in_one_sentence(name: str, told: str) -> None:
    wrong: dict[str, Any] = {name: None}
    with pytest.raises(ArgumentError) as raised:
        WakeLoopMiddleware(**wrong)
    assert str(raised.value) == f"WakeLoopMiddleware has no argument {name!r}. {told}"


def test_budgets_and_a_threads_own_settings() -> None:
    model = ScriptedModel(calls(plan("a")), calls(looks(1)), says("all that is left"))
    agent = laid(model)
    agent.invoke({**GO, "todo_settings": {"max_requests": 2}}, THREAD)
    assert ended(agent) == ("idle", "request_budget", 3)
    assert kinds(agent) == [
        "human",
        "ai",
        "tool",
        "ai",
        "tool",
        "ai",
        "human",
        "ai",
    ]  # a line closes the round


def test_a_bad_input_is_refused_at_the_first_request() -> None:
    agent = laid(ScriptedModel())
    with pytest.raises(Exception, match="Unknown setting 'nudges'"):
        agent.invoke({**GO, "todo_settings": {"nudges": 2}}, THREAD)
    with pytest.raises(Exception, match="todos"):
        agent.invoke({**GO, "todos": [{"content": " "}]}, THREAD)


def test_an_activation_without_anything_to_do_requests_nothing() -> None:
    agent = laid(ScriptedModel(*settled()))
    agent.invoke(GO, THREAD)
    agent.invoke({"messages": []}, THREAD)
    assert ended(agent) == ("dormant", "settled", 0)  # as in the run before it


def test_the_verifier_is_asked_in_between() -> None:
    asked: list[Any] = []

    def verify(todo: Any, state: Any) -> str | None:
        asked.append((todo["content"], len(state["messages"])))
        return "look first" if len(asked) == 1 else None

    model = ScriptedModel(calls(plan("a")), calls(plan("a!")), calls(plan("a!")), says("bye"))
    agent = over(model, WakeLoopMiddleware(verify=verify))
    agent.invoke(GO, THREAD)
    assert asked == [("a", 4), ("a", 6)]
    assert ended(agent) == ("dormant", "settled", 4)


@pytest.mark.parametrize("door", ["sync", "async"])
async def test_c70_the_model_does_not_see_a_verifiers_exception(door: str) -> None:
    answers: list[Any] = [KeyError("owner"), None]

    def verify(todo: Any, state: Any) -> None:
        if isinstance(answer := answers.pop(0), Exception):
            raise answer

    model = ScriptedModel(*settled())
    agent = over(model, WakeLoopMiddleware(verify=verify))
    with pytest.raises(VerifyError, match="verify raised KeyError: 'owner'") as raised:
        agent.invoke(GO, THREAD) if door == "sync" else await agent.ainvoke(GO, THREAD)
    assert isinstance(raised.value.__cause__, KeyError)
    asked = len(model.requests)
    agent.invoke(None, THREAD) if door == "sync" else await agent.ainvoke(None, THREAD)
    assert len(model.requests) == asked + 1
    assert ended(agent) == ("dormant", "settled", 4)


def test_a_verifier_that_asks_a_person_resumes_without_another_request() -> None:
    def verify(todo: Any, state: Any) -> str | None:
        return None if interrupt("is it done?") == "yes" else "it is not"

    model = ScriptedModel(*settled())
    agent = over(model, WakeLoopMiddleware(verify=verify))
    agent.invoke(GO, THREAD)
    assert len(model.requests) == 3
    agent.invoke(Command(resume="yes"), THREAD)
    assert ended(agent) == ("dormant", "settled", 4)


def test_a_drained_run_continues_with_its_count() -> None:
    control = RunControl()

    def stop(_: Any) -> Any:
        control.request_drain()
        return says("stop")

    first, _, *rest = settled()
    agent = laid(ScriptedModel(first, stop, *rest))
    with pytest.raises(GraphDrained):
        agent.invoke(GO, THREAD, control=control)
    assert agent.get_state(THREAD).next == ("WakeLoopMiddleware.after_model",)
    agent.invoke(None, THREAD)
    assert ended(agent) == ("dormant", "settled", 4)
    assert agent.get_state(THREAD).values["todo_session"]["wakes"] == 1


def test_a_hand_over_leaves_at_once() -> None:
    """The parent's node runs; nothing of the agent's run is passed on, and the session says running."""

    def leave(path: str) -> Command[Any]:
        """Go to the desk."""
        return Command(graph=Command.PARENT, goto="desk")

    child = over(
        ScriptedModel(calls(("leave", {"path": "x"}))), WakeLoopMiddleware(), tools=[leave], checkpointer=None
    )
    parent = StateGraph(MessagesState)
    parent.add_node("child", child, destinations=("desk",)).add_edge(START, "child")
    parent.add_node("desk", lambda _: {"messages": [("assistant", "at the desk")]})
    out = parent.compile(checkpointer=InMemorySaver()).invoke(GO, THREAD)
    assert [message.text for message in out["messages"]] == ["go", "at the desk"]


async def test_an_asynchronous_verifier_needs_the_asynchronous_door() -> None:
    async def verify(todo: Any, state: Any) -> str | None:
        return None

    with pytest.raises(VerifyError):
        over(ScriptedModel(), WakeLoopMiddleware(verify=verify)).invoke(GO, THREAD)
    agent = over(ScriptedModel(*settled()), WakeLoopMiddleware(verify=verify))
    await agent.ainvoke(GO, THREAD)
    assert ended(agent) == ("dormant", "settled", 4)


@pytest.mark.parametrize(
    ("limit", "requests"), [(8, 1), (12, 1), (13, 2), (15, 3), (17, 4), (20, 5), (22, 6), (44, 14)]
)
def test_a_run_parks_when_the_callers_limit_is_near(limit: int, requests: int) -> None:
    agent = laid(ScriptedModel(busy()))
    agent.invoke(GO, {**THREAD, "recursion_limit": limit})
    assert ended(agent) == ("idle", "step_limit", requests)


def only_looks() -> Any:
    return (calls(looks(number)) for number in count())


# The minimum is the opening, a request with tools, one without any, the end, and one more. A call limit has a
# hook before the model and one after it, for both requests.
@pytest.mark.slow
@pytest.mark.parametrize(("beside", "least"), [([], 8), ([ModelCallLimitMiddleware(run_limit=99)], 12)])
@pytest.mark.parametrize("script", [busy, only_looks])
@pytest.mark.parametrize("first", [[calls(plan("a"), looks(0))], []])
def test_no_limit_raises(beside: Any, least: int, script: Any, first: Any) -> None:
    for limit in every_third(range(1, 32)):
        agent = laid(ScriptedModel(chain(first, script())), *beside)
        try:
            agent.invoke(GO, {**THREAD, "recursion_limit": limit})
        except GraphRecursionError:
            assert limit < least


class Answer(BaseModel):
    """The answer."""

    text: str


FIT = calls(("Answer", {"text": "hi"}))


@pytest.mark.parametrize(
    ("strategy", "replies", "requests"),
    [
        (ToolStrategy(Answer), [FIT], 5),
        (Answer, [FIT], 5),
        (ProviderStrategy(Answer), [says('{"text": "hi"}')], 5),
        (ToolStrategy(Answer), [calls(("Answer", {"txt": 1})), FIT], 6),
        (ToolStrategy(Answer), [says("so be it"), FIT], 6),
        (ProviderStrategy(Answer), [says("so be it"), says('{"text": "hi"}')], 6),
    ],
    ids=["tool", "either", "provider", "unfit", "none", "prose"],
)
@pytest.mark.filterwarnings("ignore:Deserializing")
def test_a_format_waits_until_the_list_is_settled(strategy: Any, replies: Any, requests: int) -> None:
    model = ScriptedModel(*settled(), *replies)
    agent = laid(model, response_format=strategy)
    assert agent.invoke(GO, THREAD)["structured_response"] == Answer(text="hi")
    assert ended(agent) == ("dormant", "settled", requests)
    names = [[t["function"]["name"] for t in bound] for bound in model.bound]
    assert names[:4] == [["look", "write_todos"]] * 4
    assert model.options[:4] == [{}] * 4
    model.assert_done()


@pytest.mark.parametrize("strategy", [ToolStrategy, ProviderStrategy])
def test_an_answer_that_never_fits_ends_the_run(strategy: Any) -> None:
    model = ScriptedModel(*settled(), says("no"), says("no"))
    agent = laid(model, response_format=strategy(Answer), settings={"reply_retries": 1})
    assert agent.invoke(GO, THREAD)["structured_response"] is None
    assert ended(agent) == ("dormant", "malformed_calls", 6)


STOPS = [says(f"stop {number}") for number in range(30)]
ONE = calls(plan("a"))
UNSETTLED: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "stalled": ({}, [ONE, *STOPS[:7]]),
    "wake_budget": ({"max_idle_wakes": 0, "earn_wakes": 0}, [ONE, *STOPS[:27]]),
    "disabled": ({"auto_continue": False}, [ONE, STOPS[0]]),
    "repeated_reply": ({"stop_on_repeat": True}, [ONE, *STOPS[:1] * 3]),
    "guard_blocked": ({"max_idle_wakes": 1, "on_guard_exhausted": "block"}, [ONE, *STOPS[:4]]),
    "request_budget": ({"max_requests": 3}, [ONE, *STOPS[:3]]),
    "looping": ({"max_idle_rounds": 3}, [ONE] * 5),
    "empty_reply": ({"reply_retries": 1}, [says("")] * 2),
    "truncated": ({"reply_retries": 1}, [says("cut", finish_reason="length")] * 2),
    "refused": ({}, [ONE, says("no", finish_reason="content_filter")]),
    "malformed_calls": ({"reply_retries": 1}, [*settled(), says("no"), says("no")]),
    "step_limit": ({}, [ONE, STOPS[0]]),
}


@pytest.mark.slow
@pytest.mark.parametrize("reason", UNSETTLED)
@pytest.mark.parametrize("strategy", [ToolStrategy(Answer), Answer], ids=["tool", "either"])
@pytest.mark.parametrize("door", ["invoke", "ainvoke"])
async def test_if_a_format_is_a_tool_an_ending_is_one(door: str, strategy: Any, reason: str) -> None:
    """An agent without its own tools asks until there is a value."""
    settings, replies = UNSETTLED[reason]
    model = ScriptedModel(*replies)
    agent = laid(model, tools=[], settings=settings, response_format=strategy)
    config = {**THREAD, "recursion_limit": 13 if reason == "step_limit" else 300}
    out = agent.invoke(GO, config) if door == "invoke" else await agent.ainvoke(GO, config)
    assert (out["structured_response"], ended(agent)[1:]) == (None, (reason, len(replies)))
    model.assert_done()


async def test_an_answer_in_prose_is_asked_for_again_in_async_runs_too() -> None:
    model = ScriptedModel(*settled(), says("so be it"), says('{"text": "hi"}'))
    agent = laid(model, response_format=ProviderStrategy(Answer))
    assert (await agent.ainvoke(GO, THREAD))["structured_response"] == Answer(text="hi")
    model.assert_done()


def test_an_answer_by_tool_raises_if_the_caller_wants_it() -> None:
    unfit = calls(("Answer", {"txt": 1}))
    agent = laid(ScriptedModel(*settled(), unfit), response_format=ToolStrategy(Answer, handle_errors=False))
    with pytest.raises(StructuredOutputValidationError):
        agent.invoke(GO, THREAD)


@tool(return_direct=True)
def shout(text: str) -> str:
    """Shout."""
    return text


def test_a_tool_whose_result_is_the_answer_ends_the_run() -> None:
    agent = laid(ScriptedModel(calls(plan("a")), calls(("shout", {"text": "hey"}))), tools=[shout])
    assert agent.invoke(GO, THREAD)["messages"][-1].text == "hey"
    assert ended(agent) == ("idle", "ended_elsewhere", 2)


def test_a_second_list_is_refused_when_the_agent_is_built() -> None:
    for listed in (
        [TodoListMiddleware(), WakeLoopMiddleware()],
        [WakeLoopMiddleware(), TodoListMiddleware()],
    ):
        with pytest.raises(ToolNameError, match="Remove TodoListMiddleware"):
            over(ScriptedModel(), *listed)
    with pytest.raises(AssertionError, match="duplicate middleware"):
        over(ScriptedModel(), WakeLoopMiddleware(), WakeLoopMiddleware())


def test_a_tools_exception_is_left_to_the_agent() -> None:
    def crash(path: str) -> str:
        """Crash."""
        raise RuntimeError("broken")

    agent = laid(ScriptedModel(calls(("crash", {"path": "x"}))), tools=[crash])
    with pytest.raises(RuntimeError, match="broken"):
        agent.invoke(GO, THREAD)
    session = session_of(agent.get_state(THREAD))
    assert (session["state"], session["reason"], session["error"]) == (
        "failed",
        "failed",
        "RuntimeError: broken",
    )


def test_a_list_is_edited_by_hand() -> None:
    model = ScriptedModel(*settled(), says("idle"), calls(plan("b!")), says("done"))
    agent = laid(model)
    agent.invoke(GO, THREAD)
    assert update_todos(agent, THREAD, add=["b"], remove=[1]) == [
        {"id": 2, "content": "b", "status": "pending"}
    ]
    assert session_of(agent.get_state(THREAD))["state"] == "idle"
    assert agent.get_state(THREAD).values["todo_ledger"]["next_id"] == 3
    agent.invoke(GO, THREAD)
    assert ended(agent) == ("dormant", "settled", 3)


@pytest.mark.parametrize("schema", [None, ChangesState])
def test_the_way_there_and_back(schema: Any) -> None:
    saver = InMemorySaver()
    before = over(ScriptedModel(calls(plan("a")), says("stop")), TodoListMiddleware(), checkpointer=saver)
    before.invoke(GO, THREAD)
    here = laid(ScriptedModel(*settled()), checkpointer=saver, state_schema=schema)
    assert [todo["content"] for todo in here.get_state(THREAD).values["todos"]] == ["a"]
    here.invoke(GO, THREAD)
    assert ended(here) == ("dormant", "settled", 4)
    again = over(ScriptedModel(), TodoListMiddleware(), checkpointer=saver)
    there = again.get_state(THREAD).values.get("todos")
    assert there == (None if schema else [{"id": 1, "content": "a", "status": "completed"}])


class Broken(ScriptedModel):
    """A model whose first stream breaks off within a call."""

    streaming: bool = False

    def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        if self.requests:
            yield from super()._stream(messages, stop, run_manager, **kwargs)
            return
        self._take(messages, stop, kwargs)
        half: Any = {"name": "look", "args": '{"path": "a', "id": "c1", "index": 0, "type": "tool_call_chunk"}
        yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=[half]))


def test_half_a_call_is_not_run() -> None:
    """LangChain reads the partial arguments as if they were complete."""
    agent = laid(Broken(says("not heard"), says("bye"), streaming=True))
    agent.invoke(GO, THREAD)
    half, answer = agent.get_state(THREAD).values["messages"][1:3]
    assert (half.tool_calls[0]["args"], answer.status) == ({}, "error")
    assert ended(agent) == ("dormant", "answered", 2)


class Keyed(ScriptedModel):
    """A model with a key."""

    api_key: SecretStr = SecretStr("sk-a-long-secret")


async def test_no_key_appears_in_an_error() -> None:
    error = RuntimeError("refused: sk-a-long-secret")
    with pytest.raises(RuntimeError, match=r"refused: (?!sk-a)"):
        laid(Keyed(error)).invoke(GO, THREAD)
    error = RuntimeError("refused: sk-a-long-secret")
    with pytest.raises(RuntimeError, match=r"refused: (?!sk-a)"):
        await laid(Keyed(error)).ainvoke(GO, THREAD)


def test_another_run_on_the_thread_is_not_seen() -> None:
    """An agent's hooks do not know its saver: no `ConcurrentRunError`, and the later ending counts."""
    saver = InMemorySaver()

    def intrude(path: str) -> str:
        """Run the same thread meanwhile."""
        laid(ScriptedModel(says("other")), checkpointer=saver).invoke(GO, THREAD)
        return "done"

    agent = laid(
        ScriptedModel(calls(("intrude", {"path": "x"})), says("end")),
        tools=[intrude, look],
        checkpointer=saver,
    )
    agent.invoke(GO, THREAD)
    assert ended(agent) == ("dormant", "answered", 2)


class Short(AgentMiddleware[Any, Any, Any]):
    """Sends the first message and the last few, like another wrapper."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(messages=[request.messages[0], *request.messages[-4:]]))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request.override(messages=[request.messages[0], *request.messages[-4:]]))


@pytest.mark.parametrize("door", ["invoke", "ainvoke"])
@pytest.mark.parametrize("place", ["behind", "before"])
async def test_a_list_that_a_wrapper_cuts_off_is_shown_again(door: str, place: str) -> None:
    """A wrapper after it is noticed once the request has gone: the next one shows the list."""
    rounds = [calls(looks(n)) for n in range(8)]
    model = ScriptedModel(calls(plan("a")), *rounds, calls(plan("a!")), says("bye"))
    layer = WakeLoopMiddleware(settings={"max_idle_rounds": 0, "nag_after": 0})
    agent = over(model, *([layer, Short()] if place == "behind" else [Short(), layer]))
    _ = agent.invoke(GO, THREAD) if door == "invoke" else await agent.ainvoke(GO, THREAD)
    model.assert_done()
    shown = [n for n, sent in enumerate(model.requests) if "[pending] a" in sent[-1].text]
    assert shown == ([4, 7] if place == "behind" else [3, 5, 7, 9])
    assert len([m for m in agent.get_state(THREAD).values["messages"] if "[pending] a" in m.text]) == len(
        shown
    )


@pytest.mark.parametrize(("before", "asked"), [([], True), ([calls(looks(1))], False)])
def test_the_audit_asks_once_about_items_closed_unseen(before: list[Any], asked: bool) -> None:
    model = ScriptedModel(calls(plan("a")), *before, calls(plan("a!")), "bye", *(["sure"] if asked else []))
    agent = laid(model, settings={"audit": "once"})
    agent.invoke(GO, THREAD)
    model.assert_done()
    assert ended(agent)[:2] == ("dormant", "settled")


def test_its_settings_as_a_form_for_a_server() -> None:
    layer = WakeLoopMiddleware(settings={"max_wake_cycles": 3})
    model = ScriptedModel(*settled()[:2])
    agent = over(model, layer, context_schema=layer.context_schema)
    form = agent.get_context_jsonschema()["$defs"]["TodoSettings"]["properties"]
    assert form["max_wake_cycles"]["description"].endswith("This agent's: 3.")
    agent.invoke(GO, THREAD, context={"todo_settings": {"max_wake_cycles": 0, "guard_retries": 0}})
    assert ended(agent) == ("idle", "disabled", 2)
