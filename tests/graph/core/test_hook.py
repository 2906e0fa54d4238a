"""pre_model_hook: trims what the model sees; the list is shown once more."""

from typing import Any

import pytest
from agents import END, START, UNASKED, WORK, Make, done, kind, look, looks, write
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableLambda

HEADING = "  [1] a"


def last(count: int) -> Any:
    """Let the model see only the last messages, from a user message or a reply on."""

    def trim(state: dict[str, Any]) -> dict[str, Any]:
        kept = state["messages"][-count:]
        while kept and kept[0].type == "tool":
            kept = kept[1:]
        return {"llm_input_messages": kept}

    return trim


def shown(request: Any) -> int:
    return sum(HEADING in m.text for m in request)


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_hook_sees_the_state_and_its_trimming_is_not_stored(wrapped: bool, thread: Make) -> None:
    seen: list[Any] = []

    def hook(state: dict[str, Any]) -> dict[str, Any]:
        seen.append((len(state["messages"]), [item["content"] for item in state["todos"]]))
        return {"llm_input_messages": state["messages"][:1]}

    agent = thread(
        looks("x"),
        looks("y"),
        "bye",
        tools=[look],
        rewritten=True,
        pre_model_hook=RunnableLambda(hook) if wrapped else hook,
    )
    agent.run("go")
    assert seen == [(1, []), (3, []), (5, [])]
    assert agent.kinds == ["human", "ai", "tool", "ai", "tool", "ai"]
    assert [len(request) for request in agent.model.requests] == [2, 2, 2]


def test_the_list_is_shown_once_more_in_the_last_result(thread: Make) -> None:
    agent = thread(
        write("a"),
        looks("1"),
        looks("2"),
        looks("3"),
        looks("4"),
        done(1),
        "bye",
        tools=[look],
        rewritten=True,
        pre_model_hook=last(6),
        change={"nag_after": 0},
    )
    agent.run("go")
    assert [shown(request) for request in agent.model.requests] == [0, 1, 1, 1, 1, 1, 1]
    marked = [m for m in agent.messages if kind(m) == "nag"]
    assert len(marked) == 1
    chars = marked[0].additional_kwargs["wakeloop"]["chars"]
    assert isinstance(marked[0], ToolMessage)
    assert marked[0].text[:-chars].startswith("saw ")
    assert HEADING in marked[0].text[-chars:]


def test_the_list_is_shown_once_more_as_its_own_message(thread: Make) -> None:
    agent = thread(
        write("a"),
        ".",
        ".",
        rewritten=True,
        change={"max_wake_cycles": 0, "guard_retries": 0, **UNASKED},
        pre_model_hook=lambda state: (
            {"llm_input_messages": state["messages"][-1:]} if len(state["messages"]) > 3 else {}
        ),
    )
    agent.run("go")
    agent.run("more")
    assert agent.kinds == ["human", "ai", "tool", "ai", "human", "nag", "ai"]
    assert [shown(request) for request in agent.model.requests] == [0, 1, 1]


def test_items_added_after_the_plan_and_trimmed_away_are_shown_once(thread: Make) -> None:
    """A hook that keeps the beginning and the end of a history drops the middle."""

    def ends(state: dict[str, Any]) -> dict[str, Any]:
        return {"llm_input_messages": [*state["messages"][:3], *state["messages"][3:][-4:]]}

    agent = thread(
        write("a"),
        write("b"),
        *[looks(str(n)) for n in range(3)],
        done(1, 2),
        "bye",
        tools=[look],
        rewritten=True,
        pre_model_hook=ends,
    )
    agent.run("go")
    told = [sum("  [2] b" in m.text for m in request) for request in agent.model.requests]
    assert told == [0, 0, 1, 1, 1, 1, 0]
    assert [m.text.count("  [2] b") for m in agent.messages if m.type == "tool"] == [0, 1, 0, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("replies", "kept"),
    [
        ([write("a"), done(1), looks("1"), looks("2"), "bye"], 2),  # nothing is open
        ([write("a"), ".", looks("1"), done(1), "bye"], 4),  # a nudge was kept
    ],
)
def test_no_list_is_shown_if_nothing_is_open_or_a_nudge_shows_it(
    replies: Any, kept: int, thread: Make
) -> None:
    agent = thread(*replies, tools=[look], rewritten=True, pre_model_hook=last(kept), change={"nag_after": 0})
    agent.run("go")
    assert "nag" not in agent.kinds


def test_a_trimmed_result_is_not_stored_when_the_list_is_shown_in_it(thread: Make) -> None:
    def shorten(state: dict[str, Any]) -> dict[str, Any]:
        if state["messages"][-1].name != "look":
            return {}
        kept = [m for m in state["messages"] if m.type != "tool" or m.name != "todo_write"]
        kept = [m for m in kept if not any(c["name"] == "todo_write" for c in getattr(m, "tool_calls", []))]
        return {
            "llm_input_messages": [
                m.model_copy(update={"content": m.text[:5]}) if m.type == "tool" else m for m in kept
            ]
        }

    agent = thread(
        write("a"), looks("a-long-path"), done(1), "bye", tools=[look], rewritten=True, pre_model_hook=shorten
    )
    agent.run("go")
    result = next(m for m in agent.messages if m.type == "tool" and m.name == "look")
    assert result.text.startswith("saw a-long-path")
    sent = next(m for m in agent.model.requests[2] if m.type == "tool")
    assert sent.text.startswith("saw a\n")
    assert HEADING in sent.text


def test_a_hook_that_breaks_the_order_is_put_right(thread: Make) -> None:
    agent = thread(
        looks("1"),
        looks("2"),
        "bye",
        tools=[look],
        rewritten=True,
        pre_model_hook=lambda state: {"llm_input_messages": state["messages"][-1:]},
    )
    assert agent.walk("go") == [*START, *WORK, *WORK, *END]


def test_a_hook_may_write_other_channels(thread: Make) -> None:
    agent = thread("hi", pre_model_hook=lambda state: {"todo_goal": "seen"})
    assert agent.run("go")["todo_goal"] == "seen"


def test_an_asynchronous_hook_runs_in_an_asynchronous_run(thread: Make) -> None:
    async def hook(state: dict[str, Any]) -> dict[str, Any]:
        return {"llm_input_messages": state["messages"]}

    agent = thread("hi", pre_model_hook=RunnableLambda(lambda state: {}, afunc=hook))
    assert agent.walk("go") == [*START, *END]
