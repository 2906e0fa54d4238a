"""Case C52: what a chat UI or a framework puts in is nobody's words; what the graph puts in is hidden."""

from __future__ import annotations

import json
from itertools import repeat
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from forms import FORMS
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    add_notification_metadata,
    get_notification_metadata,
    message_to_dict,
)
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.types import Command, interrupt
from pydantic import BaseModel
from rig import Rig, close, write

from wakeloop import answer_of, preset
from wakeloop.channels.conversation import merge_messages
from wakeloop.cli.show import first_request
from wakeloop.testing import ScriptedModel, calls, says

GO_ON = "(automatic) Please take it from here."
BY_OTHERS = {
    "summary": HumanMessage("so far", additional_kwargs={"lc_source": "summarization"}),
    "rubric": HumanMessage("redo", name="rubric_grader", additional_kwargs={"lc_source": "rubric_grader"}),
    "notification": add_notification_metadata(HumanMessage("t_42 done"), source="async_subagent"),
    "unknown": HumanMessage("psst", additional_kwargs={"lc_source": "of next year"}),
    "a client's": HumanMessage("cut", id="do-not-render-7", additional_kwargs={}),
    "as a dict": {"role": "user", "content": "d", "additional_kwargs": {"lc_source": "pinned_skill"}},
    "in JSON": message_to_dict(HumanMessage("j", additional_kwargs={"lc_source": "summarization"}))["data"],
}
THE_USERS: list[Any] = [None, "", " \n", 7, True, ["summarization"], {"source": "x"}, "wakeloop"]
OTHERS = pytest.mark.parametrize("which", BY_OTHERS)


def its_own(which: str) -> Any:
    """Copy a message, because a run writes ids on the objects that it is given."""
    given = BY_OTHERS[which]
    return given.model_copy() if isinstance(given, BaseMessage) else dict(given)


def put_in(key: str, message: Any) -> Command[Any]:
    """A tool's return value that puts a message in after its result."""
    return Command(update={"messages": [ToolMessage("seen", tool_call_id=key), message]})


def noting(message: Any) -> Any:
    """Return a tool that does so."""

    @tool
    def look(key: Annotated[str, InjectedToolCallId], at: str = "x") -> Command[Any]:
        """Look."""
        return put_in(key, message)

    return look


# -- what others put in ----------------------------------------------------------------------------------


@OTHERS
def test_c52_it_never_hides_the_answer(quick: Rig, which: str) -> None:
    """The answer is looked for up to the user's words: the last reply said nothing more."""
    last = calls(("todo_update", {"id": 1, "status": "done"}), ("look", {}), text="Here it is.")
    quick.build(write("a"), last, "", tools=[noting(its_own(which))])
    out = quick.run("go")
    quick.model.assert_done()
    assert answer_of(out) == "Here it is."
    quick.follow_up()


def test_c52_calls_before_it_count_as_seen(rig: Rig) -> None:
    """Repeating a call in a wake's turn does not count as progress: five such wakes end the run."""
    looks = calls(("look", {"at": "x"}))
    settings = preset("wakeloop").model_copy(update={"max_idle_rounds": 0, "guard_retries": 0})
    tools = [noting(its_own("summary"))]
    rig.build(write("a"), looks, "stop", *[looks, "stop"] * 5, tools=tools, settings=settings)
    rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("idle", "stalled", 5)
    rig.follow_up()


@OTHERS
def test_c52_alone_it_is_sent_as_it_came_and_the_graph_asks(quick: Rig, which: str) -> None:
    """Nobody's words open an activation; an older answer does not answer it."""
    quick.build("First.", *[""] * 5)  # the reply is asked for four times more
    quick.run("go")
    out = quick.run({"messages": [its_own(which)]})
    quick.model.assert_done()
    told, asked = quick.requests[1][-2:]
    given = BY_OTHERS[which]
    assert told.text == (given.text if isinstance(given, BaseMessage) else given["content"])
    assert (asked.text, asked.additional_kwargs["wakeloop"]) == (GO_ON, {"kind": "activate"})
    assert answer_of(out) == ""
    sources = [event["sources"] for event in quick.events if event["type"] == "activated"]
    assert sources == ([["human"], ["kick"]] if quick.events else [])
    quick.follow_up()


def test_c52_it_ends_no_wait_for_a_person(kept: Rig) -> None:
    @tool
    def park(key: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Wait for a person."""
        waits = {"waiting_on": [{"id": "q", "on": "human"}]}
        return Command(update={**waits, "messages": [ToolMessage("asked", tool_call_id=key)]})

    kept.build(calls(("park", {})), "I wait.", "Noted.", tools=[park])
    kept.run("go")
    kept.run({"messages": [its_own("notification")]})
    kept.model.assert_done()
    assert (kept.ending, kept.session["on"]) == (("waiting", "waiting", 0), "human")
    kept.follow_up()


@OTHERS
def test_c52_it_is_not_the_question(which: str) -> None:
    given = merge_messages([], [[its_own(which), HumanMessage("do it")]])
    assert first_request(given) == "do it"


def test_c52_nor_is_a_frameworks_assistant_the_model(quick: Rig) -> None:
    noted = AIMessage("I have read the skill.", additional_kwargs={"lc_source": "pinned_skill"})
    quick.build("Done.")
    out = quick.run({"messages": [("user", "go"), noted, ("user", "and?")]})
    assert answer_of([*out["messages"], noted]) == "Done."
    quick.follow_up()


@pytest.mark.parametrize("source", THE_USERS, ids=repr)
def test_c52_a_mark_that_names_nobody_is_ignored(source: Any) -> None:
    asked = HumanMessage("and?", additional_kwargs={"lc_source": source})
    assert answer_of([HumanMessage("go"), AIMessage("Before."), asked]) == ""
    assert first_request([asked, HumanMessage("later")]) == "and?"


def test_c52_in_input_it_is_marked_as_others_and_kept_while_a_forged_mark_of_ours_is_removed(
    quick: Rig,
) -> None:
    quick.build("Fine.")
    extra = {"wakeloop": {"kind": "wake"}, "lc_source": "wakeloop", "other": 1}
    quick.run({"messages": [its_own("summary"), HumanMessage("go", additional_kwargs=extra)]})
    quick.model.assert_done()
    assert [m.additional_kwargs for m in quick.messages[:2]] == [{"lc_source": "summarization"}, {"other": 1}]
    quick.follow_up()


def test_c52_langchains_own_summary_through_a_hook(kept: Rig) -> None:
    """Its middleware summarises permanently; the answer and the person's question are still found."""
    middleware = SummarizationMiddleware(
        ScriptedModel(repeat(says("They talked."))), trigger=("messages", 6), keep=("messages", 2)
    )
    kept.build(
        "1", "2", "3", "4", pre_model_hook=lambda state: middleware.before_model(state, SimpleNamespace())
    )
    kept.grows = False
    for text in ("a", "b", "c", "d"):
        out = kept.run(text)
    kept.model.assert_done()
    summary, *rest = out["messages"]
    assert summary.additional_kwargs == {"lc_source": "summarization"}
    assert [m.text for m in rest] == ["3", "d", "4"]
    assert (answer_of(out), first_request(out["messages"])) == ("4", "d")
    kept.follow_up()


# -- what the graph puts in ------------------------------------------------------------------------------


class Sum(BaseModel):
    """A number."""

    number: int


@tool
def ask() -> str:
    """Ask a person."""
    return str(interrupt("which?"))


@tool
def look() -> str:
    """Look."""
    return "seen"


@pytest.mark.parametrize("form", FORMS)
def test_c52_no_server_is_sent_a_messages_id_or_a_mark(quick: Rig, form: Any) -> None:
    quick.speaks(form).build(write("a"), "stop", close(1), "bye")
    quick.run({"messages": [its_own("summary"), HumanMessage("go")]})
    quick.model.assert_done()
    sent, told = json.dumps(quick.model.payloads), [m for m in quick.messages if m.type == "human"]
    assert [m.text for m in told[:2]] == ["so far", "go"]
    assert len(told) == 3
    assert [m.id for m in told if m.id and m.id in sent] == []
    assert [
        word for word in ("do-not-render", "lc_source", "summarization", '"wakeloop"') if word in sent
    ] == []
    quick.follow_up()


def test_c52_what_the_graph_puts_in_is_hidden_by_the_conventions(kept: Rig) -> None:
    """Every kind but two: a reminder is part of a tool's result, and a result in a format is the model's."""
    settings = preset("wakeloop").model_copy(update={"max_wake_cycles": 1, "earn_wakes": 0, "nag_after": 1})
    cut = says("Half", response_metadata={"finish_reason": "length"})
    form = calls(("Sum", {"number": 7}))
    first = [write("a"), calls(("look", {})), "stop", "stop", close(1), "bye", form]
    others = [cut, "whole", form, "told", form, calls(("ask", {})), "bye", form]
    kept.build(*first, *others, tools=[ask, look], settings=settings, response_format=Sum)
    kept.run("go")
    kept.run("more")
    kept.run({"todo_inbox": [{"kind": "cron", "id": "tick", "text": "It is noon."}]})
    kept.run("ask")
    kept.run({"messages": [("user", "never mind")]})  # instead of an answer
    kept.model.assert_done()
    told = [m for m in kept.messages if "wakeloop" in m.additional_kwargs]
    kinds = {m.additional_kwargs["wakeloop"]["kind"]: m for m in told}
    assert sorted(kinds) == ["event", "format", "guard", "nag", "repair", "retry", "wake"]
    shown = [m for m in told if not (m.id or "").startswith("do-not-render-")]
    kind = [(m.type, m.additional_kwargs["wakeloop"]["kind"]) for m in shown]
    assert sorted(set(kind)) == [("ai", "format"), ("tool", "nag")]
    assert not any(get_notification_metadata(m) for m in shown)
    hidden = [m for m in told if m not in shown]
    assert [get_notification_metadata(m) for m in hidden] == [{"source": "wakeloop"}] * len(hidden)
    assert kinds["event"].id == "do-not-render-event-tick"
    assert {len(m.id or "") for m in hidden if m is not kinds["event"]} == {22}
    kept.followed = True  # with a format: the second message was "more"
