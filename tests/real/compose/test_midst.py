"""A thread on SQLite continues in the middle of a job whose conversation a hook shortens."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from compaction_job import (
    ITEMS,
    REQUESTS,
    SUMMARIES,
    THREAD,
    agent,
    comparable,
    job,
    play,
    request_text,
    started,
    summaries,
    summarising,
    uncompacted,
)
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langmem.short_term.summarization import RunningSummary

from wakeloop.testing import ScriptedModel

STRICT = JsonPlusSerializer(allowed_msgpack_modules=[RunningSummary])


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    return uncompacted()


def broken(after: int) -> Iterator[AIMessage | type[Exception]]:
    """Run the job with a model that is unreachable after `after` replies."""
    yield from islice(job(), after)
    yield TimeoutError


@pytest.fixture(scope="module")
def undisturbed() -> list[list[BaseMessage]]:
    model, _ = play(summarising(summaries()))
    return model.requests


@pytest.mark.slow
@pytest.mark.parametrize("after", range(REQUESTS))
def test_a_thread_continues_in_the_middle(
    after: int, tmp_path: Path, plain: dict[str, Any], undisturbed: list[list[BaseMessage]]
) -> None:
    """At every request, another agent resumes the thread with the same counters and summary."""
    summariser = summaries()
    requests: list[list[BaseMessage]] = []
    ledgers = []
    for hook in (None, summarising(summariser)):
        with SqliteSaver.from_conn_string(str(tmp_path / f"{hook is None}.sqlite")) as saver:
            saver.serde = STRICT
            model = ScriptedModel(broken(after))
            with pytest.raises(TimeoutError):
                agent(model, hook, saver).invoke(started(), THREAD, durability="sync")
            ledgers.append(comparable(agent(ScriptedModel(), None, saver).get_state(THREAD).values))
            requests = model.requests[:after]
    assert ledgers[0] == ledgers[1]
    with SqliteSaver.from_conn_string(str(tmp_path / "False.sqlite")) as saver:
        saver.serde = STRICT
        model = ScriptedModel(islice(job(), after, None))
        state = agent(model, summarising(summariser), saver).invoke(None, THREAD)
    assert comparable(state) == plain
    assert [request_text(r) for r in requests + model.requests] == [request_text(r) for r in undisturbed]
    # A summary is stored with the reply that it was made for; without a reply it is made again.
    again = after > 0 and undisturbed[after][: len(undisturbed[after - 1])] != undisturbed[after - 1]
    assert len(summariser.requests) == SUMMARIES + again


def test_the_bytes_of_a_request_after_a_summary(undisturbed: list[list[BaseMessage]]) -> None:
    """If the list was last shown in a nudge that the summary replaced, it is shown once more."""
    at = next(n for n, request in enumerate(undisturbed) if "current todo list" in request_text(request))
    items = "".join(f"\n  [{number}] step {number}" for number in range(at // 2 + 1, ITEMS + 1))
    assert request_text(undisturbed[at]) == (
        "human: Summary of the conversation so far: Some steps are behind us.\n"
        f"human: [The current todo list:]\n{items}"
    )
    assert undisturbed[at + 1][: len(undisturbed[at])] == undisturbed[at]
