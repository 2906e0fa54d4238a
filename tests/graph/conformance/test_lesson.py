"""The lesson's checklist, rule by rule."""

from typing import Any

import pytest
from stage import Make, looks

from wakeloop.testing import calls

NAME = "lesson"


def item(id: Any, text: str, status: str = "pending") -> dict[str, Any]:  # noqa: A002 - the tool's word
    return {"id": id, "text": text, "status": status}


def todo(*items: Any, **more: Any) -> Any:
    return calls(("todo", {"items": list(items)}), **more)


def rejected(make: Make, items: Any) -> str:
    """Return the result of a write that is refused over a list of one item, which stays."""
    s = make(NAME).run(todo(item("k", "keep")), calls(("todo", {"items": items})), "Stopping.")
    assert s.todos == [{"id": "k", "content": "keep", "status": "pending"}]
    assert s.results[1].status == "error"
    return str(s.results[1].content)


# -- the tool --------------------------------------------------------------------------------------------


def test_the_result_is_the_rendered_list(stage: Make) -> None:
    s = stage(NAME).run(
        todo(item("1", "one", "completed"), item("2", "two", "in_progress"), item("3", "three")), "Bye."
    )
    assert s.result == "[x] #1: one\n[>] #2: two\n[ ] #3: three\n\n(1/3 completed)"
    assert s.results[0].status == "success"


@pytest.mark.parametrize("key", ["1", 1, " 1 "])
def test_a_number_is_the_id_with_those_digits(stage: Make, key: Any) -> None:
    s = stage(NAME).run(todo(item("1", "one")), todo(item(key, "one", "completed")), "Bye.")
    assert s.todos == [{"id": "1", "content": "one", "status": "completed"}]


def test_a_float_is_not_an_id(stage: Make) -> None:
    s = stage(NAME).run(todo(item("1", "one")), todo(item(1.0, "one", "completed")), "Bye.")
    assert s.result.startswith("Error: ")
    assert s.todos == [{"id": "1", "content": "one", "status": "pending"}]


# -- checks ----------------------------------------------------------------------------------------------


def test_at_most_20_items(stage: Make) -> None:
    twenty = [item(str(n), f"step {n}") for n in range(1, 21)]
    assert len(stage(NAME).run(todo(*twenty), "Bye.").todos) == 20
    said = rejected(stage, [*twenty, item("21", "step 21")])
    assert said.startswith("Error: Max 20 ")


def test_text_is_trimmed(stage: Make) -> None:
    s = stage(NAME).run(todo(item("1", "  one \n")), "Bye.")
    assert s.todos[0]["content"] == "one"
    assert s.result == "[ ] #1: one\n\n(0/1 completed)"


def test_status_is_lower_cased(stage: Make) -> None:
    s = stage(NAME).run(todo(item("1", "one", "Completed"), item("2", "two", "IN_PROGRESS")), "Bye.")
    assert s.listed == [("one", "completed"), ("two", "in_progress")]


def test_a_missing_status_is_pending(stage: Make) -> None:
    s = stage(NAME).run(todo({"id": "1", "text": "one"}), "Bye.")
    assert s.listed == [("one", "pending")]


def test_a_missing_id_is_the_position(stage: Make) -> None:
    s = stage(NAME).run(todo({"text": "one"}, item("b", "two"), {"text": "three"}), "Bye.")
    assert [one["id"] for one in s.todos] == ["1", "b", "3"]


def test_an_id_may_be_a_number(stage: Make) -> None:
    s = stage(NAME).run(todo(item(7, "one")), "Bye.")
    assert s.todos[0]["id"] == "7"
    assert s.result.startswith("[ ] #7: one")


@pytest.mark.parametrize("items", ["no list", {"id": "1"}, 7, None, '{"id": "1"}', "['1']"])
def test_an_invalid_list(stage: Make, items: Any) -> None:
    assert rejected(stage, items) == "Error: items must be a list"


def test_a_call_without_items(stage: Make) -> None:
    s = stage(NAME).run(calls(("todo", {})), "Bye.")
    assert s.result == "Error: items must be a list"


# -- the rendered list ------------------------------------------------------------------------------------


def test_an_empty_list(stage: Make) -> None:
    assert stage(NAME).run(todo(), "Bye.").result == "No todos."


def test_open_items_left_out_are_named_beneath(stage: Make) -> None:
    s = stage(NAME).run(
        todo(item("1", "one"), item("2", "two", "completed")), todo(item("3", "three")), "Bye."
    )
    first, _, rest = s.result.partition("\n\n(0/1 completed)\n\n")
    assert first == "[ ] #3: three"
    assert "dropped" in rest
    assert "#1: one" in rest
    assert "two" not in rest


# -- the reminder ----------------------------------------------------------------------------------------


def test_the_nag_comes_in_each_round_from_the_third_until_the_tool_is_called(stage: Make) -> None:
    s = stage(NAME).run(
        todo(item("1", "one")),  # result 0
        *(looks(str(n)) for n in range(5)),  # 1 to 5
        todo(item("1", "one", "completed")),  # 6
        *(looks(str(n)) for n in range(4)),  # 7 to 10
        "Bye.",
    )
    assert s.reminded == [3, 4, 5, 9, 10]
    assert [e["rounds"] for e in s.events if e["type"] == "nag"] == [3, 4, 5, 3, 4]


def test_the_nag_is_a_reminder_tag_in_the_tool_result(stage: Make) -> None:
    s = stage(NAME).run(*(looks(str(n)) for n in range(3)), "Bye.")
    text = str(s.results[2].content)
    assert text.startswith("saw 2\n\n<reminder>")
    assert text.endswith("</reminder>")
    assert text.count("<reminder>") == text.count("</reminder>") == 1
    chars = s.results[2].additional_kwargs["wakeloop"]["chars"]
    assert text[:-chars] == "saw 2"


def test_it_comes_also_when_all_is_completed(stage: Make) -> None:
    s = stage(NAME).run(todo(item("1", "one", "completed")), *(looks(str(n)) for n in range(3)), "Bye.")
    assert s.reminded == [3]


FAILED = {
    "refused": ("todo", {"items": [{"id": "1", "text": " "}]}),
    "no list": ("todo", {"items": 7}),
}


@pytest.mark.parametrize("call", FAILED.values(), ids=FAILED)
def test_a_failed_call_counts_as_a_call(stage: Make, call: Any) -> None:
    s = stage(NAME).run(looks("1"), looks("2"), calls(call), looks("3"), looks("4"), looks("5"), "Bye.")
    assert s.results[2].status == "error"
    assert s.reminded == [5]
