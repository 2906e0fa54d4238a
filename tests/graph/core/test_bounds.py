"""What the graph injects is bounded, however long the list and its contents are."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from agents import Make, budget, kind, look, looks
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver

from wakeloop import create_todo_agent, preset
from wakeloop.dialects import get_dialect
from wakeloop.dialects.base import Dialect
from wakeloop.loop.nudge import build_nudge
from wakeloop.loop.progress import describe_repeats
from wakeloop.prompts import fill_prompt
from wakeloop.settings import LoopSettings
from wakeloop.testing import ScriptedModel, calls
from wakeloop.text.characters import format_id, shorten_id
from wakeloop.text.marks import added_length
from wakeloop.todos.items import STATUSES, Todo

PRESETS = ("wakeloop", "agentparley", "loki", "lesson", "cubepi", "cubepi-strict")
DIALECTS = {"parley": "wakeloop", "loki": "loki", "checklist": "lesson", "write_todos": "cubepi"}
# what docs/dialects.md promises: a line, everything around the lines, a peer
LINE, REST, NAME = 525, 1_000, 62
LONG = "read the whole log and note each failure, " * 250
CUT = f"{LONG[:268].rstrip()}… (+{len(LONG.strip()) - len(LONG[:268].rstrip()):,} characters)"


def settings(name: str, **more: Any) -> LoopSettings:
    return preset(name).model_copy(update={"auto_continue": True, **more})


def dialect_of(now: LoopSettings) -> Dialect:
    return get_dialect(now.dialect).for_settings(now)


def bound(items: int) -> int:
    return REST + LINE * items


# -- every injected message, for any list ----------------------------------------------------------------

TEXTS = st.builds(
    lambda piece, times: piece * times,
    st.text(min_size=1, max_size=8).filter(str.strip),
    st.sampled_from((1, 7, 40, 150, 1_300)),
)
ITEMS = st.builds(
    lambda key, content, status, reason: {"id": key, "content": content, "status": status, **reason},
    st.integers(1, 2**53 - 1) | TEXTS,
    TEXTS,
    st.sampled_from(STATUSES),
    st.just({}) | st.builds(lambda reason: {"reason": reason}, TEXTS),
)
LISTS = st.lists(ITEMS, min_size=1, max_size=8).flatmap(
    lambda items: st.sampled_from((1, 1, 1, 30)).map(lambda times: items * times)
)


@budget(150)
@given(st.sampled_from(PRESETS), LISTS, TEXTS | st.just(""), st.integers(1, 40))
def test_no_list_makes_an_injected_message_longer_than_the_bound(
    name: str, todos: list[Todo], goal: str, most: int
) -> None:
    now = settings(name, nudge_items=most)
    dialect = dialect_of(now)
    listing = dialect.render_list(todos, goal, now)
    told = {"list": listing, "open": len(todos), "total": len(todos)}
    texts = [dialect.render_nudge(todos, goal, now), build_nudge(dialect, now, todos, goal)[0]]
    texts += [
        fill_prompt(key, dialect.name, {}, **told)
        for key in ("correction", "explain", "report", "shown_again", "given_list")
    ]
    calls_ = calls(*(("look", {"path": goal + str(n) * 99}) for n in range(9)))
    told |= describe_repeats([calls_], 2**53)
    assert len(told["repeated"]) <= 3 * 80 + 2 * len(", ") + len(" and 6 more")
    texts.append(fill_prompt("looping", dialect.name, {}, **told))
    assert max(map(len, texts)) <= bound(min(most, len(todos)))


@budget(50)
@given(
    st.sampled_from(tuple(DIALECTS.values())), st.lists(TEXTS, min_size=1, max_size=60), st.integers(1, 40)
)
def test_waiting_peers_are_bounded_too(name: str, peers: list[str], most: int) -> None:
    now = settings(name, nudge_items=most)
    text, reasons = build_nudge(dialect_of(now), now, [], "", [{"sender": peer} for peer in peers])
    assert reasons == ["reply"]
    assert len(text) <= 100 + NAME * min(most, len(peers))
    assert (f" and {len(peers) - most} more." in text) == (len(peers) > most)


LONGEST = {
    "wakeloop": 15_258,
    "agentparley": 15_220,
    "loki": 15_555,
    "lesson": 15_159,
    "cubepi": 13_561,
    "cubepi-strict": 13_561,
}


@pytest.mark.parametrize("name", PRESETS)
def test_the_length_of_a_nudge_over_thirty_of_the_longest_items(name: str) -> None:
    longest: list[Any] = [
        {"id": f"{n:0>4}" + "x" * 46, "content": "y" * 10_000, "status": "blocked", "reason": "z" * 10_000}
        for n in range(30)
    ]
    now = settings(name)
    assert len(dialect_of(now).render_nudge(longest, "g" * 10_000, now)) == LONGEST[name] <= bound(30)


def test_the_documentation_promises_this_bound() -> None:
    page = (Path(__file__).parents[3] / "docs" / "dialects.md").read_text(encoding="utf-8")
    assert f"`{REST:,} + {LINE} × nudge_items` characters, {bound(30):,} with the default of 30" in page
    assert f"at most {NAME} characters each" in page


@pytest.mark.parametrize("name", PRESETS)
def test_a_reminder_is_short(name: str) -> None:
    assert len(fill_prompt("nag", settings(name).dialect, {}, rounds=2**53, open=2**53)) < 200


# -- shortening ------------------------------------------------------------------------------------------


@given(st.integers() | st.text(), st.integers(2, 60))
def test_an_id_is_shown_within_its_limit(key: int | str, limit: int) -> None:
    short = shorten_id(key, limit)
    assert len(format_id(short)) <= limit
    assert short == key or len(format_id(key)) > limit


@pytest.mark.parametrize("dialect", DIALECTS)
def test_long_content_is_cut_in_the_nudge_and_whole_in_the_list(dialect: str, thread: Make) -> None:
    key: Any = "1" if dialect == "checklist" else 1
    changed = settings(DIALECTS[dialect], max_wake_cycles=1, max_idle_wakes=0, guard_retries=1, nag_after=0)
    agent = thread(".", ".", ".", settings=changed)
    state = agent.run(
        {"messages": [("user", "go")], "todos": [{"id": key, "content": LONG, "status": "pending"}]}
    )
    assert agent.asked == 3
    injected = [m.text for m in agent.messages if kind(m) in ("wake", "guard")]
    assert len(injected) == 2
    for text in injected:
        assert len(text) < bound(1)
        assert text.count(CUT) == 1
        assert text.count(fill_prompt("cut_text", dialect, {})) == 1
    assert state["todos"] == [{"id": key, "content": LONG, "status": "pending"}]


def test_short_contents_need_no_note_about_cutting() -> None:
    for name, content in product(PRESETS, ("a", "a" * 300, "a\n" * 150)):
        now = settings(name)
        todos: list[Any] = [{"id": 1, "content": content, "status": "pending"}]
        assert "characters" not in dialect_of(now).render_nudge(todos, "goal", now)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_listing_says_how_to_see_all(dialect: str) -> None:
    now = settings(DIALECTS[dialect], nudge_items=2)
    todos: list[Any] = [{"id": n, "content": LONG, "status": "pending"} for n in (1, 2, 3)]
    tool = {"parley": "todo_list", "loki": "todo__list", "checklist": "todo"}.get(dialect, dialect)
    *_, cut, more = dialect_of(now).render_list(todos, "", now).splitlines()
    assert f"`{tool}`" in cut
    assert "1 more (3 open, 0 blocked in all)" in more
    assert f"`{tool}`" in more


# -- through the graph: a reminder, an explanation, a trimmed history, an empty kick -----------------------


@pytest.mark.slow
@pytest.mark.covering("name", "items")
@pytest.mark.parametrize("items", [1, 1_000])
@pytest.mark.parametrize("name", PRESETS)
def test_a_whole_run_over_the_longest_contents_stays_within_the_bound(name: str, items: int) -> None:
    changed = settings(
        name,
        max_items=None,
        max_wake_cycles=1,
        max_idle_wakes=0,
        stop_on_repeat=False,
        nag_after=1,
        nag_every=0,
        guard_retries=1,
        on_guard_exhausted="block",
        in_progress="any",
    )
    trimmed = lambda state: {"llm_input_messages": state["messages"][-1:]}  # noqa: E731
    model = ScriptedModel(looks("a"), ".", ".", ".", "Why.", "Kicked.", ".")
    agent = create_todo_agent(
        model, [look], settings=changed, pre_model_hook=trimmed, checkpointer=InMemorySaver()
    )
    numbered = dialect_of(changed).name == "checklist"
    todos = [
        {"id": str(n) if numbered else n, "content": f"{n} {LONG}", "status": "pending"}
        for n in range(1, items + 1)
    ]
    thread: Any = {"configurable": {"thread_id": "1"}}
    state = agent.invoke({"messages": [("user", "go")], "todos": todos}, thread)
    assert state["todo_session"]["reason"] == "guard_blocked"
    state = agent.invoke({}, thread)
    model.assert_done()
    assert state["todo_session"]["reason"] == "wake_budget"
    injected = [(kind(m), added_length(m) or len(m.text)) for m in state["messages"] if kind(m) in TELLING]
    assert {name for name, _ in injected} == TELLING
    assert max(size for _, size in injected) <= bound(min(30, items))
    assert [todo["content"] for todo in state["todos"]] == [todo["content"] for todo in todos]


TELLING = {"wake", "guard", "nag"}
