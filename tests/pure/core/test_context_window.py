"""Which parts of a request are cleared, and which never are (rule 28)."""

from itertools import count
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from levels import examples

from wakeloop import preset
from wakeloop.dialects import get_dialect
from wakeloop.loop.ledger import Cleared
from wakeloop.model.context_window import Clearing, Estimate, find_window
from wakeloop.model.usage import count_characters
from wakeloop.model.wire_order import is_legal, make_legal
from wakeloop.text.marks import make_user_message

SETTINGS = preset("wakeloop")
TEXTS = {"unanswered": "not answered", "run_interrupted": "broken off", "no_text": "no text"}.__getitem__
PIECES = ("round", "big", "todo", "ask", "answer", "person", "wake", "event", "summary", "compaction")


def make_history(pieces: list[str]) -> list[Any]:
    """Return a history of these pieces, each message with an id."""
    numbers = count(1)
    history: list[Any] = [HumanMessage("Go.", id="m0")]
    for piece in pieces:
        key, size = f"m{next(numbers)}", 5_000 if piece == "big" else 400
        name = {"todo": "todo_update", "ask": "ask_user"}.get(piece, "look")
        if piece in ("round", "big", "todo", "ask", "compaction"):
            content: Any = [{"type": "compaction", "content": "x"}] if piece == "compaction" else ""
            call = {"name": name, "args": {"path": key}, "id": f"c{key}", "type": "tool_call"}
            history.append(AIMessage(content, tool_calls=[call], id=key))
            history.append(ToolMessage("r" * size, name=name, tool_call_id=f"c{key}", id=f"{key}r"))
        elif piece == "answer":
            history.append(AIMessage("I have looked.", id=key))
        elif piece in ("wake", "event"):
            history.append(make_user_message(piece, "Continue.").model_copy(update={"id": key}))  # type: ignore[arg-type]
        elif piece == "summary":
            history.append(HumanMessage("So far.", id=key, additional_kwargs={"lc_source": "summarization"}))
        else:
            history.append(HumanMessage("Please.", id=key))
    return history


def send(history: list[Any], cleared: Cleared) -> list[Any]:
    made = Clearing(get_dialect("parley"), SETTINGS, {}).apply(history, cleared)
    return list(make_legal(made, [], TEXTS))


def plan(history: list[Any], cleared: Cleared, most: int, full: int = 0) -> Cleared:
    return Clearing(get_dialect("parley"), SETTINGS, {}).plan(history, cleared, most, full, most // 2)


def form(message: Any) -> tuple[Any, ...]:
    return message.type, message.content, getattr(message, "tool_calls", None)


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=40), st.integers(200, 6_000))
@examples(150)
def test_a_cleared_history_is_legal_and_keeps_what_must_stay(pieces: list[str], most: int) -> None:
    history = make_history(pieces)
    cleared = plan(history, {}, most)
    sent = send(history, cleared)
    assert is_legal(sent)
    kept = {message.id for message in sent}
    for message in history:
        if (
            isinstance(message, HumanMessage)
            and message.additional_kwargs.get("wakeloop", {}).get("kind") != "wake"
        ):
            assert message.id in kept
    answers = [message for message in history if message.type == "tool" and message.name == "ask_user"]
    assert {message.text for message in answers} <= {message.text for message in sent}
    compactions = [message.id for message in history if isinstance(message.content, list)]
    assert set(compactions) <= kept
    assert history[-1].id in kept or history[-1].type != "tool"  # the last round stays
    least = plan(history, {}, 0)
    floor = sum(map(count_characters, Clearing(get_dialect("parley"), SETTINGS, {}).apply(history, least)))
    left = sum(map(count_characters, Clearing(get_dialect("parley"), SETTINGS, {}).apply(history, cleared)))
    assert left <= max(most, floor) or "cut" in cleared  # a head is cut no shorter than its share


def test_rounds_since_the_last_write_of_the_list_are_cleared_last() -> None:
    kept = []
    for closed in (2, 3, 5):  # how many rounds ago the list was written
        rounds = ["round"] * 9
        rounds[-closed] = "todo"
        history = make_history(rounds)
        for full in (9_999, 1_000):
            sent = send(history, plan(history, {}, 900, full))
            kept.append(sum(message.text == "r" * 400 and message.name == "look" for message in sent))
    assert kept == [1, 1, 2, 1, 1, 1]


@given(st.lists(st.sampled_from(PIECES), min_size=2, max_size=40), st.data())
@examples(150)
def test_the_prefix_changes_only_when_something_is_cleared(pieces: list[str], data: st.DataObject) -> None:
    cleared: Cleared = {}
    before: list[Any] = []
    for end in range(1, len(pieces) + 1):
        history = make_history(pieces[:end])
        old = cleared
        if data.draw(st.integers(0, 4)) == 0:
            cleared = plan(history, cleared, 1_500)
        made = Clearing(get_dialect("parley"), SETTINGS, {}).apply(history, cleared)
        now = [form(message) for message in made]
        if cleared == old:
            assert now[: len(before)] == before
        before = now


def test_an_estimate_starts_at_the_last_counted_request() -> None:
    first = Estimate().update(1_000, 3_000)  # mostly the tools
    assert first.count_tokens(9_000) == 3_000 + 8_000 // 4
    second = first.update(9_000, 7_000)
    assert (second.per_token, second.count_tokens(11_000)) == (2.0, 8_000)
    assert second.count_room(second.count_tokens(11_000)) == 11_000
    assert second.update(3_000, 4_000).per_token == 2.0  # after a clearing


def test_the_window_is_the_smallest_one_known() -> None:
    free, own = preset("wakeloop"), preset("wakeloop").model_copy(update={"max_context": 9_000})
    off = preset("loki")
    assert find_window(free, {}, "m", None) is None
    assert find_window(free, {}, "m", 8_000) == 8_000
    assert find_window(own, {}, "m", 8_000) == 9_000  # an explicit setting wins
    assert find_window(own, {"window": ["m", 5_000]}, "m", None) == 5_000
    assert find_window(own, {"window": ["another", 5_000]}, "m", None) == 9_000
    assert find_window(off, {"window": ["m", 5_000]}, "m", 8_000) is None


def test_system_messages_are_kept() -> None:
    history = [SystemMessage("Be brief.", id="s"), *make_history(["round"] * 9)]
    made = Clearing(get_dialect("parley"), SETTINGS, {}).apply(history, plan(history, {}, 100))
    assert made[0] is history[0]
