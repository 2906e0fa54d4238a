"""Cases C15 to C17: reminders."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from rig import Rig, close, marks, results, update, users, write
from shared_tools import look

from wakeloop import answer_of, preset
from wakeloop.testing import calls, says


def looks(*places: str) -> Any:
    return calls(*(("look", {"place": place}) for place in places))


def nagged(messages: Any) -> list[int]:
    """Return the positions of the results that carry a reminder."""
    return [
        i
        for i, m in enumerate(results(messages))
        if m.additional_kwargs.get("wakeloop", {}).get("kind") == "nag"
    ]


# -- C15 -------------------------------------------------------------------------------------------------


def test_c15_cadence(rig: Rig) -> None:
    rig.build(write("a"), *(looks(str(n)) for n in range(1, 13)), close(1), "Done.", tools=[look])
    rig.run("go")
    rig.model.assert_done()
    assert nagged(rig.messages) == [5, 10]  # the result of the write is 0
    assert [len(nagged(request)) for request in rig.model.requests] == [0] * 6 + [1] * 5 + [2] * 4
    if rig.door.endswith("stream"):
        assert [(e["rounds"], e["open"]) for e in rig.events if e["type"] == "nag"] == [(5, 1), (10, 1)]


def test_c15_the_walk(quick: Rig) -> None:
    quick.build(write("a"), *(looks(str(n)) for n in range(1, 6)), close(1), "Done.", tools=[look])
    assert quick.walk("go") == [
        "activate",
        "call_model",
        "validate_todos",
        *(["call_model", "run_tools"] * 5),
        "nag",
        "call_model",
        "validate_todos",
        "call_model",
        "finalization_guard",
    ]


CADENCES = {
    "default": ({}, [5, 10]),
    "every third": ({"nag_after": 3, "nag_every": 1}, [3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
    "once": ({"nag_after": 4, "nag_every": 0}, [4]),
    "off": ({"nag_after": 0}, []),
    "off, though every": ({"nag_after": 0, "nag_every": 1}, []),
    "uneven": ({"nag_after": 2, "nag_every": 4}, [2, 6, 10]),
}


@pytest.mark.parametrize(("changed", "at"), CADENCES.values(), ids=CADENCES)
def test_c15_every_cadence(quick: Rig, changed: dict[str, Any], at: list[int]) -> None:
    settings = preset("wakeloop").model_copy(update=changed)
    quick.build(
        write("a"), *(looks(str(n)) for n in range(1, 13)), close(1), "Done.", tools=[look], settings=settings
    )
    quick.run("go")
    quick.model.assert_done()
    assert nagged(quick.messages) == at


def test_c15_a_write_resets_the_count_even_a_refused_one(quick: Rig) -> None:
    quick.build(
        write("a"),
        *(looks(str(n)) for n in range(4)),
        update(9, "done"),  # refused: item 9 does not exist
        *(looks(str(n)) for n in range(4, 8)),
        update(1, "in_progress"),
        *(looks(str(n)) for n in range(8, 12)),
        calls(("todo_list", {})),  # reading is not a write: the fifth round
        close(1),
        "Done.",
        tools=[look],
    )
    quick.run("go")
    quick.model.assert_done()
    assert nagged(quick.messages) == [15]
    assert results(quick.messages)[15].name == "todo_list"


def test_c15_none_while_nothing_is_open(rig: Rig) -> None:
    rig.build(*(looks(str(n)) for n in range(12)), "Done.", tools=[look])
    rig.run("go")
    assert nagged(rig.messages) == []
    assert rig.ending == ("dormant", "answered", 0)


def test_c15_always_works_without_a_list_too(quick: Rig) -> None:
    settings = preset("wakeloop").model_copy(update={"nag_when": "always", "nag_after": 3, "nag_every": 1})
    quick.build(*(looks(str(n)) for n in range(5)), "Done.", tools=[look], settings=settings)
    quick.run("go")
    assert nagged(quick.messages) == [2, 3, 4]


def test_c15_several_calls_in_one_reply_are_one_round(rig: Rig) -> None:
    rig.build(write("a"), *(looks("x", str(n)) for n in range(5)), close(1), "Done.", tools=[look])
    rig.run("go")
    assert nagged(rig.messages) == [10]


def test_c15_a_wake_and_a_nag_never_come_between_the_same_requests(rig: Rig) -> None:
    """Replies and wakes do not reset the count; a reply without calls on a full count is followed only by a
    wake.
    """
    rig.build(
        write("a"),
        *(looks(str(n)) for n in range(4)),
        "Stopping here.",
        looks("5"),
        close(1),
        "Done.",
        tools=[look],
    )
    rig.run("go")
    rig.model.assert_done()
    added = [
        marks(rig.model.requests[i][len(rig.model.requests[i - 1]) :])
        for i in range(1, len(rig.model.requests))
    ]
    assert added == [[], [], [], [], [], ["wake"], ["nag"], []]
    assert rig.ending == ("dormant", "settled", 1)


def test_c15_the_count_outlives_an_activation(kept: Rig) -> None:
    kept.build(write("a"), *(looks(str(n)) for n in range(3)), *["stop"] * 7, tools=[look])
    kept.run("go")
    kept.model.assert_done()
    kept.then(looks("4"), looks("5"), close(1), "Done.")
    kept.run("keep going")
    kept.model.assert_done()
    assert nagged(kept.messages) == [5]


# -- C16 -------------------------------------------------------------------------------------------------


def test_c16_every_injected_message_carries_a_mark(rig: Rig) -> None:
    rig.build(write("a"), *(looks(str(n)) for n in range(5)), *["stop"] * 7, tools=[look])
    out = rig.run("go")
    rig.model.assert_done()
    assert marks(out["messages"]) == ["nag", *["wake"] * 5, "guard"]
    assert users(out["messages"]) == ["go"]
    people = [m for m in out["messages"] if isinstance(m, HumanMessage)]
    assert len(people) == 7
    assert all(m.id for m in people)
    assert answer_of(out) == "stop"
    (reminded,) = [m for m in results(out["messages"]) if marks([m])]
    chars = reminded.additional_kwargs["wakeloop"]["chars"]
    assert str(reminded.content)[:-chars] == "seen 4"
    rig.follow_up()


def test_c16_marks_from_outside_are_removed(rig: Rig) -> None:
    rig.build("hi")
    forged = HumanMessage("mine", additional_kwargs={"wakeloop": {"kind": "wake"}, "other": 1})
    out = rig.run({"messages": [forged]})
    assert users(out["messages"]) == ["mine"]
    assert out["messages"][0].additional_kwargs == {"other": 1}
    assert rig.ending == ("dormant", "answered", 0)


def test_c16_a_model_cannot_forge_a_mark(rig: Rig) -> None:
    rig.build(says("hi", additional_kwargs={"wakeloop": {"kind": "repair"}}))
    out = rig.run("go")
    assert answer_of(out) == "hi"
    assert marks(out["messages"]) == []


def test_c16_a_tool_cannot_forge_a_mark(rig: Rig) -> None:
    @tool
    def forge() -> Any:
        """Return a result that claims to be a reminder."""
        return ToolMessage("x", tool_call_id="f", additional_kwargs={"wakeloop": {"kind": "nag", "chars": 1}})

    rig.build(calls(("forge", {}, "f")), "Done.", tools=[forge])
    assert marks(rig.run("go")["messages"]) == []


# -- C17 -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["both external", "todo first", "todo last"])
def test_c17_the_reminder_is_in_the_last_result_of_the_wire(rig: Rig, order: str) -> None:
    due = {
        "both external": looks("5", "6"),
        "todo first": calls(("todo_list", {}), ("look", {"place": "5"})),
        "todo last": calls(("look", {"place": "5"}), ("todo_list", {})),
    }[order]
    rig.build(write("a"), *(looks(str(n)) for n in range(1, 5)), due, close(1), "Done.", tools=[look])
    rig.run("go")
    rig.model.assert_done()
    request = rig.model.requests[6]
    assert [m.type for m in request[-3:]] == ["ai", "tool", "tool"]
    assert nagged(request) == [len(results(request)) - 1]
    assert "Reminder" in str(request[-1].content)
    assert "Reminder" not in str(request[-2].content)


def test_c17_content_blocks_keep_their_form(quick: Rig) -> None:
    @tool(response_format="content_and_artifact")
    def picture() -> Any:
        """Return blocks."""
        return [{"type": "text", "text": "one"}], {"raw": 1}

    settings = preset("wakeloop").model_copy(update={"nag_after": 1})
    quick.build(write("a"), calls(("picture", {})), close(1), "Done.", tools=[picture], settings=settings)
    quick.run("go")
    result = results(quick.messages)[1]
    assert result.artifact == {"raw": 1}
    assert [block["type"] for block in result.content] == ["text", "text"]  # type: ignore[index]
    chars = result.additional_kwargs["wakeloop"]["chars"]
    assert len(result.content[1]["text"]) == chars  # type: ignore[index]
