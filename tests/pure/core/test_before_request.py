"""The one message before a request: the order of its parts, and its position."""

from collections.abc import Sequence
from dataclasses import fields

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from wakeloop.loop.before_request import Notices, place_notices
from wakeloop.text.marks import kind_of

ASKED = HumanMessage("Sweep.", id="1")
CALLED = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "c"}], id="2")
RESULT = ToolMessage("clean", tool_call_id="c", id="3")
SAID = AIMessage("Done.", id="4")


def test_its_parts_become_one_string_in_a_fixed_order() -> None:
    everything = Notices(**{field.name: field.name for field in fields(Notices)})
    assert everything.compose() == "changes\n\nearlier\n\nwaited\n\nmissing\n\nnudge\n\nreminder"
    assert Notices(nudge="Continue.").compose() == "Continue."
    assert Notices().compose() == ""
    assert Notices(changes="(automatic) A.", nudge="(automatic) B.").compose() == "(automatic) A.\n\nB."
    assert Notices(changes="A.", nudge="(automatic) B.").compose() == "A.\n\n(automatic) B."


@pytest.mark.parametrize(
    ("history", "sent", "expected"),
    [
        ([], False, [("human", "", "Continue.")]),
        ([ASKED], False, [("human", "", "Continue.")]),
        ([ASKED], True, [("human", "", "Continue.")]),
        ([ASKED, SAID], False, [("human", "", "Continue.")]),
        ([ASKED, CALLED, RESULT], False, [("tool", "3", "clean\n\nContinue.")]),
        ([ASKED, CALLED, RESULT], True, [("ai", "", "[continued]"), ("human", "", "Continue.")]),
    ],
)
def test_its_position_is_legal(
    history: Sequence[BaseMessage], sent: bool, expected: list[tuple[str, str, str]]
) -> None:
    placed = place_notices(history, Notices(nudge="Continue."), "nag", filler="[continued]", sent=sent)
    known = {message.id for message in history}
    assert [(m.type, (m.id or "") if m.id in known else "", m.content) for m in placed] == expected
    assert all(map(kind_of, placed))


def test_if_there_is_nothing_to_say_nothing_is_written() -> None:
    assert place_notices([ASKED, CALLED, RESULT], Notices(), "nag", filler="[continued]", sent=True) == []
