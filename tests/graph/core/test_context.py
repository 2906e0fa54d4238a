"""Rule 28: a thread outlives its context window."""

from typing import Any

import pytest
from agents import Make, Thread, done, write
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from small_windows import (
    RESULT,
    TOOLS,
    WINDOW,
    SmallScriptedModel,
    SmallWeakModel,
    count_tokens,
    job,
    weak_model,
)

from wakeloop import preset
from wakeloop.loop.gates import choose_exit_code
from wakeloop.testing import Knobs, ScriptedModel, calls, prompt_faults, wire_faults

ASK = {"messages": [("user", "Do it all.")]}


def looks(*paths: str) -> AIMessage:
    return calls(*(("look", {"path": path}) for path in paths))


def reads(path: str) -> AIMessage:
    return calls(("read", {"path": path}))


def results_in(request: list[BaseMessage]) -> list[str]:
    return [str(one.content) for one in request if isinstance(one, ToolMessage)]


def cleared_in(request: list[BaseMessage]) -> int:
    return sum(text.startswith("cleared: ") for text in results_in(request))


def run(thread: Thread, given: Any = ASK) -> dict[str, Any]:
    thread.run(given, limit=10_000)
    return thread.values


# -- runs that do not fit --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("items", "requests", "clearings"), [(60, 62, 16), (200, 202, 63)])
def test_a_run_completes_under_a_small_window(
    thread: Make, items: int, requests: int, clearings: int
) -> None:
    model = weak_model(items)
    made = thread(model=model, tools=TOOLS, checked=False, change={"max_context": WINDOW})
    out = run(made)
    assert (out["todo_session"]["reason"], out["todo_session"]["completed"]) == ("settled", items)
    assert (len(model.requests), model.refused) == (requests, [])
    assert wire_faults(model.requests) == []
    # the prefix changes only where something is cleared
    assert len(prompt_faults(model.requests)) == clearings
    assert all(count_tokens(model.bound[0], request) <= WINDOW for request in model.requests)
    left = [one for one in model.requests[-1] if isinstance(one, AIMessage)]
    assert (len(left) < requests - 1) == (items == 200)  # whole rounds were left out
    whole = [one for one in out["messages"] if isinstance(one, ToolMessage) and one.name == "look"]
    assert [len(str(one.content)) >= RESULT for one in whole] == [True] * items  # the thread keeps everything


def test_by_default_the_window_is_the_profiles(thread: Make) -> None:
    model = weak_model(12, profile={"max_input_tokens": WINDOW})
    made = thread(model=model, tools=TOOLS, checked=False)
    assert run(made)["todo_session"]["completed"] == 12
    assert model.refused == []
    assert cleared_in(model.requests[-1]) > 0


def test_nothing_is_noted_if_no_window_is_known(thread: Make) -> None:
    made = thread(write("a"), looks("x"), done(1), "Done.", tools=TOOLS)
    run(made)
    assert not {"cleared", "counted", "window"} & made.values["todo_ledger"].keys()


def test_four_rounds_then_two_then_one(thread: Make) -> None:
    kept = []
    for window in (26_000, 18_000, 9_000, 5_000):
        model = ScriptedModel(*(looks(f"f{n}") for n in range(12)), "Done.")
        made = thread(model=model, tools=TOOLS, checked=False, change={"max_context": window})
        run(made)
        first = next(request for request in model.requests if cleared_in(request))
        kept.append(len(results_in(first)) - cleared_in(first))
    assert kept == [4, 4, 2, 1]


@pytest.mark.parametrize("close_by", [1, 2])
@pytest.mark.parametrize("window", [11_000, 9_000])
def test_finished_and_still_open_work_is_not_done_again(thread: Make, window: int, close_by: int) -> None:
    knobs = Knobs(forgets_cleared="cleared:", close_by=close_by)
    model = SmallWeakModel(job(12), seed=1, knobs=knobs, limit=window)
    made = thread(model=model, tools=TOOLS, checked=False, change={"max_context": window})
    out = run(made)
    assert (out["todo_session"]["completed"], len(model.requests)) == (12, 14)
    assert cleared_in(model.requests[-1]) > 0


def test_the_line_says_what_was_there(thread: Make) -> None:
    model = ScriptedModel(*(looks(f"f{n}") for n in range(5)), "Done.")
    run(thread(model=model, tools=TOOLS, checked=False, change={"max_context": 8_000}))
    line = "cleared: 8,000 characters of look(path='f0'); call it again if needed"
    assert results_in(model.requests[-1])[0] == line


def test_a_short_result_is_kept_and_so_is_a_persons_answer(thread: Make) -> None:
    short = ToolMessage("yes", name="look", tool_call_id="1", id="m1")
    answer = ToolMessage("y" * RESULT, name="ask_user", tool_call_id="2", id="m2")
    first = calls(("look", {"path": "a"}, "1"), ("ask_user", {"question": "b"}, "2"))
    history = [HumanMessage("Go."), first, short, answer]
    model = ScriptedModel(*(looks(f"f{n}") for n in range(5)), "Done.")
    run(
        thread(model=model, tools=TOOLS, checked=False, change={"max_context": 8_000}),
        {"messages": history},
    )
    assert results_in(model.requests[-1])[:2] == ["yes", "y" * RESULT]


def test_one_large_result_is_cut_to_its_head(thread: Make) -> None:
    model = ScriptedModel(reads("big.md"), "Done.")
    run(thread(model=model, tools=TOOLS, checked=False, change={"max_context": WINDOW}))
    [text] = results_in(model.requests[-1])
    assert text.startswith("big.md: word")
    assert text.endswith(
        "(Cut here: the first 15,000 of 80,000 characters are shown, 1 of 1 lines. For the rest, call read "
        "again with another offset and limit.)"
    )


@pytest.mark.slow
@pytest.mark.rotating("door")
def test_the_whole_list_is_shown_when_rounds_are_left_out(thread: Make) -> None:
    model = weak_model(200)
    run(thread(model=model, tools=TOOLS, checked=False, change={"max_context": WINDOW}))
    shown = next(
        request for request in model.requests if any("earlier replies" in str(one.content) for one in request)
    )
    assert shown[1].content == "Do it all."
    assert "[The current todo list:]\n\n  [1] item 1 (completed)\n" in str(shown[-1].content)
    assert "  [200] item 200" in str(shown[-1].content)


def test_the_list_is_shown_in_a_message_that_is_sent(thread: Make) -> None:
    """A result whose call a hook has hidden is not sent, so it gets no list when rounds are left out."""

    def hide(state: dict[str, Any]) -> dict[str, Any]:
        hidden = [
            one
            for one in state["messages"]
            if "f1" in str([c["args"] for c in getattr(one, "tool_calls", ())])
        ]
        return {"llm_input_messages": [one for one in state["messages"] if one not in hidden]}

    long = [looks(f"f{n}").model_copy(update={"content": "think " * 1_500}) for n in range(2)]
    model = ScriptedModel(write("a"), *long, "Done.")
    change = {"max_context": 7_500, "max_wake_cycles": 0, "guard_retries": 0}
    made = thread(model=model, tools=TOOLS, checked=False, pre_model_hook=hide, change=change)
    run(made)
    assert ["[The current todo list:]" in one.text for one in model.requests[-1][-2:]] == [False, True]
    assert sum("[The current todo list:]" in one.text for one in made.values["messages"]) == 1
    assert wire_faults(model.requests) == []


# -- calling again ---------------------------------------------------------------------------------------


def test_repeating_a_cleared_call_is_no_idle_round(thread: Make) -> None:
    again = [looks(f"f{n % 8}") for n in range(40)]
    model = ScriptedModel(*again, "Done.")
    out = run(thread(model=model, tools=TOOLS, checked=False, change={"max_context": WINDOW}))
    assert (out["todo_session"]["reason"], len(model.requests)) == ("answered", 41)
    plain = ScriptedModel(*again, "Done.")
    out = run(thread(model=plain, tools=TOOLS, checked=False, change={"max_context": 0}))
    assert (out["todo_session"]["reason"], len(plain.requests)) == ("looping", 18)


def test_the_same_call_over_and_over_is_still_looping(thread: Make) -> None:
    model = ScriptedModel(*[looks("f")] * 30)
    out = run(thread(model=model, tools=TOOLS, checked=False, change={"max_context": WINDOW}))
    assert (out["todo_session"]["reason"], len(model.requests)) == ("looping", 11)


def test_repeating_a_cleared_call_is_progress_of_a_wake(thread: Make) -> None:
    script: list[Any] = [write("a")]
    for number in range(24):
        script += [looks(f"f{number % 8}"), "Later."]
    model = ScriptedModel(*script)
    change = {"max_context": WINDOW, "max_idle_wakes": 2, "on_question": "wake", "guard_retries": 0}
    out = run(thread(model=model, tools=TOOLS, checked=False, change=change | {"max_wake_cycles": 23}))
    assert (out["todo_session"]["reason"], len(model.requests)) == ("wake_budget", 49)


# -- refusals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "prompt is too long: {asked} tokens > {limit} maximum",
        "This model's maximum context length is {limit} tokens.",
        "Please reduce the length of the messages or completion.",
    ],
)
def test_a_refusal_teaches_the_window(thread: Make, words: str) -> None:
    model = weak_model(20, words=words)
    made = thread(model=model, tools=TOOLS, checked=False)
    out = run(made)
    assert (out["todo_session"]["reason"], out["todo_session"]["completed"]) == ("settled", 20)
    assert len(model.refused) == 1
    assert made.values["todo_ledger"]["window"][1] <= max(WINDOW, model.refused[0])


def test_langchains_error_class_counts_without_words(thread: Make) -> None:
    model = ScriptedModel(looks("a"), looks("b"), ContextOverflowError("No."), "Done.")
    out = run(thread(model=model, tools=TOOLS, checked=False))
    assert (out["todo_session"]["reason"], len(model.requests)) == ("answered", 4)
    assert cleared_in(model.requests[-1]) == 1


def test_three_refusals_in_a_row_end_the_run_and_the_next_message_is_asked(thread: Make) -> None:
    full = [ContextOverflowError("No.")] * 3
    model = ScriptedModel(write("a"), looks("b"), *full, done(1), "Done.")
    made = thread(model=model, tools=TOOLS, checked=False)
    out = run(made)
    session = out["todo_session"]
    assert (session["state"], session["reason"], len(model.requests)) == ("idle", "context_full", 5)
    assert (choose_exit_code(session), session["spent"]["requests"]) == (3, 2)
    out = run(made, {"messages": [("user", "Continue.")]})
    assert (out["todo_session"]["reason"], len(model.requests)) == ("settled", 7)
    assert wire_faults(model.requests) == []


def test_a_full_context_without_a_list_is_a_failure(thread: Make) -> None:
    model = ScriptedModel(*[ContextOverflowError("No.")] * 3)
    session = run(thread(model=model, tools=TOOLS, checked=False))["todo_session"]
    assert (session["state"], session["reason"], choose_exit_code(session)) == ("dormant", "context_full", 1)


def test_a_thread_that_died_of_its_length_is_healed(thread: Make) -> None:
    model = SmallScriptedModel(*(looks(f"f{n}") for n in range(8)), "Done.")
    before = thread(model=model, tools=TOOLS, checked=False, change={"max_context": 0})
    with pytest.raises(ValueError, match="too long"):
        run(before)
    made = thread(
        model=SmallScriptedModel("Done."), tools=TOOLS, checked=False, saver=before.graph.checkpointer
    )
    out = run(made, None)
    assert (out["todo_session"]["reason"], len(made.model.refused)) == ("answered", 1)
    assert out["messages"][-1].content == "Done."


def test_a_person_may_continue_a_dead_thread_too(thread: Make) -> None:
    model = SmallScriptedModel(*(looks(f"f{n}") for n in range(8)))
    before = thread(model=model, tools=TOOLS, checked=False, change={"max_context": 0})
    with pytest.raises(ValueError, match="too long"):
        run(before)
    later = SmallScriptedModel("Hello.", "Hello again.")
    made = thread(model=later, tools=TOOLS, checked=False, saver=before.graph.checkpointer)
    run(made, {"messages": [("user", "Hello?")]})
    run(made, {"messages": [("user", "Hello?")]})
    assert (len(later.refused), len(later.requests)) == (1, 3)  # learned for the thread


def test_the_described_systems_raise_as_before(thread: Make) -> None:
    for name in ("agentparley", "loki", "lesson", "cubepi", "cubepi-strict"):
        assert preset(name).max_context == 0
    model = ScriptedModel(ContextOverflowError("No."))
    with pytest.raises(ContextOverflowError):
        run(thread(model=model, tools=TOOLS, checked=False, settings=preset("agentparley")))
    assert len(model.requests) == 1


def test_other_errors_are_raised(thread: Make) -> None:
    model = ScriptedModel(ValueError("Rate limit reached: please try again in 20s"))
    with pytest.raises(ValueError, match="Rate limit"):
        run(thread(model=model, tools=TOOLS, checked=False))


def test_reported_tokens_count_rather_than_four_characters(thread: Make) -> None:
    """For a server that needs a token per character, which the first usage shows."""
    script: list[Any] = []
    for number in range(4):
        sent = 1_000 + number * RESULT
        usage = {"input_tokens": sent, "output_tokens": 1, "total_tokens": sent + 1}
        script.append(looks(f"f{number}").model_copy(update={"usage_metadata": usage}))
    model = ScriptedModel(*script, "Done.")
    made = thread(model=model, tools=TOOLS, checked=False, change={"max_context": 40_000})
    run(made)
    assert [cleared_in(request) for request in model.requests] == [0, 0, 0, 0, 2]
    assert made.ledger["counted"][1:] == [25_000, 100, 40_000]


def test_an_event_says_where_something_was_cleared(thread: Make) -> None:
    model = ScriptedModel(*(looks(f"f{n}") for n in range(6)), "Done.")
    made = thread(model=model, tools=TOOLS, checked=False, change={"max_context": WINDOW})
    events = [e for e in made.graph.stream(ASK, made.at(), stream_mode="custom") if e["type"] == "cleared"]
    assert [(e["before"] > 12_000, e["after"] <= 7_500, e["window"]) for e in events] == [
        (True, True, WINDOW)
    ]


def test_nothing_is_reported_as_cleared_if_nothing_was(thread: Make) -> None:
    """The person's words alone are above 0.8 of the window."""
    model = ScriptedModel(looks("f"), *["On it."] * 3)
    made = thread(model=model, tools=TOOLS, checked=False, change={"max_context": WINDOW})
    cleared = []
    for words in ("word " * 11_000, "And?", "And?"):
        given = {"messages": [("user", words)]}
        events = made.graph.stream(given, made.at(), stream_mode="custom")
        cleared.append([e["before"] > e["after"] for e in events if e["type"] == "cleared"])
    assert cleared == [[], [True], [True]]


def test_the_share_of_the_window_is_sent_with_each_request(thread: Make) -> None:
    model = weak_model(3)
    made = thread(model=model, tools=TOOLS, checked=False, change={"max_context": WINDOW})
    shares = [event["context"] for event in made.events("Do it.", spent=True) if event["type"] == "spent"]
    assert shares == sorted(shares)
    assert shares[-1] == count_reported(made.messages[-1]) / WINDOW
    plain = thread("Hello.", tools=TOOLS)
    assert "context" not in next(e for e in plain.events("Hi.", spent=True) if e["type"] == "spent")


def count_reported(reply: Any) -> int:
    return int(reply.usage_metadata["input_tokens"])
