"""Cases C20 to C24: strict servers, broken replies."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt
from rig import Rig, close, marks, results, statuses, users, write
from whole import whole

from wakeloop import LoopSettings, answer_of, create_todo_agent, preset
from wakeloop.testing import ScriptedModel, calls, malformed, prompt_faults, says, wire_faults

SERVER = Path(__file__).with_name("strict_server.py")


@tool
def look(place: str) -> str:
    """Look at a place."""
    return f"seen {place}"


@tool
def ask(question: str) -> str:
    """Ask the person."""
    return str(interrupt(question))


@tool
def silent() -> str:
    """Say nothing."""
    return ""


# -- C20 -------------------------------------------------------------------------------------------------


def test_c20_many_turns_with_the_system_message_each_time(rig: Rig) -> None:
    system = SystemMessage("You are terse.")
    rig.build(write("a", "b"), "stop", calls(("look", {"place": "x"})), close(1), *["no"] * 5, tools=[look])
    rig.run({"messages": [system, HumanMessage("go")]})
    rig.model.assert_done()
    for turn in range(3):
        rig.then(calls(("look", {"place": str(turn)})), says(""), *["still"] * 4)
        rig.run({"messages": [SystemMessage("You are terse."), HumanMessage(f"turn {turn}")]})
    assert [m.type for m in rig.requests[-1]].count("system") == 1
    assert str(rig.requests[-1][0].content).startswith("You are terse.\n\n")
    assert "You are terse." not in [str(m.content) for m in rig.requests[-1]]
    assert len({str(request[0].content) for request in rig.requests}) == 1
    if rig.keeps:
        assert prompt_faults(rig.requests) == []


def test_c20_a_caller_that_sends_the_whole_history_each_time() -> None:
    """As clients of a stateless server do: system, users, assistants, everything anew."""
    model = ScriptedModel(write("a"), "stop", close(1), "Done.", "Hello again.")
    agent = create_todo_agent(model, system_prompt="House rules.")
    first = agent.invoke({"messages": [SystemMessage("Be terse."), HumanMessage("go")]})
    agent.invoke({"messages": [*first["messages"], SystemMessage("Be terse."), HumanMessage("hello")]})
    model.assert_done()
    assert wire_faults(model.requests) == []
    assert prompt_faults(model.requests) == []
    system = str(model.requests[-1][0].content)
    assert system.startswith("House rules.\n\nBe terse.")
    assert [str(m.content) for m in model.requests[-1]].count("Be terse.") == 0


def test_c20_another_system_message_is_sent_as_the_users(rig: Rig) -> None:
    rig.build("hi", system_prompt="House rules.")
    rig.run("hello")
    rig.then("yes")
    rig.run({"messages": [SystemMessage("From now on in French."), HumanMessage("again")]})
    request = rig.model.requests[0]
    assert [m.type for m in request] == ["system", "human", "ai", "human", "human"]
    assert request[3].content == "From now on in French."


HISTORIES: dict[str, list[Any]] = {
    "an assistant at the end": [HumanMessage("q"), AIMessage("a")],
    "two assistants": [HumanMessage("q"), AIMessage("a"), AIMessage("b"), HumanMessage("go")],
    "an empty assistant": [HumanMessage("q"), AIMessage(""), HumanMessage("go")],
    "an unanswered call": [
        HumanMessage("q"),
        AIMessage("", tool_calls=[{"name": "x", "args": {}, "id": "1"}]),
        HumanMessage("go"),
    ],
    "an assistant alone": [AIMessage("I begin.")],
    "only a system message": [SystemMessage("s")],
    "a late system message": [HumanMessage("q"), SystemMessage("s"), AIMessage("a"), HumanMessage("go")],
}


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_c20_inherited_histories(quick: Rig, history: list[Any]) -> None:
    quick.build("Fine.")
    quick.run({"messages": history})
    quick.model.assert_done()
    assert wire_faults(quick.model.requests) == []
    assert quick.ending == ("dormant", "settled", 0)
    quick.follow_up()


# -- the real server -------------------------------------------------------------------------------------


class Server:
    """A server of one's own, and the model that asks it."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def model(self, **options: Any) -> Any:
        from langchain_openai import ChatOpenAI

        return ChatOpenAI(model="strict", base_url=f"{self.url}/v1", api_key="none", max_retries=0, **options)

    @property
    def seen(self) -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{self.url}/seen") as answer:
            return list(json.load(answer))

    @property
    def requests(self) -> list[list[dict[str, Any]]]:
        return [body["messages"] for body in self.seen]


Serve = Callable[..., Server]


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    monkeypatch.setenv("NO_PROXY", "*")
    running: list[subprocess.Popen[str]] = []

    def start(*replies: dict[str, Any], refuse: tuple[str, ...] = ()) -> Server:
        script = tmp_path / f"script{len(running)}.json"
        script.write_text(json.dumps(replies))
        process = subprocess.Popen(
            [sys.executable, str(SERVER), str(script), *refuse], stdout=subprocess.PIPE, text=True
        )
        running.append(process)
        assert process.stdout is not None
        return Server(int(process.stdout.readline()))

    yield start
    for process in running:
        process.kill()
        process.communicate()


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"content": text, **more}


def called(*made: tuple[str, dict[str, Any] | str], text: str | None = None, **more: Any) -> dict[str, Any]:
    def arguments(args: dict[str, Any] | str) -> str:
        return args if isinstance(args, str) else json.dumps(args)

    listed = [[name, arguments(args), f"call_{id(made)}_{i}"] for i, (name, args) in enumerate(made)]
    return {"content": text, "tool_calls": listed, **more}


THREAD = {"configurable": {"thread_id": "t"}}


def stream_or_invoke(agent: Any, given: Any, *, streamed: bool) -> dict[str, Any]:
    if not streamed:
        return dict(agent.invoke(given, THREAD))
    values: dict[str, Any] = {}
    for mode, chunk in agent.stream(given, THREAD, stream_mode=["messages", "values"]):
        values = chunk if mode == "values" else values
    return values


@pytest.mark.loopback
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_c20_a_strict_server_over_many_turns(serve: Serve, streamed: bool) -> None:
    server = serve(
        called(("todo_write", {"items": ["a", "b"]})),
        called(
            ("look", {"place": "x"}), ("look", {"place": "y"}), ("todo_update", {"id": 1, "status": "done"})
        ),
        said("All done."),  # it is not: a wake
        called(("ask", {"question": "Which?"})),
        # never resumed: a plain message instead
        said(""),  # an empty reply over an open list: a wake
        called(("look", {"place": "z"}), ("nothing", {})),
        called(("look", '{"place": ')),  # no JSON
        said("Half", finish_reason="length"),
        said("and the rest."),
        said("Still here."),
        said("Still here."),
        said("Still here."),  # the third wake without progress
        said("Corrected."),
        # a third activation
        called(("todo_update", {"id": 2, "status": "done"}), text="Closing."),
        said("Done."),
    )
    agent = create_todo_agent(
        server.model(), [look, ask], system_prompt="House rules.", checkpointer=InMemorySaver()
    )
    system = SystemMessage("Be terse.")
    stream_or_invoke(agent, {"messages": [system, ("user", "go")]}, streamed=streamed)
    assert agent.get_state(THREAD).interrupts
    out = stream_or_invoke(agent, {"messages": [system, ("user", "never mind")]}, streamed=streamed)
    assert (out["todo_session"]["state"], out["todo_session"]["reason"]) == ("idle", "stalled")
    out = stream_or_invoke(agent, {"messages": [system, ("user", "close it")]}, streamed=streamed)
    assert answer_of(out) == "Done."
    assert out["todo_session"]["reason"] == "settled"
    assert len(server.seen) == 15
    assert wire_faults(server.requests) == []
    assert prompt_faults(server.requests) == []
    assert users(out["messages"]) == ["go", "never mind", "close it"]


@pytest.mark.loopback
def test_c20_the_server_is_as_strict_as_it_says(serve: Serve) -> None:
    from openai import BadRequestError

    user, call = {"role": "user", "content": "q"}, {"id": "1", "type": "function"}
    calling = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{**call, "function": {"name": "x", "arguments": "{}"}}],
    }
    answered = {"role": "tool", "tool_call_id": "1", "content": "r"}
    system, assistant = {"role": "system", "content": "s"}, {"role": "assistant", "content": "a"}
    bad = [
        [user, calling, answered, user],
        [user, system],
        [system, system, user],
        [user, assistant, assistant, user],
        [user, assistant],
        [user, {"role": "assistant", "content": ""}, user],
        [user, calling, user],
        [user, answered],
    ]
    model = serve(*[said("fine")] * len(bad)).model()
    for messages in bad:
        with pytest.raises(BadRequestError, match="400"):
            model.invoke(messages)
    assert model.invoke([system, user, calling, answered, assistant, user]).content == "fine"


# -- C21 -------------------------------------------------------------------------------------------------


def spelled_out(state: dict[str, Any]) -> dict[str, Any]:
    """The way round: a hook that leaves no content null or empty."""

    def filled(message: Any) -> Any:
        return message if message.content else message.model_copy(update={"content": "(no text)"})

    return {"llm_input_messages": [filled(message) for message in state["messages"]]}


@pytest.mark.loopback
@pytest.mark.parametrize(("refused", "words"), [("null", "got null"), ("empty", "must not be empty")])
def test_c21_null_and_empty_content(serve: Serve, refused: str, words: str) -> None:
    from openai import BadRequestError

    replies = (called(("silent", {})), said("Done."), said("Hello."))
    server = serve(*replies, refuse=(refused,))
    saver = InMemorySaver()
    agent = create_todo_agent(server.model(), [silent], checkpointer=saver)
    with pytest.raises(BadRequestError, match=words):
        agent.invoke({"messages": [("user", "go")]}, THREAD)
    assert len(server.seen) == 2  # refused once, not asked again
    assert marks(agent.get_state(THREAD).values["messages"]) == []
    assert agent.get_state(THREAD).values["todos"] == []

    mended = create_todo_agent(server.model(), [silent], checkpointer=saver, pre_model_hook=spelled_out)
    mended.invoke(None, THREAD)
    out = mended.invoke({"messages": [("user", "hello")]}, THREAD)
    assert answer_of(out) == "Hello."


# -- C22 -------------------------------------------------------------------------------------------------

BROKEN = {
    "with an id": malformed("look", '{"place": ', "m1"),
    "without an id": malformed("look", '{"place": ', None),
    "100 kB": malformed("look", '{"place": "' + "x" * 100_000),
    "no name": malformed(None, "{"),
    "no arguments": malformed("look", None),
    "a todo call": malformed("todo_write", '{"items": ["a", '),
    "an unknown tool": malformed("nothing" * 100, "{"),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_c22_malformed_arguments(quick: Rig, broken: Any) -> None:
    quick.build(calls(broken), "Done.", tools=[look])
    out = quick.run("go")
    quick.model.assert_done()
    (result,) = results(out["messages"])
    assert result.status == "error"
    assert str(result.content).startswith("Error: ")
    assert len(str(result.content)) <= 1000
    assert result.tool_call_id
    assert sum(len(str(m)) for m in quick.model.requests[1]) < 10_000
    assert answer_of(out) == "Done."
    quick.follow_up()


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_c22_beside_a_valid_call(quick: Rig, broken: Any) -> None:
    quick.build(
        write("a"),
        *(calls(("look", {"place": str(n)}), broken) for n in range(4)),
        close(1),
        "Done.",
        tools=[look],
    )
    quick.run("go")
    quick.model.assert_done()  # not malformed rounds: each had a call that ran
    assert [str(m.content) for m in results(quick.messages) if m.status == "success"][1:5] == [
        f"seen {n}" for n in range(4)
    ]
    assert quick.ending == ("dormant", "settled", 0)


def test_c22_retries_are_bounded(rig: Rig) -> None:
    rig.build(write("a"), *(calls(malformed("look", "{", None)) for _ in range(3)), tools=[look])
    rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("idle", "malformed_calls", 0)
    assert len(results(rig.messages)) == 4
    rig.follow_up()


def test_c22_a_good_round_between_begins_anew(quick: Rig) -> None:
    bad, good = calls(malformed("look", "{")), calls(("look", {"place": "x"}))
    quick.build(bad, bad, good, bad, bad, good, bad, bad, bad, tools=[look])
    quick.run("go")
    quick.model.assert_done()
    assert quick.ending == ("dormant", "malformed_calls", 0)


def test_c22_repeated_ids_are_replaced(rig: Rig) -> None:
    rig.build(
        calls(
            ("look", {"place": "1"}, "same"), ("look", {"place": "2"}, "same"), ("look", {"place": "3"}, None)
        ),
        calls(("look", {"place": "4"}, "same")),
        "Done.",
        tools=[look],
    )
    out = rig.run("go")
    ids = [m.tool_call_id for m in results(out["messages"])]
    assert len(set(ids)) == 4
    assert ids[0] == "same"
    assert sorted(str(m.content) for m in results(out["messages"])) == [f"seen {n}" for n in range(1, 5)]


@pytest.mark.loopback
def test_c22_malformed_arguments_never_go_back(serve: Serve) -> None:
    server = serve(called(("look", "{not json")), called(("look", '{"place": "x"}')), said("Done."))
    agent = create_todo_agent(server.model(), [look])
    out = agent.invoke({"messages": [("user", "go")]})
    assert answer_of(out) == "Done."
    assert [m.status for m in results(out["messages"])] == ["error", "success"]
    assert wire_faults(server.requests) == []


# -- C23 -------------------------------------------------------------------------------------------------


def cut(reply: AIMessage) -> AIMessage:
    return reply.model_copy(update={"response_metadata": {"finish_reason": "length"}})


def test_c23_a_partial_call_does_not_run(rig: Rig) -> None:
    rig.build(
        write("a"),
        cut(calls(("look", {"place": "half"}), ("todo_update", {"id": 1, "status": "done"}))),
        close(1),
        "Done.",
        tools=[look],
    )
    rig.run("go")
    rig.model.assert_done()
    assert [m.status for m in results(rig.messages)] == ["success", "error", "error", "success"]
    assert all("cut off" in str(m.content) for m in results(rig.messages)[1:3])
    assert "seen half" not in [m.content for m in results(rig.messages)]
    assert statuses(rig.model.requests and rig.todos) == ["completed"]
    assert rig.ending == ("dormant", "settled", 0)


def test_c23_half_an_answer_over_an_open_list(rig: Rig) -> None:
    rig.build(write("a"), cut(says("Half an")), cut(says(" answer is")), "enough.", close(1), "Done.")
    rig.run("go")
    rig.model.assert_done()
    assert marks(rig.messages) == ["retry", "retry", "wake"]
    assert rig.ending == ("dormant", "settled", 1)


def test_c23_for_ever_is_bounded_and_flagged(rig: Rig) -> None:
    rig.build(write("a"), *(cut(says("Half an")) for _ in range(3)))
    rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("idle", "truncated", 0)
    assert answer_of(rig.state) == "Half an"
    rig.follow_up()


def test_c23_cut_calls_for_ever(quick: Rig) -> None:
    quick.build(*(cut(write("a", "b")) for _ in range(3)))
    quick.run("go")
    quick.model.assert_done()
    assert quick.todos == []
    assert quick.ending == ("dormant", "truncated", 0)
    quick.follow_up()


def test_c23_a_cut_list_never_replaces_a_longer_one(rig: Rig, replacing: LoopSettings) -> None:
    rig.build(whole("a:p b:p c:p"), cut(whole("a:c")), whole("a:c b:c c:c"), "Done.", settings=replacing)
    rig.run("go")
    rig.model.assert_done()
    assert [m.status for m in results(rig.model.requests[2])] == ["success", "error"]
    assert [(t["id"], t["status"]) for t in rig.todos] == [
        (1, "completed"),
        (2, "completed"),
        (3, "completed"),
    ]


@pytest.mark.loopback
def test_c23_a_stream_that_just_ends(serve: Serve) -> None:
    """langchain-openai raises nothing: the reply has no finish reason and its arguments look whole."""
    broken = called(("todo_write", '{"items": ["a"]}'), finish_reason=None)
    server = serve(broken, said("Half", finish_reason=None), said("Whole."))
    agent = create_todo_agent(server.model(), checkpointer=InMemorySaver())
    out = stream_or_invoke(agent, {"messages": [("user", "go")]}, streamed=True)
    assert out["todos"] == []
    assert [m.status for m in results(out["messages"])] == ["error"]
    assert marks(out["messages"]) == ["retry"]
    assert out["todo_session"]["reason"] == "settled"
    assert wire_faults(server.requests) == []


# -- C24 -------------------------------------------------------------------------------------------------


def test_c24_parallel_tool_calls_is_never_sent(quick: Rig) -> None:
    settings = preset("wakeloop").model_copy(update={"max_wake_cycles": 0, "on_guard_exhausted": "block"})
    quick.build(write("a"), "one", "two", "three", settings=settings)
    quick.run("go")
    quick.model.assert_done()
    assert quick.model.options == [{}] * 4
    assert [bool(tools) for tools in quick.model.bound] == [True, True, True, False]


def test_c24_nothing_relies_on_it(quick: Rig) -> None:
    """A model that makes one call a reply, and one that makes many, come to the same list."""
    quick.build(write("a", "b"), close(1), close(2), "Done.")
    quick.run("go")
    one_by_one = quick.todos
    quick.config = {"configurable": {"thread_id": "other"}}
    quick.values = {}
    quick.then(write("a", "b"), close(1, 2), "Done.")
    quick.models = [quick.model]
    quick.run("go")
    assert quick.todos == one_by_one
