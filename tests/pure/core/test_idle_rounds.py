"""Rule 18 in plain values: which rounds are idle, which notes they leave, and what the reminder says."""

from typing import Any

import pytest
from agents import settings, todo
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from wakeloop.loop.activation import begin_activation, continue_activation
from wakeloop.loop.progress import (
    count_idle_rounds,
    describe_repeats,
    end_if_looping,
    measure_reach,
    needs_idle_reminder,
    reach_unless_grown,
)
from wakeloop.testing import calls
from wakeloop.text.marks import activation_messages, append_to_result, make_user_message

NAMES = frozenset(("todo_write", "todo_list"))
ITEMS: Any = [todo(1, "a"), todo(2, "b", "completed")]


class History:
    """Rounds as they are stored, with `call_model`'s notes about the last one."""

    def __init__(self, todos: Any = ITEMS, **changes: Any) -> None:
        self.messages: list[AnyMessage] = [HumanMessage("go", id="0")]
        self.notes: Any = {}
        self.todos, self.settings = todos, settings(**changes)

    def round(self, *made: tuple[Any, ...], artifact: Any = None, faults: Any = (), behind: Any = ()) -> int:
        """Add a round of (name, arguments, result), count it, and drop its notes as the next reply does."""
        reply = calls(*((name, args) for name, args, _ in made))
        self.messages.append(reply)
        for call, (_, _, text) in zip(reply.tool_calls, made, strict=True):
            self.messages.append(ToolMessage(text, tool_call_id=call["id"], artifact=artifact))
        self.messages += behind
        ids = {call["id"]: call["name"] in NAMES for call in reply.tool_calls}
        self.notes |= {"nag": False, "todo_calls": [key for key, is_todo in ids.items() if is_todo]}
        self.notes["faults"] = {key: "x" for n, key in enumerate(ids) if n in faults}
        idle = self.count()
        for key in ("nag", "todo_calls", "faults"):
            del self.notes[key]
        return idle

    def count(self) -> int:
        return count_idle_rounds(self.messages, self.todos, self.notes, self.settings, NAMES)

    def look(self, path: str, text: str = "saw", **more: Any) -> int:
        return self.round(("look", {"path": path}, text), **more)


# -- pairs -----------------------------------------------------------------------------------------------


def test_a_new_pair_is_progress_and_nothing_is_noted() -> None:
    history = History()
    assert [history.look(str(n)) for n in range(100)] == [0] * 100
    assert history.notes == {}


def test_from_the_first_repeated_call_on_each_pair_takes_three_characters() -> None:
    history = History()
    assert [history.look(path) for path in "abc"] == [0, 0, 0]
    assert history.look("b") == 1
    assert history.notes.keys() == {"pairs", "idle_rounds"}
    assert len(history.notes["pairs"]) == 3 * 3
    assert [history.look("b", "another"), history.look("d")] == [0, 0]
    assert history.notes.keys() == {"pairs"}
    assert len(history.notes["pairs"]) == 3 * 5
    assert [history.look(path) for path in "abcd"] == [1, 2, 3, 4]


def test_a_call_whose_result_changes_is_progress_each_time() -> None:
    history = History()
    assert [history.look("x", str(n)) for n in range(60)] == [0] * 60
    assert len(history.notes["pairs"]) == 3 * 60


def test_the_last_64_pairs_are_remembered() -> None:
    for between, brought in ((63, 1), (64, 0)):
        unnoted = History()
        assert not any(unnoted.look(str(n)) for n in range(between + 1))
        assert unnoted.look("0") == brought, between
        noted = History()
        assert [noted.look("x"), noted.look("x")] == [0, 1]
        assert not any(noted.look(str(n)) for n in range(between))
        assert noted.look("x") == brought, between
        assert len(noted.notes["pairs"]) == 3 * 64


def test_a_repeated_pair_moves_to_the_end() -> None:
    history = History()
    assert [history.look("x"), history.look("x")] == [0, 1]
    assert not any(history.look(str(n)) for n in range(40))
    assert history.look("x") == 1
    assert not any(history.look(str(n)) for n in range(40, 80))
    assert history.look("x") == 1


@pytest.mark.parametrize("noted", [False, True])
def test_the_tools_own_result_is_compared_without_the_graphs_suffix(noted: bool) -> None:
    history = History()
    history.look("x")
    if noted:
        history.look("x")
    last = history.messages[-1]
    assert isinstance(last, ToolMessage)
    history.messages[-1] = append_to_result(append_to_result(last, "[one]"), "[two]")
    assert history.look("x") == (2 if noted else 1)
    assert history.look("x", "saw\n\n[one]") == 0


def test_blocks_without_text_are_part_of_a_result() -> None:
    def image(data: str) -> Any:
        return [{"type": "text", "text": "seen"}, {"type": "image", "base64": data}]

    history = History()
    assert [history.look("x", image(data)) for data in ("1", "2", "1", "2", "3")] == [0, 0, 1, 2, 0]
    last = history.messages[-1]
    assert isinstance(last, ToolMessage)
    history.messages[-1] = append_to_result(last, "[reminder]")
    assert history.look("x", image("3")) == 1


def test_a_malformed_call_is_ignored_and_one_new_pair_is_enough() -> None:
    history = History()
    assert history.round(("look", {"path": "a"}, "Error"), faults={0}) == 1
    assert history.round(("look", {"path": "a"}, "Error"), ("look", {"path": "b"}, "saw"), faults={0}) == 0
    assert history.round(("look", {"path": "b"}, "saw"), ("look", {"path": "c"}, "saw")) == 0
    assert history.round(("look", {"path": "b"}, "saw"), ("look", {"path": "c"}, "saw")) == 1


def test_two_equal_calls_in_one_round_are_one_pair() -> None:
    history = History()
    twice = (("look", {"path": "a"}, "saw"),) * 2
    assert [history.round(*twice), history.round(*twice)] == [0, 1]
    assert len(history.notes["pairs"]) == 3


def test_messages_that_a_tool_adds_after_its_result_hide_nothing() -> None:
    more = (HumanMessage("a page"), AIMessage("I am another agent"))
    history = History()
    assert [history.look("x", behind=more) for _ in range(3)] == [0, 1, 2]


def test_calls_before_the_activation_are_ignored() -> None:
    history = History()
    history.look("x")
    history.messages += [AIMessage("done"), HumanMessage("again")]
    assert history.look("x") == 0
    history.messages += [AIMessage("done"), make_user_message("wake", "keep going")]
    assert history.look("x") == 1


def test_a_round_is_counted_once() -> None:
    history = History()
    assert [history.look("x"), history.look("x")] == [0, 1]
    assert history.count() == 0
    assert history.notes["idle_rounds"] == 1
    history.messages.append(AIMessage("a turn's end"))
    history.notes["nag"] = False
    assert history.notes["idle_rounds"] == 1


def test_switched_off_it_counts_and_records_nothing() -> None:
    history = History(max_idle_rounds=0)
    assert [history.look("x") for _ in range(20)] == [0] * 20
    assert history.notes == {}


# -- the list --------------------------------------------------------------------------------------------

LISTS: dict[str, tuple[list[str], list[str], list[int] | None]] = {
    "an item more": (["a"], ["a", "b"], None),
    "one settled": (["a", "b"], ["a", "b."], None),
    "both": (["a"], ["a.", "b"], None),
    "nothing": (["a"], ["a"], [0, 1]),
    "nothing at all": ([], [], [0, 0]),
    "the same text once more": (["a"], ["a", "a"], [0, 1]),
    "another in its place": (["a"], ["b"], [0, 1]),
    "one open again": (["a.", "b"], ["a", "b"], [1, 2]),
    "one gone": (["a", "b"], ["a"], [0, 2]),
    "settled, and one gone": (["a", "b"], ["a."], [0, 2]),
}


def make_items(texts: list[str]) -> list[Any]:
    """Return items with these contents; a trailing full stop settles one."""
    return [
        todo(n, text.rstrip("."), "completed" if "." in text else "pending") for n, text in enumerate(texts)
    ]


@pytest.mark.parametrize("name", LISTS)
def test_the_lists_best_state_goes_with_the_result_unless_it_is_better(name: str) -> None:
    before, after, artifact = LISTS[name]
    assert reach_unless_grown(make_items(before), make_items(after)) == artifact


def test_how_far_a_list_has_come() -> None:
    assert measure_reach([]) == [0, 0]
    items: Any = [todo(1, "a", "blocked"), todo(2, "a", "cancelled"), todo(3, "b", "in_progress")]
    assert measure_reach(items) == [2, 2]


def test_a_list_that_goes_back_and_forth_is_progress_once() -> None:
    history = History(make_items(["a"]))

    def write(*texts: str) -> int:
        before, history.todos = history.todos, make_items(list(texts))
        return history.round(("todo_write", {}, "ok"), artifact=reach_unless_grown(before, history.todos))

    assert write("a") == 1
    assert write("a", "b") == 0
    assert history.notes == {}
    assert write("a.", "b") == 0
    assert write("a", "b") == 1
    assert history.notes == {"best": [1, 2], "idle_rounds": 1}
    assert write("a", "b.") == 2
    assert write("a.", "b.") == 0
    assert history.notes == {}
    assert write("c") == 1
    assert write("c", "d") == 2
    assert write("c", "d", "e") == 0
    assert history.notes == {"best": [2, 3]}
    assert history.look("x") == 0
    assert write("c.", "d.", "e.") == 0
    assert history.notes == {}


def test_reading_the_list_is_not_progress() -> None:
    history = History()
    assert [history.round(("todo_list", {}, "1 a"), artifact=[1, 2]) for _ in range(3)] == [1, 2, 3]


def test_an_artifact_is_trusted_only_if_it_is_ours() -> None:
    for odd in ("x", [1], [1, "x"], [True, 1], {"a": 1}):
        assert History().round(("todo_write", {}, "ok"), artifact=odd) == 0


# -- the count -------------------------------------------------------------------------------------------


def test_an_activation_and_a_subagents_result_reset_the_count() -> None:
    notes: Any = {"idle_rounds": 7, "pairs": "abc", "best": [1, 2], "wake_cycles": 1}
    assert not {"idle_rounds", "pairs", "best"} & begin_activation(notes, ITEMS).keys()
    for waiting in (False, True):
        went_on = continue_activation(notes, ITEMS, settings(), waiting=waiting)
        assert "idle_rounds" not in went_on
        assert (went_on["pairs"], went_on["best"]) == ("abc", [1, 2])


@pytest.mark.parametrize(
    ("limit", "reminders", "ends"),
    [(0, [], []), (1, [], [1, 2]), (2, [1], [2, 3]), (3, [1], [3, 4]), (10, [5], [10, 11])],
)
def test_when_it_reminds_and_when_it_ends(limit: int, reminders: list[int], ends: list[int]) -> None:
    loop = settings(max_idle_rounds=limit)
    assert [n for n in range(20) if needs_idle_reminder(n, {}, loop)] == reminders
    assert [n for n in range(20) if end_if_looping(n, loop)][:2] == ends
    assert not any(needs_idle_reminder(n, {"todo_guard_suppressed": True}, loop) for n in range(20))


def test_the_repeated_calls_are_named() -> None:
    history = History()
    for path in "abab":
        history.look(path)
    assert describe_repeats(history.messages, 2) == {
        "rounds": 2,
        "repeated": 'look(path="a"), look(path="b")',
    }
    history.round(("todo_list", {}, "1 a"), ("look", {"path": "é\n" * 99}, "saw"))
    *named, long = describe_repeats(history.messages, 3)["repeated"].split("), ")
    assert named == ['look(path="b"', "todo_list("]
    assert long.startswith('look(path="é\\né')
    assert long.endswith("… and 1 more")
    assert len(long) == 80 + len(" and 1 more")
    assert describe_repeats([], 3) == {"rounds": 3, "repeated": ""}


def test_the_messages_of_an_activation() -> None:
    parts = [
        HumanMessage("1"), AIMessage("2"), HumanMessage("3"), HumanMessage("4"), AIMessage("5"),
        ToolMessage("6", tool_call_id="x"), HumanMessage("7"), make_user_message("nag", "8"), AIMessage("9"),
    ]  # fmt: skip
    assert [m.text for m in activation_messages(parts)] == list("9876543")
