"""Case C11 over real HTTP: requests that fail, each by the client's own error, once."""

from collections.abc import Iterable
from typing import Any

import httpx
import openai
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from mocked import Mock, breaks, calls, fails, says
from served import DOORS, THREAD, Serve, called, marks, results, said, through, user, users
from shared_tools import look
from strict_server import breach

from wakeloop import ReplyError, answer_of, create_todo_agent, session_of
from wakeloop.testing import prompt_faults, wire_faults

pytestmark = pytest.mark.loopback
BY_EVERY_DOOR = pytest.mark.parametrize("door", DOORS)
STREAMED_OR_NOT = pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
LOST = (openai.APIConnectionError, httpx.TransportError)  # an older client passes httpx's own errors on
SLOW = (openai.APITimeoutError, httpx.TimeoutException)
REFUSALS = {
    400: openai.BadRequestError,
    401: openai.AuthenticationError,
    429: openai.RateLimitError,
    500: openai.InternalServerError,
    503: openai.InternalServerError,
}


def agent_of(model: Any) -> Any:
    return create_todo_agent(model, [look], checkpointer=InMemorySaver())


async def planned(mock: Mock, **options: Any) -> Any:
    """Return an agent that has planned one item; its next request is the one to fail."""
    mock.then(calls(("todo_write", {"items": ["a"]})))
    agent = agent_of(mock.model(**options))
    await agent.ainvoke(user("go"), THREAD, interrupt_after=["validate_todos"])
    return agent


def is_as_before(agent: Any) -> None:
    """Check that nothing was injected, nothing is lost, and the session can be read."""
    state = agent.get_state(THREAD)
    assert [message.type for message in state.values["messages"]] == ["human", "ai", "tool"]
    assert marks(state.values["messages"]) == []
    assert [todo["status"] for todo in state.values["todos"]] == ["pending"]
    assert (session_of(state)["state"], session_of(state)["reason"]) == ("failed", "failed")


async def check_second_message(mock: Mock, agent: Any, door: str) -> None:
    """Check that a second message is answered, and that the server received it in a legal order."""
    mock.then(calls(("todo_update", {"id": 1, "status": "done"})), says("Second answer."))
    out = await through(door, agent, user("second"))
    assert answer_of(out) == "Second answer."
    assert users(out["messages"]) == ["go", "second"]
    # the line that closes the interrupted round, and the note about what is still open (rule 26)
    assert marks(out["messages"]) == ["repair", "activate"]
    assert (out["todo_session"]["state"], out["todo_session"]["reason"]) == ("dormant", "settled")
    assert mock.pending == []
    sound(record["body"] for record in mock.records)


def sound(bodies: Iterable[dict[str, Any]]) -> None:
    received = list(bodies)
    assert wire_faults([body["messages"] for body in received]) == []
    assert prompt_faults([body["messages"] for body in received]) == []
    assert [breach(body, frozenset()) for body in received] == [None] * len(received)


@pytest.mark.slow
@BY_EVERY_DOOR
@STREAMED_OR_NOT
# a rate limit that states a time is waited for
@pytest.mark.parametrize("status", sorted(set(REFUSALS) - {429}))
async def test_c11_a_refusal(mock: Mock, status: int, streaming: bool, door: str) -> None:
    agent = await planned(mock, streaming=streaming)
    mock.then(fails(status, message="The server's own words."))
    with pytest.raises(REFUSALS[status], match="The server's own words") as raised:
        await through(door, agent, None)
    assert raised.value.status_code == status
    assert [record["status"] for record in mock.records] == [200, status]
    is_as_before(agent)
    await check_second_message(mock, agent, door)
    assert len(mock.records) == 4


@BY_EVERY_DOOR
async def test_c11_a_connection_cut_in_mid_stream(mock: Mock, door: str) -> None:
    agent = await planned(mock, streaming=True)
    mock.then(calls(("look", {"place": "x"}), ("look", {"place": "y"})), breaks("disconnect", 3))
    with pytest.raises(LOST):
        await through(door, agent, None)
    assert [record["completed"] for record in mock.records] == [True, False]
    is_as_before(agent)
    await check_second_message(mock, agent, door)
    assert len(mock.records) == 4


@BY_EVERY_DOOR
async def test_c11_a_corrupt_chunk_has_a_name(mock: Mock, door: str) -> None:
    agent = await planned(mock, streaming=True)
    mock.then(says("one two three"), breaks("malformed"))
    with pytest.raises(ReplyError, match="could not be read") as raised:
        await through(door, agent, None)
    assert isinstance(raised.value.__cause__, ValueError)
    assert len(mock.records) == 2
    is_as_before(agent)
    await check_second_message(mock, agent, door)
    assert len(mock.records) == 4


@BY_EVERY_DOOR
async def test_c23_a_stream_without_a_finish_reason_is_not_an_answer(mock: Mock, door: str) -> None:
    """Its calls do not run, its text is not the end: both are asked for again."""
    agent = await planned(mock, streaming=True)
    mock.then(
        calls(("look", {"place": "half"}), ("todo_update", {"id": 1, "status": "done"})),
        breaks("truncate", 8),
        says("All is done."),
        breaks("truncate", 3),
        calls(("todo_update", {"id": 1, "status": "done"})),
        says("Whole."),
    )
    out = await through(door, agent, None)
    assert answer_of(out) == "Whole."
    assert [m.status for m in results(out["messages"])] == ["success", "error", "error", "success"]
    assert "seen half" not in [m.content for m in results(out["messages"])]
    assert marks(out["messages"]) == ["retry"]
    assert out["todo_session"]["reason"] == "settled"
    assert len(mock.records) == 5
    sound(record["body"] for record in mock.records)


@pytest.mark.slow
@BY_EVERY_DOOR
async def test_c23_streams_that_always_end_early_are_bounded(mock: Mock, door: str) -> None:
    agent = await planned(mock, streaming=True)
    mock.then({**says("one two three"), "times": 11}, breaks("truncate", 3, times=11))
    out = await through(door, agent, None)
    assert (out["todo_session"]["state"], out["todo_session"]["reason"]) == ("idle", "truncated")
    # the fifth ends its turn, and so does each after it
    assert marks(out["messages"]) == [*["retry"] * 4, *["wake"] * 5, "guard"]
    assert mock.pending == []
    assert len(mock.records) == 12
    sound(record["body"] for record in mock.records)


# -- stalls, and what the client repeats by itself -------------------------------------------------------


@pytest.mark.slow
@BY_EVERY_DOOR
@STREAMED_OR_NOT
async def test_c11_a_stall(serve: Serve, streaming: bool, door: str) -> None:
    """The client's own timeout ends it, in the middle of the answer."""
    server = serve({**said("One two three."), "wait": 60}, said("Second answer."))
    impatient = agent_of(server.model(streaming=streaming, timeout=2))
    with pytest.raises(SLOW):
        await through(door, impatient, user("go"))
    assert len(server.seen) == 1
    state = impatient.get_state(THREAD)
    assert [message.type for message in state.values["messages"]] == ["human"]
    assert session_of(state)["state"] == "failed"
    patient = create_todo_agent(
        server.model(streaming=streaming), [look], checkpointer=impatient.checkpointer
    )
    out = await through(door, patient, user("second"))
    assert answer_of(out) == "Second answer."
    assert len(server.seen) == 2
    sound(server.seen)


@pytest.mark.slow
@BY_EVERY_DOOR
@STREAMED_OR_NOT
async def test_c11_the_clients_own_retries(mock: Mock, streaming: bool, door: str) -> None:
    """`max_retries` belongs to the client: it repeats the exact request, and the graph sees one reply."""
    agent = await planned(mock, max_retries=2, streaming=streaming)
    mock.then(fails(429, retry_after=0), fails(503), calls(("todo_update", {"id": 1, "status": "done"})))
    mock.then(says("Done."))
    out = await through(door, agent, None)
    assert answer_of(out) == "Done."
    assert [record["status"] for record in mock.records] == [200, 429, 503, 200, 200]
    assert [record["sdk_retry_count"] for record in mock.records] == [0, 0, 1, 2, 0]
    assert mock.requests[1] == mock.requests[2] == mock.requests[3]


@STREAMED_OR_NOT
async def test_c11_the_client_gives_up(mock: Mock, streaming: bool) -> None:
    agent = await planned(mock, max_retries=1, streaming=streaming)
    mock.then(fails(500, times=2))
    with pytest.raises(openai.InternalServerError):
        await agent.ainvoke(None, THREAD)
    assert [record["status"] for record in mock.records] == [200, 500, 500]
    is_as_before(agent)
    await check_second_message(mock, agent, "ainvoke")


@STREAMED_OR_NOT
async def test_c11_a_refusal_that_no_retry_can_fix_is_not_repeated(mock: Mock, streaming: bool) -> None:
    agent = await planned(mock, max_retries=2, streaming=streaming)
    mock.then(fails(400))
    with pytest.raises(openai.BadRequestError):
        await agent.ainvoke(None, THREAD)
    assert [record["status"] for record in mock.records] == [200, 400]
    is_as_before(agent)
    await check_second_message(mock, agent, "ainvoke")


@pytest.mark.slow
@BY_EVERY_DOOR
async def test_c11_an_answer_that_breaks_off(serve: Serve, door: str) -> None:
    """Only half of a whole answer arrives."""
    server = serve({**said("One two three."), "hang_up": True}, said("Second answer."))
    agent = agent_of(server.model())
    with pytest.raises(LOST):
        await through(door, agent, user("go"))
    assert len(server.seen) == 1
    out = await through(door, agent, user("second"))
    assert answer_of(out) == "Second answer."
    assert len(server.seen) == 2
    sound(server.seen)


def test_no_request_mentions_parallel_calls(serve: Serve) -> None:
    """Case C24, on the wire."""
    server = serve(called(("look", {"place": "x"}), ("look", {"place": "y"})), said("Done."))
    agent_of(server.model()).invoke(user("go"), THREAD)
    assert [sorted(body) for body in server.seen] == [["messages", "model", "stream", "tools"]] * 2
