"""Rule 30 as exact requests: which of them ask for a call, and in which words."""

from itertools import repeat
from typing import Any

import pytest
from agents import AGAIN, END, START, TODO, UNASKED, WAKE, WORK, Make, Thread, done, look, looks, write
from langgraph.types import Command, interrupt
from shared_tools import ask

from wakeloop import preset
from wakeloop.presets import PRESETS
from wakeloop.testing import ScriptedModel, calls, says

FREE, FORCED = {}, {"tool_choice": "required"}
AGAIN_WORDS = "Call a tool: do the next item"
LISTS = calls(("todo_list", {}))


def asked_for(agent: Thread) -> list[dict[str, Any]]:
    """Return what each request asked for beyond its messages and tools."""
    return agent.model.options


def words(agent: Thread) -> list[str]:
    """Return the messages of wakes and corrections."""
    return [m.text for m in agent.messages if agent_kind(m) in ("wake", "guard")]


def agent_kind(message: Any) -> str:
    return message.additional_kwargs.get("wakeloop", {}).get("kind", "")


def test_c103_endless_words_from_a_model_that_ignores_forced_choices(thread: Make) -> None:
    agent = thread(write("a"), *repeat("All done.", 7))
    assert agent.walk("go") == [*START, *TODO, *WAKE * 5, *AGAIN, *END]
    assert agent.session["reason"] == "stalled"
    assert asked_for(agent) == [*[FREE] * 3, *[FORCED] * 5]
    assert [AGAIN_WORDS in text for text in words(agent)] == [False, True, True, True, True, False]
    assert "todo_update" in words(agent)[1]
    assert '"blocked"' in words(agent)[1]


def test_with_never_the_nudges_stay_as_they_are(thread: Make) -> None:
    agent = thread(write("a"), *repeat("All done.", 7), change={"force_call": "never"})
    agent.run("go")
    assert asked_for(agent) == [FREE] * 8
    assert len(set(words(agent)[:5])) == 1


@pytest.mark.parametrize("name", [name for name in PRESETS if name not in ("wakeloop", "langchain")])
def test_the_presets_of_the_described_systems_never_ask_for_a_call(thread: Make, name: str) -> None:
    on = {"auto_continue": True, "max_wake_cycles": 4, "stop_on_repeat": False}
    agent = thread(
        repeat("All done."), left=True, settings=preset(name).model_copy(update=on), rewritten=True
    )
    agent.run({"messages": [("user", "go")], "todos": [{"content": "a"}]})
    assert agent.session["wakes"] == 4
    assert [options for options in asked_for(agent) if options] == []
    assert len(set(words(agent)[:4])) == 1
    assert "push" not in agent.ledger


def test_the_first_wake_after_a_call_is_the_nudge_again(thread: Make) -> None:
    agent = thread(
        write("a", "b"), "t", "t", done(1), "t", "t", done(2), looks("x"), "t", tools=[look],
        change={"guard_retries": 0},
    )  # fmt: skip
    # the third turn's only call is the forced one, so the fourth wake is forced again
    assert agent.walk("go") == [*START, *TODO, *WAKE, *WAKE, *TODO, *WAKE, *WAKE, *TODO, *WORK, *END]
    assert asked_for(agent) == [FREE, FREE, FREE, FORCED, FREE, FORCED, FORCED, FREE, FREE]


def test_a_free_call_makes_the_next_wake_a_plain_one(thread: Make) -> None:
    agent = thread(
        write("a", "b"), "t", "t", LISTS, looks("x"), "t", "t", done(1, 2), "bye", tools=[look]
    )  # fmt: skip
    agent.run("go")
    assert asked_for(agent) == [FREE, FREE, FREE, FORCED, FREE, FREE, FREE, FORCED, FREE]
    assert agent.session["wakes"] == 4


def test_a_forced_call_that_only_reads_the_list_is_an_idle_turn(thread: Make) -> None:
    agent = thread(
        write("a"), "t", "t", LISTS, "t", LISTS, "t", "t", change={"max_idle_wakes": 3, "guard_retries": 1}
    )
    agent.run("go")
    assert (agent.session["reason"], agent.ledger["idle_wakes"]) == ("stalled", 3)
    assert asked_for(agent) == [FREE, FREE, FREE, FORCED, FREE, FORCED, FREE, FORCED]


@pytest.mark.parametrize(("wakes", "asked"), [(1, FREE), (2, FORCED)])
def test_a_correction_asks_as_the_last_wake_did(thread: Make, wakes: int, asked: Any) -> None:
    """Only its first request; the one after a call is free."""
    change = {"max_wake_cycles": wakes, "earn_wakes": 0}
    agent = thread(write("a"), *["t"] * (wakes + 1), LISTS, "t", change=change)
    agent.run("go")
    assert asked_for(agent)[-2:] == [asked, FREE]


BAD: dict[str, Any] = {
    "unknown tool": calls(("nothing", {})),
    "cut": says("half", finish_reason="length"),
    "cut calls": calls(("look", {"path": "x"}), finish_reason="length"),
}


@pytest.mark.parametrize("reply", BAD.values(), ids=BAD)
def test_the_retries_of_a_forced_request_are_forced(thread: Make, reply: Any) -> None:
    agent = thread(write("a"), "t", "t", reply, reply, done(1), "bye", tools=[look])
    agent.run("go")
    assert asked_for(agent) == [FREE, FREE, FREE, FORCED, FORCED, FORCED, FREE]
    assert agent.session["reason"] == "settled"


NO_ANSWERS: dict[str, Any] = {
    "empty": says(""),
    "printed": says('{"name": "todo_update", "arguments": {"id": 1, "status": "done"}}'),
    "promised": says("I close it.", finish_reason="tool_calls"),
    "thoughts": says("<think>Is it done?</think>"),
}


@pytest.mark.parametrize("reply", NO_ANSWERS.values(), ids=NO_ANSWERS)
def test_a_forced_reply_that_is_not_an_answer_is_asked_for_again_with_force(thread: Make, reply: Any) -> None:
    agent = thread(write("a"), "t", "t", reply, done(1), "bye")
    agent.run("go")
    assert asked_for(agent) == [FREE, FREE, FREE, FORCED, FORCED, FREE]
    assert (agent.session["reason"], agent.session["wakes"]) == ("settled", 2)


def test_an_explanation_and_a_closing_report_are_never_forced(thread: Make) -> None:
    change = {"max_idle_wakes": 2, "on_guard_exhausted": "block"}
    agent = thread(write("a"), *["t"] * 5, change=change)
    agent.run("go")
    assert agent.session["reason"] == "guard_blocked"
    assert asked_for(agent) == [FREE, FREE, FREE, FORCED, FORCED, FREE]
    report = thread(write("a"), *["t"] * 4, change={"max_requests": 4})
    report.run("go")
    assert report.session["reason"] == "request_budget"
    assert asked_for(report) == [FREE, FREE, FREE, FORCED, FREE]


def test_a_reply_owed_with_nothing_open_is_asked_for_in_words(thread: Make) -> None:
    agent = thread("first", *["t"] * 4, change={"max_wake_cycles": 3, "max_idle_wakes": 0})
    agent.run("go")
    owed = {"owed_replies": [{"id": "q1", "sender": "bob"}]}
    agent.graph.update_state(agent.at(), owed, as_node="finalization_guard")
    agent.run("more")
    assert agent.session["wakes"] == 3
    assert asked_for(agent) == [FREE] * 5


def test_a_given_list_and_a_model_that_only_talks(thread: Make) -> None:
    """The run is not parked: the list came with the message."""
    agent = thread(*repeat("All done.", 7))
    agent.run({"messages": [("user", "go")], "todos": [{"content": "a"}]})
    assert agent.session["reason"] == "stalled"
    assert asked_for(agent) == [FREE, FREE, *[FORCED] * 5]


def test_a_new_activation_begins_with_words(thread: Make) -> None:
    change = {"max_wake_cycles": 2, "guard_retries": 0, **UNASKED}
    agent = thread(write("a"), *["t"] * 3, *["t"] * 3, change=change)
    agent.run("go")
    agent.run("keep going")
    assert asked_for(agent) == [FREE, FREE, FREE, FORCED, FREE, FREE, FORCED]


def test_a_run_resumed_before_the_request_asks_the_same(thread: Make) -> None:
    agent = thread(write("a"), "t", "t", done(1), "bye")
    config = agent.at()
    agent.graph.invoke({"messages": [("user", "go")]}, config, interrupt_after=["wake"])
    for _ in range(2):
        agent.graph.invoke(None, config, interrupt_after=["wake"])
    assert asked_for(agent) == [FREE, FREE, FREE, FORCED, FREE]


@pytest.mark.parametrize(
    "change", [{"continuation_prompt": "Weiter."}, {"prompts": {"nudge": "Weiter.\n$list"}}]
)
def test_a_replaced_nudge_is_used_for_every_wake(thread: Make, change: Any) -> None:
    agent = thread(write("a"), *["t"] * 3, change={"max_wake_cycles": 2, "guard_retries": 0, **change})
    agent.run("go")
    assert [text.split("\n")[0] for text in words(agent)] == ["Weiter."] * 2
    assert asked_for(agent)[-1] == FORCED


def test_its_own_words_can_be_replaced(thread: Make) -> None:
    change = {"max_wake_cycles": 2, "guard_retries": 0, "prompts": {"nudge_again": "Now! $open"}}
    agent = thread(write("a"), *["t"] * 3, change=change)
    agent.run("go")
    assert words(agent)[1] == "Now! 1"


# -- a client or a server that rejects it ----------------------------------------------------------------

REFUSALS = {
    "a server": RuntimeError(
        "Error code: 400 - Thinking may not be enabled when tool_choice forces tool use."
    ),
    "a client": ValueError("Model m does not currently support tool_choice of type any."),
    "bedrock": RuntimeError("ValidationException: toolConfig.toolChoice.any is not supported"),
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_a_refused_choice_is_left_out_and_not_tried_again_in_the_activation(
    thread: Make, refusal: Any
) -> None:
    agent = thread(write("a"), "t", "t", refusal, *["t"] * 5)
    agent.run("go")
    assert agent.session["reason"] == "stalled"
    assert agent.session["spent"]["requests"] == 8
    assert asked_for(agent) == [*[FREE] * 3, FORCED, *[FREE] * 5]
    assert agent.model.requests[3] == agent.model.requests[4]
    assert AGAIN_WORDS in words(agent)[-2]


def test_after_a_request_in_words_a_call_is_the_models_own(thread: Make) -> None:
    agent = thread(
        write("a"), "t", "t", REFUSALS["a client"], LISTS, "t", "t",
        change={"max_wake_cycles": 3, "earn_wakes": 0, "guard_retries": 0},
    )  # fmt: skip
    agent.run("go")
    assert [AGAIN_WORDS in text for text in words(agent)] == [False, True, False]


def test_any_other_error_of_a_forced_request_is_raised(thread: Make) -> None:
    agent = thread(write("a"), "t", "t", TimeoutError("too slow"))
    with pytest.raises(TimeoutError):
        agent.run("go")
    assert asked_for(agent)[-1] == FORCED


class Chosen(ScriptedModel):
    """A model with a choice set by the user."""

    def bind_tools(self, tools: Any, **more: Any) -> Any:
        return super().bind_tools(tools, tool_choice="auto", **more)


class Deaf(ScriptedModel):
    """A client that lacks such an argument."""

    def bind_tools(self, tools: Any) -> Any:  # type: ignore[override]
        return super().bind_tools(tools)


@pytest.mark.parametrize(("kind", "asked"), [(Chosen, {"tool_choice": "auto"}), (Deaf, FREE)])
def test_the_users_own_choice_is_kept_and_a_client_without_one_is_asked_in_words(
    thread: Make, kind: Any, asked: Any
) -> None:
    agent = thread(model=kind(write("a"), *repeat("All done.", 7)))
    agent.run("go")
    assert asked_for(agent) == [asked] * 8
    assert AGAIN_WORDS in words(agent)[1]


# -- never after a question or an approval ---------------------------------------------------------------

ASKED = {"on_question": "wake", "max_wake_cycles": 3, "earn_wakes": 0}


def test_after_a_question_the_wake_asks_in_words(thread: Make) -> None:
    agent = thread(write("a"), "t", "Shall I?", "t", "t", change={**ASKED, "guard_retries": 0})
    agent.run("go")
    assert asked_for(agent) == [FREE] * 5


def test_after_a_question_a_correction_asks_in_words(thread: Make) -> None:
    agent = thread(write("a"), "t", "t", "t", "Shall I?", "t", change=ASKED)
    agent.run("go")
    assert asked_for(agent) == [FREE, FREE, FREE, FORCED, FORCED, FREE]


def ask_user(question: str) -> str:
    """Ask the user."""
    return str(interrupt(question))


DECIDED: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "a question": (calls(("ask_user", {"question": "?"})), "Wait until tomorrow.", {}),
    "a question of the user's own tool": (calls(("ask", {"question": "?"})), "Wait.", {}),
    "an approval": (
        looks("x"),
        {"decisions": [{"type": "reject", "message": "no"}]},
        {"interrupt_on": {"look": True}},
    ),
    "a plan": (write("b"), {"decisions": [{"type": "reject", "message": "no"}]}, {"plan": True}),
}


@pytest.mark.parametrize(("reply", "answer", "options"), DECIDED.values(), ids=DECIDED)
def test_after_a_person_has_decided_the_wake_is_a_plain_one(
    thread: Make, reply: Any, answer: Any, options: dict[str, Any]
) -> None:
    change: dict[str, Any] = {"max_wake_cycles": 3, "earn_wakes": 0, "guard_retries": 0}
    options = {**options}
    if options.pop("plan", False):
        change["approve_plan"] = "changes"
    agent = thread("t", "t", reply, "t", "t", tools=[look, ask_user, ask], change=change, **options)
    agent.run({"messages": [("user", "go")], "todos": [{"content": "a"}]})
    agent.run(Command(resume=answer))
    assert asked_for(agent) == [FREE, FREE, FORCED, FREE, FREE]
