"""Case C29: what an agent inside a larger graph remembers."""

from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AnyMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command
from rig import Rig, close, results, users, write
from shared_tools import ask

from wakeloop import answer_of, create_todo_agent, preset
from wakeloop.testing import ScriptedModel, calls

ONE_WAKE = preset("wakeloop").model_copy(
    update={"max_wake_cycles": 1, "earn_wakes": 0, "guard_retries": 0, "max_idle_wakes": 0}
)
CHILD = pytest.mark.parametrize("own", [None, True, False], ids=["None", "True", "False"])


class Talk(TypedDict):
    """A parent that shares only the conversation."""

    messages: Annotated[list[AnyMessage], add_messages]


def build_parent(rig: Rig, own: Any, *replies: Any) -> None:
    """Build a parent with the rig's saver, whose child has a checkpointer of this kind."""
    rig.model = ScriptedModel(*replies)
    rig.models = [rig.model]
    child = create_todo_agent(rig.model, [ask], settings=ONE_WAKE, checkpointer=own)
    rig.agent = StateGraph(Talk).add_node("child", child).add_edge(START, "child").compile(rig.saver)
    rig.followed = True  # each case sends its own second message, through the parent


def asked(rig: Rig, given: Any) -> int:
    """Return how many requests each run takes."""
    before = len(rig.model.requests)
    rig.run(given)
    return len(rig.model.requests) - before


@CHILD
def test_c29_three_runs_of_a_parent(rig: Rig, own: Any) -> None:
    """A child that keeps its list finds an item open and wakes once; others begin with an empty one."""
    keeps = own is True and rig.keeps
    texts = ["1", "2", "3", "4", "5", "6"] if keeps else ["1", "2", "3", "4"]
    build_parent(rig, own, write("a", "b"), close(1), *texts)
    assert [asked(rig, text) for text in ("first", "second", "third")] == ([4, 2, 2] if keeps else [4, 1, 1])
    rig.model.assert_done()
    assert users(rig.messages) == ["first", "second", "third"]
    assert answer_of(rig.values) == texts[-1]


@CHILD
def test_c29_an_answer(kept: Rig, own: Any) -> None:
    """False: the work before the question is done again."""
    question = calls(("ask", {"question": "?"}, "q"))
    kept.grows = own is not False
    again = [write("a"), question] if own is False else []
    build_parent(kept, own, write("a"), question, *again, close(1), "Done.", "Hello.")
    assert asked(kept, "go") == 2
    assert kept.snapshot.interrupts
    assert asked(kept, Command(resume="yes")) == len(again) + 2
    assert [m.content for m in results(kept.messages) if m.tool_call_id == "q"] == ["yes"]
    assert answer_of(kept.values) == "Done."
    assert asked(kept, "hello") == 1
    assert answer_of(kept.values) == "Hello."
    assert users(kept.messages) == ["go", "hello"]


@CHILD
def test_c29_a_plain_message(kept: Rig, own: Any) -> None:
    """True keeps the interrupted run; with None and False it is lost completely."""
    keeps = kept.grows = own is True
    replies = [close(1), "As you like."] if keeps else ["As you like."]
    build_parent(kept, own, write("a"), calls(("ask", {"question": "?"}, "q")), *replies, "Third.")
    assert asked(kept, "first") == 2
    assert asked(kept, "second") == len(replies)
    request = kept.model.requests[2]
    kinds = ["human", "ai", "tool", "ai", "tool", "ai", "human", "human"] if keeps else ["human", "human"]
    assert [m.type for m in request] == ["system", *kinds]
    assert request[-2 if keeps else -1].content == "second"
    if keeps:  # the open item is named after it
        assert request[-1].text.startswith("(automatic) Still open from before:\n\n  [1] a\n\n")
    assert answer_of(kept.values) == "As you like."
    assert asked(kept, "third") == 1
    assert answer_of(kept.values) == "Third."
