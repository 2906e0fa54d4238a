"""Case C44: a model that goes round in circles."""

from itertools import chain, count, cycle, repeat
from typing import Any

import pytest
from langchain_core.tools import tool
from rig import Rig, close, marks, results, statuses, write

from wakeloop import preset
from wakeloop.testing import calls, says


@tool
def look(path: str) -> str:
    """Look at a path."""
    return f"saw {path}"


def looks(path: str) -> Any:
    return calls(("look", {"path": path}))


def spelt(text: str) -> Any:
    """Return a whole list of one item."""
    return calls(("write_todos", {"todos": [{"content": text, "status": "in_progress"}]}))


CIRCLES: dict[str, tuple[Any, int]] = {
    "one call": (lambda: chain([write("a")], repeat(looks("x"))), 13),
    "two calls in turn": (lambda: chain([write("a")], cycle([looks("x"), looks("y")])), 14),
    "reading the list": (lambda: chain([write("a")], repeat(calls(("todo_list", {})))), 12),
    "one call without a list": (lambda: repeat(looks("x")), 11),
}


@pytest.mark.parametrize("name", CIRCLES)
def test_c44_a_loop_is_reminded_corrected_and_ended(rig: Rig, name: str) -> None:
    replies, requests = CIRCLES[name]
    rig.build(replies(), tools=[look])
    rig.run("go")
    planned = name != "one call without a list"
    assert rig.ending == ("idle" if planned else "dormant", "looping", 0)
    assert len(rig.model.requests) == requests
    assert marks(rig.messages).count("guard") == planned
    told = [n for n, request in enumerate(rig.model.requests) if "nothing new" in str(request[-1].content)]
    assert told == ([requests - 6, requests - 1] if planned else [6])
    assert len(results(rig.messages)) == requests
    rig.follow_up()


def test_c44_two_spellings_that_drop_each_other(rig: Rig) -> None:
    """Not under the described system itself, which has no such bound."""
    bounded = preset("cubepi").model_copy(update={"max_idle_rounds": 10})
    rig.build(cycle([spelt("Write the tests"), spelt("write tests")]), settings=bounded)
    rig.run("go")
    assert rig.ending == ("idle", "looping", 0)
    assert len(rig.model.requests) == 12
    assert len(rig.todos) == 1


def test_c44_a_heeded_correction_settles(rig: Rig) -> None:
    rig.build([write("a"), *[looks("x")] * 11, close(1), "I can't continue."], tools=[look])
    rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("dormant", "settled", 0)
    assert statuses(rig.todos) == ["completed"]
    rig.follow_up()


def test_c44_polling_whose_result_changes_is_left_alone(rig: Rig) -> None:
    polled = count()

    @tool
    def poll() -> str:
        """Ask for the progress."""
        return f"{next(polled)} of 60"

    rig.build([write("a"), *[calls(("poll", {}))] * 60, close(1), says("Done.")], tools=[poll])
    rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("dormant", "settled", 0)
    assert "guard" not in marks(rig.messages)
    assert not [m for m in results(rig.messages) if "nothing new" in str(m.content)]
