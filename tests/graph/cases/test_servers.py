"""Cases C20 to C24 with a scripted model: strict servers, broken replies. Real servers: tests/real/http."""

from pathlib import Path
from typing import Any

import pytest
from forms import Chat, Item
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from rig import Rig, close, marks, results, statuses, write
from shared_tools import look
from whole import whole

from wakeloop import LoopSettings, answer_of, create_todo_agent, preset, session_of
from wakeloop.display.formatting import format_ending
from wakeloop.testing import ScriptedModel, calls, malformed_call, prompt_faults, says, wire_faults

SERVER = Path(__file__).with_name("strict_server.py")


@tool
def silent() -> str:
    """Say nothing."""
    return ""


# -- C20 -------------------------------------------------------------------------------------------------


def test_c20_many_turns_with_the_system_message_each_time(rig: Rig) -> None:
    system = SystemMessage("You are terse.")
    rig.build(write("a", "b"), "stop", calls(("look", {"place": "x"})), close(1), *["no"] * 7, tools=[look])
    rig.run({"messages": [system, HumanMessage("go")]})
    rig.model.assert_done()
    for turn in range(3):
        rig.then(calls(("look", {"place": str(turn)})), says(""), says(""), *["still"] * 6)
        rig.run({"messages": [SystemMessage("You are terse."), HumanMessage(f"turn {turn}")]})
    assert [m.type for m in rig.requests[-1]].count("system") == 1
    assert str(rig.requests[-1][0].content).startswith("You are terse.\n\n")
    assert "You are terse." not in [str(m.content) for m in rig.requests[-1]]
    assert len({str(request[0].content) for request in rig.requests}) == 1
    if rig.keeps:
        assert prompt_faults(rig.requests) == []


def test_c20_a_caller_that_sends_the_whole_history_each_time() -> None:
    """As clients of a stateless server do: send the system, user and assistant messages again each time."""
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


def test_c20_another_system_message_is_sent_as_a_user_message(rig: Rig) -> None:
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
    "an answered call": [HumanMessage("q"), calls(("gone", {}, "1")), ToolMessage("r", tool_call_id="1")],
    "no id, and one twice": [
        HumanMessage("q"),
        calls(("gone", {}, None), ("gone", {}, "1"), ("gone", {}, "1")),
        HumanMessage("go"),
    ],
    "a stray result": [ToolMessage("stray", tool_call_id="9"), HumanMessage("go")],
    "an assistant alone": [AIMessage("I begin.")],
    "only a system message": [SystemMessage("s")],
    "a late system message": [HumanMessage("q"), SystemMessage("s"), AIMessage("a"), HumanMessage("go")],
}


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_c20_inherited_histories(rig: Rig, history: list[Any]) -> None:
    rig.build("Fine.")
    rig.run({"messages": history})
    rig.model.assert_done()
    assert wire_faults(rig.model.requests) == []
    assert rig.ending == ("dormant", "answered", 0)
    rig.follow_up()


# -- C22 -------------------------------------------------------------------------------------------------

BROKEN = {
    "with an id": malformed_call("look", '{"place": ', "m1"),
    "without an id": malformed_call("look", '{"place": ', None),
    "100 kB": malformed_call("look", '{"place": "' + "x" * 100_000),
    "no name": malformed_call(None, "{"),
    "no arguments": malformed_call("look", None),
    "a todo call": malformed_call("todo_write", '{"items": ["a", '),
    "an unknown tool": malformed_call("nothing" * 100, "{"),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_c22_malformed_arguments(rig: Rig, broken: Any) -> None:
    rig.build(calls(broken), "Done.", tools=[look])
    out = rig.run("go")
    rig.model.assert_done()
    (result,) = results(out["messages"])
    assert result.status == "error"
    assert str(result.content).startswith("Error: ")
    assert len(str(result.content)) <= 1000
    assert result.tool_call_id
    assert sum(len(str(m)) for m in rig.model.requests[1]) < 10_000
    assert answer_of(out) == "Done."
    rig.follow_up()


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_c22_next_to_a_valid_call(rig: Rig, broken: Any) -> None:
    rig.build(
        write("a"),
        *(calls(("look", {"place": str(n)}), broken) for n in range(4)),
        close(1),
        "Done.",
        tools=[look],
    )
    rig.run("go")
    rig.model.assert_done()  # not malformed rounds: each had a call that ran
    assert [str(m.content) for m in results(rig.messages) if m.status == "success"][1:5] == [
        f"seen {n}" for n in range(4)
    ]
    assert rig.ending == ("dormant", "settled", 0)


def test_c22_retries_are_bounded(rig: Rig) -> None:
    rig.build(write("a"), *(calls(malformed_call("look", "{", None)) for _ in range(11)), tools=[look])
    rig.run("go")
    rig.model.assert_done()  # five in a row: one per wake, one for the correction
    assert rig.ending == ("idle", "malformed_calls", 5)
    assert len(results(rig.messages)) == 12
    rig.follow_up()


def test_c22_a_good_round_between_resets_the_count(quick: Rig) -> None:
    bad, good = calls(malformed_call("look", "{")), calls(("look", {"place": "x"}))
    quick.build(bad, bad, good, bad, bad, good, *[bad] * 5, tools=[look])
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
    assert "smaller steps" in str(results(rig.messages)[1].content)
    assert "seen half" not in [m.content for m in results(rig.messages)]
    assert statuses(rig.model.requests and rig.todos) == ["completed"]
    assert rig.ending == ("dormant", "settled", 0)


def test_c23_half_an_answer_over_an_open_list(rig: Rig) -> None:
    rig.build(write("a"), cut(says("Half an")), cut(says(" answer is")), "enough.", close(1), "Done.")
    rig.run("go")
    rig.model.assert_done()
    assert marks(rig.messages) == ["retry", "retry", "wake"]
    assert rig.ending == ("dormant", "settled", 1)


def test_c23_endless_cut_replies_are_bounded_and_flagged(rig: Rig) -> None:
    rig.build(write("a"), *(cut(says("Half an")) for _ in range(11)))
    rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("idle", "truncated", 5)
    assert "a stream without a finish reason" in format_ending(session_of(rig.state))  # as well as the limit
    assert answer_of(rig.state) == "Half an"
    rig.follow_up()


def test_c23_endless_cut_calls(rig: Rig) -> None:
    rig.build(*(cut(write("a", "b")) for _ in range(5)))
    rig.run("go")
    rig.model.assert_done()
    assert rig.todos == []
    assert rig.ending == ("dormant", "truncated", 0)
    rig.follow_up()


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


# -- C45 -------------------------------------------------------------------------------------------------


class TextAlone(Chat):
    """A server that accepts a tool's result only as a string."""

    def items(self, payload: dict[str, Any]) -> list[Item]:
        blocks = [m for m in payload["messages"] if m["role"] == "tool" and not isinstance(m["content"], str)]
        return [*super().items(payload), *(("bad", "", "a tool's content must be a string") for _ in blocks)]


def texts(state: dict[str, Any]) -> dict[str, Any]:
    """The hook of docs/models.md."""
    sent = [
        m.model_copy(update={"content": str(m.text)}) if m.type == "tool" else m for m in state["messages"]
    ]
    return {"llm_input_messages": sent}


def photograph(place: str) -> list[dict[str, str]]:
    """Return blocks, as tools of MCP servers do."""
    return [{"type": "text", "text": f"seen {place}"}]


def test_c45_blocks_for_a_server_that_accepts_only_strings(rig: Rig) -> None:
    looked = calls(("photograph", {"place": "x"}))
    rig.speaks(TextAlone()).build(
        write("a"), *[looked] * 5, close(1), "Done.", tools=[photograph], pre_model_hook=texts
    )
    rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("dormant", "settled", 0)
    kept = results(rig.messages)[1:6]
    assert all(m.content[0] == {"type": "text", "text": "seen x"} for m in kept)
    assert "rounds" in str(rig.model.payloads[6]["messages"][-1]["content"])  # the reminder after the text
    rig.follow_up()


# -- C24 -------------------------------------------------------------------------------------------------


def test_c24_parallel_tool_calls_is_never_sent(rig: Rig) -> None:
    settings = preset("wakeloop").model_copy(update={"max_wake_cycles": 0, "on_guard_exhausted": "block"})
    rig.build(write("a"), "one", "two", "three", settings=settings)
    rig.run("go")
    rig.model.assert_done()
    assert rig.model.options == [{}] * 4
    assert [bool(tools) for tools in rig.model.bound] == [True] * 4


def test_c24_nothing_relies_on_it(rig: Rig) -> None:
    """A model that makes one call per reply, and one that makes many, end with the same list."""
    rig.build(write("a", "b"), close(1), close(2), "Done.")
    rig.run("go")
    one_by_one = rig.todos
    rig.config = {"configurable": {"thread_id": "other"}}
    rig.values = {}
    rig.then(write("a", "b"), close(1, 2), "Done.")
    rig.models = [rig.model]
    rig.run("go")
    assert rig.todos == one_by_one
