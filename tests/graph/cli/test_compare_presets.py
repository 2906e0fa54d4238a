"""One task under several presets: exact counts, a table and a plot, hostile names as text."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer

from wakeloop import LoopSettings, preset
from wakeloop.display import compare
from wakeloop.errors import BenchError, SettingsError
from wakeloop.testing import ScriptedModel, calls, says
from wakeloop.text.plain_html import html_table

EVIL = "<b>$x$"
USED = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}


def look(at: str) -> str:
    """Look."""
    raise OSError(f"no {at}")


def paid(message: AIMessage) -> AIMessage:
    return message.model_copy(update={"usage_metadata": USED})


def model(settings: LoopSettings) -> ScriptedModel:
    """A model that plans two items and closes one per turn; a checklist is written whole."""
    if settings.dialect == "checklist":
        row = {"id": "1", "text": "a", "status": "pending"}
        return ScriptedModel([paid(calls(("todo", {"items": [row]}))), paid(says("enough"))])
    return ScriptedModel(
        [
            paid(calls(("todo_write", {"items": ["a", "b"]}), ("look", {"at": "x"}))),
            paid(says("one")),
            paid(calls(("todo_update", {"id": 1, "status": "done"}))),
            paid(says("two")),
            paid(calls(("todo_update", {"id": 2, "status": "blocked", "reason": "no"}))),
            paid(says("end")),
        ]
    )


def row(name: str, **values: Any) -> dict[str, Any]:
    counts = dict.fromkeys(
        ("items", "closed", "blocked", "requests", "wakes", "reminders", "corrections", "failed_calls"), 0
    )
    rest = {"tokens": 12 * values.get("requests", 0), "cost": None, "error": ""}
    return {"preset": name, **counts, **rest, **values}


def timed(rows: list[Any]) -> list[dict[str, Any]]:
    assert all(type(one["seconds"]) is float for one in rows)
    return [{key: value for key, value in one.items() if key != "seconds"} for one in rows]


WOKEN = row(
    "wakeloop", items=2, closed=1, blocked=1, requests=6, wakes=2, failed_calls=1, state="dormant",
    reason="blocked",
)  # fmt: skip
LESSON = row("lesson", items=1, requests=2, reminders=0, state="idle", reason="disabled")


def test_each_preset_has_its_row() -> None:
    found = compare(["wakeloop", "lesson"], "go", model=model, tools=[look])
    assert timed(found.rows) == [WOKEN, LESSON]
    assert found.task == "go"


def test_a_tools_stream_is_not_counted() -> None:
    def look() -> str:
        """Look."""
        for told in ("half", {"type": "wake"}, {"type": "spent"}):
            get_stream_writer()(told)
        return "seen"

    found = compare(
        ["lesson"], "go", model=lambda _: ScriptedModel([calls(("look", {})), says("Seen.")]), tools=[look]
    )
    assert timed(found.rows) == [
        row("lesson", requests=2, tokens=found.rows[0]["tokens"], state="dormant", reason="answered")
    ]


def test_settings_are_named_by_their_differences_and_a_mapping_by_its_keys() -> None:
    varied = preset("lesson").model_copy(update={"nag_after": 0})
    assert [one["preset"] for one in compare([varied], "go", model=model).rows] == ["lesson, nag_after=0"]
    assert timed(compare({EVIL: varied}, "go", model=model).rows) == [{**LESSON, "preset": EVIL}]


def test_a_run_that_raises_has_its_row_and_the_others_continue() -> None:
    def hasty(settings: LoopSettings) -> ScriptedModel:
        if settings.dialect == "checklist":
            return model(settings)
        return ScriptedModel([paid(calls(("todo_write", {"items": ["a"]}))), OSError(EVIL)])

    found = compare(["wakeloop", "lesson"], "go", model=hasty)
    broken = row("wakeloop", items=1, requests=1, state="running", reason="", error=f"OSError: {EVIL}")
    assert timed(found.rows) == [broken, LESSON]


def test_a_refused_input_shows_its_own_sentence() -> None:
    found = compare("wakeloop", {"messages": [("user", "go")], "todos": [{"content": " "}]}, model=model)
    [refused] = found.rows
    told = "The input is refused: todos item 1 has no content; every item needs text that is not blank."
    assert (refused["error"], refused["items"], refused["requests"]) == (told, 0, 0)


def test_an_input_a_config_and_arguments_of_the_agent_are_passed_on() -> None:
    saver = InMemorySaver()
    script = ScriptedModel([paid(calls(("todo_update", {"id": 1, "status": "done"}))), paid(says("end"))])
    found = compare(
        ["wakeloop"],
        {"messages": [("user", "go")], "todos": [{"content": "a"}]},
        model=script,
        config={"configurable": {"thread_id": "t"}},
        checkpointer=saver,
        system_prompt="SYSTEM",
    )
    assert [(one["closed"], one["items"], one["requests"]) for one in found.rows] == [(1, 1, 2)]
    assert str(script.requests[0][0].content).startswith("SYSTEM")
    assert list(saver.list({"configurable": {"thread_id": "t"}})) != []


def test_an_unknown_preset_is_refused_before_anything_is_asked() -> None:
    script = ScriptedModel([says("x")])
    with pytest.raises(SettingsError, match="Unknown preset 'lokii'"):
        compare(["wakeloop", "lokii"], "go", model=script)
    assert script.requests == []


# -- table and plot --------------------------------------------------------------------------------------


def test_the_table() -> None:
    priced = LoopSettings.model_validate({"prices": {"default": {"input": 1_000, "output": 0}}})
    found = compare({EVIL: priced, "lesson": "lesson"}, "go", model=model, tools=[look])
    for one in found.rows:
        one["seconds"] = 1.25
    head = ["preset", "closed", "blocked", "requests", "wakes", "reminders", "corrections"]
    head += ["tokens", "cost", "time", "end"]
    cells = [
        [EVIL, "1/2", 1, 6, 2, 0, 0, 72, 0.06, "1.2 s", "blocked"],
        ["lesson", "0/1", 0, 2, 0, 0, 0, 24, "", "1.2 s", "disabled"],
    ]
    assert found._repr_html_() == html_table(head, cells)
    assert "<b>" not in found._repr_html_()
    assert str(found).splitlines() == [
        "preset  closed  blocked  requests  wakes  reminders  corrections  tokens  cost  time   end",
        "<b>$x$  1/2     1        6         2      0          0            72      0.06  1.2 s  blocked",
        "lesson  0/1     0        2         0      0          0            24            1.2 s  disabled",
    ]


def test_without_matplotlib_the_plot_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = compare(["lesson"], "go", model=model)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(BenchError, match=r"pip install 'wakeloop\[bench\]'"):
        found.plot()
