"""A conversation that langmem summarises: the list, its counters and its wakes go on."""

from collections.abc import Callable
from typing import Any

import pytest
from compaction_job import (
    ITEMS,
    PLAN,
    REQUESTS,
    SUMMARIES,
    kept,
    play,
    sent,
    summaries,
    summarising,
    uncompacted,
)
from langchain_core.messages import AnyMessage, BaseMessage, RemoveMessage
from langchain_core.messages.utils import count_tokens_approximately, trim_messages
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from wakeloop.testing import prompt_faults, wire_faults


def trimming(state: Any) -> dict[str, Any]:
    return {"llm_input_messages": last_of(state["messages"])}


def forgetting(state: Any) -> dict[str, Any]:
    return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *last_of(state["messages"])]}


def last_of(messages: list[AnyMessage]) -> list[BaseMessage]:
    return trim_messages(
        messages, max_tokens=400, token_counter=count_tokens_approximately, start_on="human", strategy="last"
    )


def assert_list_is_seen(requests: list[list[BaseMessage]]) -> None:
    """Every request behind the plan shows each item that is open then."""
    for number, request in enumerate(requests[1:], start=1):
        closed, seen = number // 2, f"{sent(request)}\n"
        if planned(request):  # the result names the numbers of the texts that stand in the call
            seen += "".join(f"[{i}] {text}\n" for i, text in enumerate(PLAN, 1))
        missing = [i for i in range(closed + 1, ITEMS + 1) if f"[{i}] step {i}\n" not in seen]
        assert missing == [], f"request {number + 1}"


def planned(request: list[BaseMessage]) -> bool:
    """Whether a request holds the plan's call, with its texts and its result."""
    made = [call["args"] for message in request for call in getattr(message, "tool_calls", ())]
    return {"items": PLAN} in made and f"tool: Stored {ITEMS} items, [1] to [{ITEMS}]." in sent(request)


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    return uncompacted()


@pytest.mark.parametrize("door", ["invoke", "ainvoke"])
def test_a_summary_keeps_the_list_and_its_wakes(door: str, plain: dict[str, Any]) -> None:
    summariser = summaries()
    model, state = play(summarising(summariser), door)
    assert len(model.requests) == REQUESTS
    assert len(summariser.requests) == SUMMARIES
    assert kept(state) == plain
    assert wire_faults(model.requests) == []
    assert len({str(request[0].content) for request in model.requests}) == 1
    assert_list_is_seen(model.requests)
    # Between two summaries each request begins with all of the one before.
    assert len(prompt_faults(model.requests)) == SUMMARIES
    assert max(len(sent(request)) for request in model.requests) < 2_000  # 8,000 without


def test_the_bytes_of_a_request_behind_a_summary() -> None:
    """Where the list's last showing went into the summary with its nudge, it is shown once more."""
    model, _ = play(summarising(summaries()))
    at = next(n for n, request in enumerate(model.requests) if "current todo list" in sent(request))
    items = "".join(f"\n  [{number}] step {number}" for number in range(at // 2 + 1, ITEMS + 1))
    assert sent(model.requests[at]) == (
        "human: Summary of the conversation so far: Some steps are behind us.\n"
        f"human: [The current todo list:]\n{items}"
    )
    assert model.requests[at + 1][: len(model.requests[at])] == model.requests[at]


@pytest.mark.parametrize("hook", [trimming, forgetting])
def test_a_trimmed_history_keeps_the_list_and_its_wakes(
    hook: Callable[[Any], dict[str, Any]], plain: dict[str, Any]
) -> None:
    model, state = play(hook)
    assert len(model.requests) == REQUESTS
    assert kept(state) == plain
    assert wire_faults(model.requests) == []
    assert len({str(request[0].content) for request in model.requests}) == 1
    assert_list_is_seen(model.requests)
    assert max(len(sent(request)) for request in model.requests) < 2_000
