"""The default preset, rule by rule: what it combines from the others.

The rules of the loop itself (budget, progress, guard, wire order, steps, errors) have their own suites in
tests/graph/core and tests/graph/cases; here is what this preset adds to or changes in the systems it comes
from.
"""

from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from rig import write
from stage import Make, looks

from wakeloop import create_todo_agent, preset
from wakeloop.dialects import get_dialect
from wakeloop.loop.nudge import shorten_nudge
from wakeloop.testing import ScriptedModel, calls, says
from wakeloop.todos.items import Todo

NAME = "wakeloop"


def change(i: Any, status: str, reason: str | None = None) -> tuple[str, dict[str, Any]]:
    return "todo_update", {"id": i, "status": status, **({"reason": reason} if reason else {})}


def update(i: Any, status: str, reason: str | None = None) -> Any:
    return calls(change(i, status, reason))


def lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.startswith("  ")]


# -- the tools -------------------------------------------------------------------------------------------


def test_todo_write_says_what_is_stored(stage: Make) -> None:
    s = stage(NAME).run(
        write("first text", "second text"), calls(change(1, "done"), change(2, "done")), "Done."
    )
    assert s.results[0].content == ("Stored 2 items:\n  [1] first text\n  [2] second text")


def test_an_already_open_item_is_named_and_not_stored_again(stage: Make) -> None:
    s = stage(NAME, {"max_items": 3, "max_wake_cycles": 0, "guard_retries": 0})
    s.run(
        write("a", "b", "b"),  # twice within one call: stored
        write("a", " b ", "b"),  # the same plan again, though the list is full
        update(1, "done"),
        write("a", "b"),  # the first is closed by now
        "Stopping.",
    )
    assert [(todo["id"], todo["content"]) for todo in s.todos] == [(1, "a"), (2, "b"), (3, "b"), (4, "a")]
    assert [result.text for result in s.results if result.name == "todo_write"][1:] == [
        "Stored nothing.\nAlready open: [1], [2].",
        "Stored 1 item:\n  [4] a\nAlready open: [2].",
    ]


def test_an_item_from_outside_is_compared_without_its_outer_white_space(stage: Make) -> None:
    s = stage(NAME, {"max_wake_cycles": 0, "guard_retries": 0})
    s.run(write("a "), "Stopping.", todos=[{"id": 7, "content": " a\n", "status": "pending"}])
    assert (len(s.todos), s.result) == (1, "Stored nothing.\nAlready open: [7].")


@pytest.mark.parametrize("name", ["agentparley", "loki"])
def test_the_described_systems_store_it_again(stage: Make, name: str) -> None:
    s = stage(name, {"auto_continue": True, "max_wake_cycles": 0})
    add = calls(("todo__add", {"task": "a"})) if name == "loki" else write("a")
    s.run(add, add, "Stopping.")
    assert [todo["content"] for todo in s.todos] == ["a", "a"]


def several(ids: Any, status: str, **more: Any) -> Any:
    return calls(("todo_update", {"ids": ids, "status": status, **more}))


def test_one_call_closes_several(stage: Make) -> None:
    s = stage(NAME, {"max_wake_cycles": 0, "guard_retries": 0})
    s.run(write("a", "b", "c", "d"), several([1, "3", 1], "done"), update(2, "done"), "Stopping.")
    assert [todo["status"] for todo in s.todos] == ["completed", "completed", "completed", "pending"]
    assert [result.text for result in s.results[1:]] == [
        "[1], [3] done, 2 open. Next: [4] d",
        "[2] done, 1 open. Next: [4] d",
    ]


def test_an_empty_list_says_how_to_start_one(stage: Make) -> None:
    s = stage(NAME).run(calls(("todo_list", {})), calls(("todo_update", {"ids": [1]})), "Nothing.")
    assert [result.text for result in s.results] == [
        "The list is empty. Add the steps with `todo_write(items)`.",
        "Error: there is no item 1; the list is empty, so add items first",
    ]


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({"ids": [1, 9], "status": "done"}, "Error: there is no item 9; the ids are: 1, 2"),
        (
            {"id": 1, "ids": [2], "status": "blocked"},
            "Error: item [1] can be blocked only with a reason; send one",
        ),
        (
            {"ids": "[1", "status": "done"},
            "todo_update: ids: must be a list, and this string is not JSON, not '[1'",
        ),
        ({"ids": "1-2", "status": "done"}, "this string is not JSON, not '1-2'"),
        ({"ids": True, "status": "done"}, "todo_update: ids: input should be a valid list, not True"),
        ({"ids": [], "status": "done"}, "todo_update: arguments: send ids"),
        ({"status": "done"}, "todo_update: arguments: send ids"),
        (
            {"ids": [True], "status": "done"},
            "todo_update: item 1: must be the number of an item, not True",
        ),
        (
            {"ids": [1, [2]], "status": "done"},
            "todo_update: item 2: input should be a valid integer, not [2]",
        ),
    ],
)
def test_a_call_for_several_applies_completely_or_not_at_all(stage: Make, args: Any, error: str) -> None:
    s = stage(NAME, {"max_wake_cycles": 0, "guard_retries": 0})
    s.run(write("a", "b"), calls(("todo_update", args)), "Stopping.")
    assert error in s.result
    assert [todo["status"] for todo in s.todos] == ["pending", "pending"]


@pytest.mark.parametrize(
    "args",
    [
        *({"ids": ids} for ids in (1, "1", "#1", "[1]", 1.0, ["[1]"], ["#1"], [" 1 "], ["1."])),
        *({"id": key} for key in ("[1]", "#1", " 1", "1.", "1.0", 1.0, [1])),
    ],
    ids=str,
)
def test_an_item_may_be_given_as_lists_show_it(stage: Make, args: Any) -> None:
    s = stage(NAME, {"max_wake_cycles": 0, "guard_retries": 0})
    s.run(write("a", "b"), calls(("todo_update", {**args, "status": "done"})), "Stopping.")
    assert [todo["status"] for todo in s.todos] == ["completed", "pending"]
    assert s.result == "[1] done, 1 open. Next: [2] b"


@pytest.mark.parametrize(
    "args",
    [
        *({"ids": ids} for ids in ("1,3", "1, 3", "1 3", "1; 3", "#1 #3", "[1], [3]")),
        *({"id": key} for key in ([1, 3], ["1", 3], "1, 3")),
    ],
    ids=str,
)
def test_a_list_of_numbers_means_several_items(stage: Make, args: Any) -> None:
    s = stage(NAME, {"max_wake_cycles": 0, "guard_retries": 0})
    s.run(write("a", "b", "c"), calls(("todo_update", {**args, "status": "done"})), "Stopping.")
    assert [todo["status"] for todo in s.todos] == ["completed", "pending", "completed"]


@pytest.mark.parametrize("key", ["#1", "[1]", "1."])
def test_an_exact_id_comes_before_an_interpretation(stage: Make, key: str) -> None:
    s = stage(NAME, {"max_wake_cycles": 0, "guard_retries": 0})
    s.run(
        update(key, "done"),
        "Stopping.",
        todos=[{"id": 1, "content": "a"}, {"id": key, "content": "b"}],
    )
    assert [todo["status"] for todo in s.todos] == ["pending", "completed"]


def test_the_verifier_is_asked_for_each_of_several_and_for_none_of_a_refused_call() -> None:
    asked = []

    def verify(todo: Any, state: Any) -> str | None:
        asked.append(todo["id"])
        return "no proof" if todo["id"] == 2 else None

    model = ScriptedModel(
        [write("a", "b", "c"), several([1, 2, 9], "done"), several([1, 2], "done"), "Stopping."]
    )
    settings = preset(NAME).model_copy(update={"max_wake_cycles": 0, "guard_retries": 0})
    result = create_todo_agent(model, verify=verify, settings=settings).invoke({"messages": [("user", "go")]})
    assert asked == [1, 2]
    assert [todo["status"] for todo in result["todos"]] == ["completed", "pending", "pending"]
    assert [m.text for m in result["messages"] if m.type == "tool"][2] == (
        "[1] done, 2 open. [2] was not accepted as done: no proof. It is stored as open. Next: [2] b"
    )


def test_an_item_named_by_number_and_string_is_refused_once() -> None:
    model = ScriptedModel([write("a"), *[several([1, "1"], "done")] * 3, "Stopping."])
    settings = preset(NAME).model_copy(update={"max_wake_cycles": 0, "guard_retries": 0})
    agent = create_todo_agent(model, verify=lambda todo, state: "no proof", settings=settings)
    result = agent.invoke({"messages": [("user", "go")]})
    refused = "Error: [1] was not accepted as done: no proof. It is stored as"
    told = [m.text for m in result["messages"] if m.type == "tool"]
    assert told[1:] == [f"{refused} open.", f"{refused} open.", f"{refused} blocked."]


def test_the_next_item_is_named_unless_one_is_in_progress(stage: Make) -> None:
    s = stage(NAME, {"max_wake_cycles": 0, "guard_retries": 0})
    s.run(
        write("a", "b", "c"),
        update(1, "in_progress"),
        update(3, "blocked", "no key"),
        update(1, "done"),
        "Stopping.",
    )
    assert [result.text for result in s.results[1:]] == [
        "[1] in_progress, 3 open.",
        "[3] blocked, 2 open.",
        "[1] done, 1 open. Next: [2] b",
    ]


def test_no_item_is_suggested_next_if_the_reply_has_started_it(stage: Make) -> None:
    s = stage(NAME, {"max_wake_cycles": 0, "guard_retries": 0})
    close = ("todo_update", {"ids": [1], "status": "done"})
    s.run(write("a", "b"), calls(close, ("look", {"where": "b"})), update(2, "done"), "Done.")
    assert [result.text for result in s.results if result.name == "todo_update"] == [
        "[1] done, 1 open.",
        "[2] done, 0 open.",
    ]


def test_if_an_item_must_be_started_nothing_says_otherwise(stage: Make) -> None:
    s = stage(NAME, {"in_progress": "exactly_one", "max_wake_cycles": 0, "guard_retries": 0})
    s.run(calls(("todo_write", {"items": ["a", "b"]}), change(1, "in_progress")), "Stopping.")
    assert "has to be marked as begun" not in s.system
    assert [result.text for result in s.results] == [
        "Stored 2 items:\n  [1] a\n  [2] b",
        "[1] in_progress: a. 0 of 2 closed, 2 open.",
    ]


@pytest.mark.parametrize(
    ("status", "stored", "said"),
    [
        ("in_progress", "in_progress", "[1] in_progress, 1 open."),
        ("done", "completed", "[1] done, 0 open."),
        ("blocked", "blocked", "[1] blocked, 0 open."),
        ("cancelled", "cancelled", "[1] cancelled, 0 open."),
        ("open", "pending", "[1] open, 1 open."),
    ],
)
def test_every_status(stage: Make, status: str, stored: str, said: str) -> None:
    s = stage(NAME, {"max_wake_cycles": 0, "guard_retries": 0})
    s.run(write("a"), update(1, status, "why"), "Stopping.")
    assert (s.todos[0]["status"], s.result) == (stored, said)


def test_todo_list_shows_all_with_notes(stage: Make) -> None:
    s = stage(NAME, {"max_wake_cycles": 0, "guard_retries": 0})
    s.run(
        write("a", "b", "c", "d", "e"),
        calls(
            change(1, "done"),
            change(2, "in_progress"),
            change(3, "blocked", "no key"),
            change(4, "cancelled"),
        ),
        calls(("todo_list", {})),
        "Stopping.",
    )
    assert s.result == (
        "  [1] a (done)\n  [2] b (in progress)\n  [3] c (blocked: no key)\n  [4] d (cancelled)\n  [5] e\n"
        "2 of 5 closed, 2 open."
    )


def test_the_last_of_many_is_not_forgotten_in_a_nudge(stage: Make) -> None:
    s = stage(NAME, {"max_wake_cycles": 1, "earn_wakes": 0, "guard_retries": 0, "nudge_items": 3})
    s.run(
        write("a", "b", "c", "d", "e"), calls(change(1, "done"), change(2, "blocked", "x")), "Stop.", "Stop."
    )
    s.run(write("f"), "Stop.", "Stop.")
    first, second = s.injected("wake")
    assert first == "(automatic) 3 of 5 items open. Continue, using tools:\n\n  [3] c\n… 3 more."
    assert second == "(automatic) 4 of 6 items open. Continue, using tools:\n\n  [3] c\n… 4 more."


# -- the nudge -------------------------------------------------------------------------------------------


def nudged(stage: Make, *script: Any, wakes: int = 3) -> list[str]:
    s = stage(NAME, {"max_wake_cycles": wakes, "earn_wakes": 0, "max_idle_wakes": 0, "guard_retries": 0})
    return s.run(*script).injected("wake")


@pytest.mark.parametrize("plan", ["abc", "abcdefgh"])
def test_a_nudge_is_short_if_the_model_has_just_seen_the_list(stage: Make, plan: str) -> None:
    first, second = nudged(stage, write(*plan), "A stop.", update(1, "done"), "A stop.", "A stop.", wakes=2)
    n = len(plan)
    assert first == (f"(automatic) {n} of {n} items open. Continue, using tools:\n\n  [1] a\n… {n - 1} more.")
    assert second == (
        f"(automatic) {n - 1} of {n} items open. Continue, using tools:\n\n  [2] b\n… {n - 2} more."
    )


def test_the_last_item_needs_no_hint_how_to_see_more(stage: Make) -> None:
    assert nudged(stage, write("a"), "A stop.", "A stop.", wakes=1) == [
        "(automatic) 1 of 1 items open. Continue, using tools:\n\n  [1] a"
    ]


def test_a_nudge_is_whole_if_the_list_is_not_in_recent_messages(stage: Make) -> None:
    far = [looks(f"file {n}") for n in range(10)]
    told = nudged(stage, write(*"abcdefg"), "A stop.", *far, "A stop.", write("h"), "A stop.", "A stop.")
    assert [len(lines(nudge)) for nudge in told] == [1, 7, 1]


@pytest.mark.parametrize(
    ("first", "change", "items"),
    [
        (0, {}, 1),
        (2, {}, 4),  # the plan has left the history
        (0, {"content": "changed by hand"}, 4),
        (0, {"id": 9}, 4),
    ],
)
def test_a_nudge_is_whole_if_an_item_was_never_shown(
    stage: Make, first: int, change: dict[str, Any], items: int
) -> None:
    s = stage(NAME, {"max_wake_cycles": 0, "guard_retries": 0})
    s.run(write(*"abcd"), update(1, "in_progress"), "A stop.")
    settings, todos = preset(NAME), [*s.todos[:3], {**s.todos[3], **change}]
    dialect, few = shorten_nudge(
        get_dialect("parley").for_settings(settings), settings, s.values["messages"][1 + first :], todos
    )
    assert len(lines(dialect.render_nudge(todos, "", few))) == items


def test_a_nudge_looks_no_further_back_than_where_the_list_was_shown() -> None:
    settings, todos = (
        preset(NAME),
        [Todo(id=n, content=text, status="pending") for n, text in enumerate("ab")],
    )
    made, stored = write("a", "b"), "Stored 2 items:\n  [0] a\n  [1] b"
    answer = ToolMessage(stored, name="todo_write", tool_call_id=made.tool_calls[0]["id"])
    near = [made, answer, *[says("on")] * 19]
    dialect = get_dialect("parley").for_settings(settings)
    unread: Any = object()
    brief, few = shorten_nudge(dialect, settings, [unread, *near], todos)
    assert (brief.variant, few.nudge_items) == ("short", 1)


LONG = "abcdefgh"


def planned(said: str, *made: Any, texts: str = LONG, at: int = 1) -> tuple[list[Any], list[Todo]]:
    """Return a history in which calls got these results, and a list of these items."""
    told = [ToolMessage(said, name="todo_write", tool_call_id=m.tool_calls[0]["id"]) for m in made]
    history = [m for pair in zip(made, told, strict=True) for m in pair]
    return history, [Todo(id=n, content=text, status="pending") for n, text in enumerate(texts, at)]


SEEN = {
    "by their numbers": (*planned("Stored 8 items, [1] to [8].", write(*LONG)), True),
    "with equal contents": (
        *planned("Stored 8 items, [1] to [8].", write(*"aabbccdd"), texts="aabbccdd"),
        True,
    ),
    "a number more, of an equal text": (
        *planned("Stored 8 items, [1] to [8].", write(*LONG), texts=f"{LONG}a"),
        False,
    ),
    "another agent's numbers": (*planned("Stored 8 items, [1] to [8].", write(*LONG), at=9), False),
    "other contents for these numbers": (
        *planned("Stored 8 items, [1] to [8].", write(*LONG), texts="abcdefgx"),
        False,
    ),
    "two of them changed about": (
        *planned("Stored 8 items, [1] to [8].", write(*LONG), texts="bacdefgh"),
        False,
    ),
    "a refused call": (*planned("Error: the list is full.", write(*LONG)), False),
    "numbers without end": (*planned(f"Stored 8 items, [1] to [{'9' * 5_000}].", write(*LONG)), False),
}


@pytest.mark.parametrize(("history", "todos", "brief"), SEEN.values(), ids=SEEN)
def test_the_content_and_the_number_of_an_item_must_both_have_been_seen(
    history: list[Any], todos: list[Todo], brief: bool
) -> None:
    settings = preset(NAME)
    dialect = get_dialect("parley").for_settings(settings)
    assert (shorten_nudge(dialect, settings, history, todos)[0].variant == "short") is brief


@pytest.mark.parametrize("kept", [(0, 1), (0,), (1,)])
def test_a_result_is_sent_only_with_its_call(kept: tuple[int, ...]) -> None:
    """What remains of a call or of its result shows nothing."""
    made = write("a", "b")
    answer = ToolMessage(
        "Stored 2 items:\n  [1] a\n  [2] b", name="todo_write", tool_call_id=made.tool_calls[0]["id"]
    )
    history = [[made, answer][place] for place in kept]
    settings, todos = (
        preset(NAME),
        [Todo(id=n, content=text, status="pending") for n, text in enumerate("ab", 1)],
    )
    dialect = get_dialect("parley").for_settings(settings)
    assert (shorten_nudge(dialect, settings, history, todos)[0].variant == "short") is (len(kept) == 2)


def test_a_nudge_is_short_if_the_caller_has_given_the_list(stage: Make) -> None:
    s = stage(NAME, {"max_wake_cycles": 1, "earn_wakes": 0, "guard_retries": 0})
    s.run("A stop.", "A stop.", todos=[{"content": text} for text in "abcd"])
    assert [len(lines(nudge)) for nudge in s.injected("wake")] == [1]


def test_the_users_own_words_are_in_a_short_nudge_too(stage: Make) -> None:
    s = stage(NAME, {"max_wake_cycles": 1, "guard_retries": 0, "prompts": {"nudge": "On: $list"}})
    s.run(write(*"abc"), "A stop.", "A stop.")
    assert s.injected("wake") == ["On:   [1] a\n… 2 more."]


def test_a_long_plan_is_confirmed_by_its_numbers(stage: Make) -> None:
    s = stage(NAME, {"max_wake_cycles": 0, "guard_retries": 0})
    s.run(write(*"abcdef"), write(*"abcdefghijkl"), write(*"mnopq"), "A stop.")
    assert [result.text for result in s.results] == [
        "Stored 6 items, [1] to [6].",
        (
            "Stored 6 items:\n  [7] g\n  [8] h\n  [9] i\n  [10] j\n  [11] k\n  [12] l\n"
            "Already open: [1], [2], [3], [4], [5], [6]."
        ),
        "Stored 5 items:\n  [13] m\n  [14] n\n  [15] o\n  [16] p\n  [17] q",
    ]


def test_the_described_system_shows_its_whole_list(stage: Make) -> None:
    s = stage("agentparley", {"max_wake_cycles": 1})
    s.run(write(*"abcdefg"), "A stop.", "A stop.")
    assert [len(lines(nudge)) for nudge in s.injected("wake")] == [7]
