"""Cases C33 to C35 and C47: a history that every server takes back, in every provider's form."""

import re
from importlib.util import find_spec
from itertools import repeat
from typing import Any, ClassVar

import pytest
from forms import FORMS, Anthropic, Said, all_ids, names_of
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from rig import Rig, close, marks, results, write
from shared_tools import look

from wakeloop import answer_of
from wakeloop.testing import calls, wire_faults

MINTED = re.compile(r"[a-zA-Z0-9]{9}")
IN_FORM = pytest.mark.parametrize("form", FORMS)


def stored_ids(rig: Rig) -> list[str]:
    return [call["id"] for m in rig.messages if isinstance(m, AIMessage) for call in m.tool_calls]


# -- C33 -------------------------------------------------------------------------------------------------

NAMES = ["functions.todo_write", "web search", "n" * 70, "todo write"]


@IN_FORM
def test_c33_a_name_that_no_server_takes_back(rig: Rig, form: Any) -> None:
    rig.speaks(form).build(
        write("a"),
        Said(
            calls=(
                *((name, "{}", f"id{i}") for i, name in enumerate(NAMES)),
                ("look", '{"place": "x"}', "ok"),
            )
        ),
        calls(("todo_update", {"id": 1, "status": "done"})),
        "Done.",
        tools=[look],
    )
    out = rig.run("go")
    rig.model.assert_done()
    assert names_of(rig.model)[1:5] == ["functions_todo_write", "web_search", "n" * 64, "todo_write"]
    told = {m.tool_call_id: str(m.content) for m in results(out["messages"])}
    for i, name in enumerate(NAMES[:2]):
        assert told[f"id{i}"].startswith(f"Error: unknown tool {name!r}")
    assert told["id3"].startswith("Error: unknown tool 'todo write'")
    assert told["ok"] == "seen x"
    assert rig.ending == ("dormant", "settled", 0)
    rig.follow_up()


@pytest.mark.parametrize("name", NAMES)
def test_c33_in_a_history_from_elsewhere(rig: Rig, name: str) -> None:
    block = {"type": "tool_use", "id": "1", "name": name, "input": {}}
    history = [
        HumanMessage("q", name="a person"),
        AIMessage([block], tool_calls=[{"name": name, "args": {}, "id": "1"}], name="my agent"),
        ToolMessage("r", tool_call_id="1", name=name),
        AIMessage("so"),
        HumanMessage("go"),
    ]
    rig.build("Fine.")
    rig.run({"messages": history})
    asked = rig.model.requests[0]
    assert wire_faults([asked]) == []
    assert [m.name for m in asked[1:4]][:2] == ["a_person", "my_agent"]
    rig.follow_up()


NAMED = {"coder": "coder", "my agent": "my_agent", "a.b": "a_b", "研究员": None, "n" * 70: "n" * 64}


@IN_FORM
@pytest.mark.parametrize("name", NAMED)
def test_c33_replies_carry_the_agents_name_and_a_legal_one_is_sent(quick: Rig, form: Any, name: str) -> None:
    """Only chat completions are sent a name; if nothing in it is legal, none is."""
    quick.speaks(form).build(write("a"), close(1), "bye", name=name)
    out = quick.run("go")
    quick.model.assert_done()
    assert [m.name for m in out["messages"] if m.type == "ai"] == [name] * 3
    payload = quick.model.payloads[-1]
    told = [
        m.get("name") for m in payload.get("messages") or payload["input"] if m.get("role") == "assistant"
    ]
    assert told == [NAMED[name]] * 2 if form.name == "chat" else set(told) <= {None}
    quick.follow_up()


# -- C34, C35 --------------------------------------------------------------------------------------------


@IN_FORM
def test_c34_a_repeated_id(rig: Rig, form: Any) -> None:
    holds(rig, form, "a", "a", minted=2)


UNSOUND = {"none": (None, None), "an empty one": ("", ""), "41 characters": ("x" * 41, "y" * 41)}


@IN_FORM
@pytest.mark.parametrize("ids", UNSOUND.values(), ids=UNSOUND)
def test_c35_new_ids_suit_the_strictest_server(rig: Rig, form: Any, ids: Any) -> None:
    holds(rig, form, *ids, minted=3)


def holds(rig: Rig, form: Any, one: Any, two: Any, minted: int) -> None:
    """Check that three calls with these ids, in two replies, each have a unique id everywhere."""
    rig.speaks(form).build(
        Said("See.", calls=(("look", '{"place": "1"}', one), ("look", '{"place": "2"}', two))),
        Said(calls=(("look", '{"place": "3"}', one),)),
        "Done.",
        tools=[look],
    )
    out = rig.run("go")
    rig.model.assert_done()
    kept = stored_ids(rig)
    assert len(set(kept)) == 3
    assert all_ids(rig.model) == kept
    new = [key for key in kept if key != "a"]
    assert all(MINTED.fullmatch(key) for key in new)
    assert len(new) == minted
    seen = {m.tool_call_id: m.content for m in results(out["messages"])}
    assert [seen[key] for key in kept] == ["seen 1", "seen 2", "seen 3"]
    rig.follow_up()


@IN_FORM
def test_c34_a_removed_call_is_removed_from_the_blocks(rig: Rig, form: Any) -> None:
    from wakeloop import preset

    rig.speaks(form).build(
        write_todos("a"),
        "no",
        "no",
        "no",
        Said("I could not.", calls=(("look", '{"place": "x"}', "away"),)),
        settings=preset("cubepi-strict"),
        tools=[look],
    )
    rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("idle", "guard_blocked", 0)
    assert answer_of(rig.state) == "I could not."
    rig.then(repeat("Second answer."))
    rig.run("again")
    assert "away" not in str(rig.model.payloads)


def write_todos(*names: str) -> Any:
    todos = [{"content": name, "status": "in_progress"} for name in names]
    return calls(("write_todos", {"todos": todos}))


@IN_FORM
def test_c34_repeated_ids_in_a_history_from_elsewhere(rig: Rig, form: Any) -> None:
    def made(place: str) -> list[Any]:
        block = {"type": "tool_use", "id": "1", "name": "look", "input": {"place": place}}
        call = {"name": "look", "args": {"place": place}, "id": "1"}
        return [AIMessage([block], tool_calls=[call]), ToolMessage(f"seen {place}", tool_call_id="1")]

    stale = AIMessage(
        [{"type": "text", "text": "so"}, {"type": "tool_use", "id": "9", "name": "x", "input": {}}]
    )
    rig.speaks(form).build("Fine.", tools=[look])
    rig.run({"messages": [HumanMessage("q"), *made("a"), *made("b"), stale, HumanMessage("go")]})
    rig.model.assert_done()
    first, second = all_ids(rig.model)
    assert first == "1"
    assert MINTED.fullmatch(second)
    rig.follow_up()
    assert all_ids(rig.model)[:2] == [first, second]  # the same in each request


SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}


class Searching(Anthropic):
    """Runs a tool of its own; it may pause before the end."""

    ends: ClassVar = {**Anthropic.ends, "pause": "pause_turn"}

    def blocks(self, said: Said) -> list[dict[str, Any]]:
        return [*super().blocks(said), *([SEARCH] if said.text == "I search." else [])]

    def items(self, payload: dict[str, Any]) -> list[Any]:
        lost = [
            ("bad", "", f"web_search tool use with id {block['id']} was found without a result")
            for message in payload["messages"]
            for block in (message["content"] if isinstance(message["content"], list) else ())
            if block["type"] == "server_tool_use" and FOUND not in message["content"]
        ]
        return [*lost, *super().items(payload)]


@pytest.mark.skipif(find_spec("langchain_anthropic") is None, reason="its client is not installed")
@pytest.mark.parametrize("sign", ["pause", "cut", ""])
def test_c34_an_unfinished_call_of_the_providers_own_tool(rig: Rig, sign: str) -> None:
    rig.speaks(Searching()).build(
        write("a"), Said("I search.", sign=sign), calls(("todo_update", {"id": 1, "status": "done"})), "Done."
    )
    rig.run("go")
    rig.model.assert_done()
    assert marks(rig.messages) == (["retry"] if sign else ["wake"])
    assert "srvtoolu_1" not in str(rig.messages)
    assert "I search." in [str(m.text) for m in rig.messages]
    rig.follow_up()


ELSEWHERE = {
    "no result": ([SEARCH], 0),
    "its result": ([SEARCH, FOUND], 2),
    "LangChain's form": ([{"type": "server_tool_call", "id": "1", "name": "web_search", "args": {}}], 0),
    "a client's tool": ([{"type": "computer_call", "call_id": "1", "action": {"type": "screenshot"}}], 0),
}


@pytest.mark.parametrize(("blocks", "kept"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_c34_the_same_in_a_history_from_elsewhere(quick: Rig, blocks: list[Any], kept: int) -> None:
    said = AIMessage([{"type": "text", "text": "so"}, *blocks])
    assert (wire_faults([[HumanMessage("q"), said, HumanMessage("go")]]) == []) is (kept > 0)
    quick.build("Fine.")
    quick.run({"messages": [HumanMessage("q"), said, HumanMessage("go")]})
    sent = quick.model.requests[0][-2]
    assert len(sent.content) == 1 + kept
    quick.follow_up()


@IN_FORM
def test_c34_results_in_a_users_blocks_as_in_a_providers_own_history(quick: Rig, form: Any) -> None:
    block = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "seen x"}]}
    user = HumanMessage([block, {"type": "text", "text": "And now?"}])
    assert wire_faults([[user]]) != []
    call = {"type": "tool_use", "id": "c1", "name": "look", "input": {"place": "x"}}
    quick.speaks(form).build("Fine.", tools=[look])
    quick.run({"messages": [HumanMessage("q"), AIMessage([call]), user, AIMessage("so"), HumanMessage("go")]})
    quick.model.assert_done()
    assert str(quick.model.requests[0][-3].text) == "seen xAnd now?"
    quick.follow_up()


@IN_FORM
@pytest.mark.parametrize("said", ["", " \n", [], [{"type": "text", "text": " "}]])
def test_a_user_who_said_nothing(quick: Rig, form: Any, said: Any) -> None:
    """Anthropic's server refuses a blank text, in every later request too."""
    assert wire_faults([[HumanMessage(said)]]) == ["request 0, message 0: an empty user message"]
    quick.speaks(form).build("Yes?")
    quick.run({"messages": [HumanMessage(said)]})
    quick.model.assert_done()
    assert str(quick.model.requests[0][-1].text) == "[no text]"
    assert quick.messages[0].content == said
    quick.follow_up()


# -- C47 -------------------------------------------------------------------------------------------------

LEGACY = {"function_call": {"name": "look", "arguments": "{}"}}


@IN_FORM
def test_c47_a_legacy_function_call_is_not_sent(rig: Rig, form: Any) -> None:
    history = [
        HumanMessage("q"),
        AIMessage("", additional_kwargs=LEGACY),
        HumanMessage("and"),
        AIMessage("so", additional_kwargs=LEGACY),
        HumanMessage("go"),
    ]
    rig.speaks(form).build("Fine.")
    rig.run({"messages": history})
    rig.model.assert_done()
    sent = {key: value for key, value in rig.model.payloads[0].items() if key not in ("tools", "toolConfig")}
    assert "function_call" not in str(sent)
    rig.follow_up()


def test_c47_nor_one_in_a_reply(rig: Rig) -> None:
    rig.build(AIMessage("Half.", additional_kwargs=LEGACY))
    rig.run("go")
    (reply,) = [m for m in rig.messages if isinstance(m, AIMessage)]
    assert reply.additional_kwargs == {}
    rig.follow_up()
