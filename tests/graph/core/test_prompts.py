"""What the model reads, as snapshots: plain .md files under snapshots/.

To renew them after an intended change of words: `SNAPSHOTS=write pytest tests/graph/core/test_prompts.py`.
"""

import json
import os
from pathlib import Path
from string import Template
from typing import Any

import pytest
from agents import Make, change, done, look, looks, write
from langchain_core.messages import BaseMessage

from wakeloop import SettingsError
from wakeloop.prompts import check_prompt, fill_prompt, find_blanks, list_prompts
from wakeloop.testing import calls, says

HERE = Path(__file__).parent / "snapshots"
WORDS = Path(__file__).parents[3] / "src" / "wakeloop" / "prompts"
DIALECTS = ("parley", "loki", "checklist", "write_todos")


def shown(request: list[BaseMessage]) -> str:
    """Render a request as a page: a heading per message, calls as lines."""
    parts = []
    for message in request:
        calls_ = [f"- calls `{c['name']}` {c['args']}" for c in getattr(message, "tool_calls", [])]
        kind = message.additional_kwargs.get("wakeloop", {}).get("kind")
        heading = f"## {message.type}" + (f" ({kind})" if kind else "")
        parts.append("\n\n".join(part for part in (heading, message.text, "\n".join(calls_)) if part))
    return "\n\n".join(parts) + "\n"


def matches(name: str, text: str) -> None:
    path = HERE / f"{name}.md"
    if os.environ.get("SNAPSHOTS") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


PLAN = calls(("todo_write", {"items": ["read the notes", "ask for the key", "write it down"]}))
HELD = calls(change(2, "blocked", "nobody answers"), change(3, "in_progress"))


def last(agent: Any) -> str:
    agent.run("Tidy up.")
    return shown(agent.model.requests[-1])


def test_the_first_request(thread: Make) -> None:
    matches("first_request", last(thread("hi", system_prompt="You are a careful worker.")))


def test_the_tools_as_the_model_gets_them(thread: Make) -> None:
    agent = thread("hi")
    agent.run("go")
    told = "\n".join(json.dumps(tool, indent=2, ensure_ascii=False) for tool in agent.model.bound[0])
    matches("tools", f"```json\n{told}\n```\n")


def test_a_nudge(thread: Make) -> None:
    matches(
        "nudge",
        last(
            thread(
                PLAN,
                HELD,
                "I stop.",
                "And again.",
                change={"max_wake_cycles": 1, "earn_wakes": 0, "guard_retries": 0},
            )
        ),
    )


def test_a_second_stronger_nudge(thread: Make) -> None:
    change = {"max_wake_cycles": 2, "earn_wakes": 0, "guard_retries": 0}
    matches("nudge_again", last(thread(PLAN, HELD, "I stop.", "And again.", "Still.", change=change)))


def test_a_correction_and_an_explanation(thread: Make) -> None:
    agent = thread(PLAN, HELD, ".", ".", "why", change={"max_wake_cycles": 0, "on_guard_exhausted": "block"})
    matches("guard", last(agent))


def test_rounds_without_progress(thread: Make) -> None:
    agent = thread(
        PLAN, *[looks("a"), calls(("todo_list", {}))] * 3, done(1, 2, 3), "bye",
        tools=[look], change={"max_idle_rounds": 5},
    )  # fmt: skip
    matches("looping", last(agent))


def test_a_closing_report(thread: Make) -> None:
    agent = thread(PLAN, HELD, "done so far", tools=[look], change={"max_requests": 2})
    matches("report", last(agent))


def test_a_list_given_in_the_input(thread: Make) -> None:
    agent = thread(done(1, 2), "bye")
    agent.run({"messages": [("user", "go")], "todos": [{"content": "a"}, {"content": "b"}]})
    matches("given_list", shown(agent.model.requests[0]))


def test_a_list_that_was_never_written(thread: Make) -> None:
    agent = thread(looks("a"), "done", "nothing is left", tools=[look], change={"on_no_list": "ask"})
    matches("no_list", last(agent))


def test_items_closed_unseen(thread: Make) -> None:
    agent = thread(PLAN, done(1, 2, 3), "done", "nothing is missing", change={"audit": "once"})
    matches("audit", last(agent))


def test_a_nag(thread: Make) -> None:
    agent = thread(PLAN, looks("a"), looks("b"), done(1, 2, 3), "bye", tools=[look], change={"nag_after": 2})
    matches("nag", last(agent))


def test_refusals_and_malformed_calls(thread: Make) -> None:
    reply = calls(
        ("todo_write", {"items": ["a", " "]}),
        ("todo_write", {"items": []}),
        ("todo_write", {"items": "['a']"}),
        ("todo_update", {"id": 9, "status": "done"}),
        ("todo_update", {"id": 1, "status": "finished"}),
        ("todo_update", {"id": 1, "status": "blocked"}),
        change(1, "in_progress"),
        change(2, "in_progress"),
        ("look", {}),
        ("peer", {}),
    )
    agent = thread(PLAN, reply, done(1, 2, 3), "bye", tools=[look])
    matches("refusals", last(agent))


def test_cut_and_empty_replies(thread: Make) -> None:
    agent = thread(
        PLAN,
        says("I was about to", finish_reason="length"),
        calls(("look", {"path": "x"}), finish_reason="length"),
        "",
        "",
        done(1, 2, 3),
        "bye",
        tools=[look],
    )
    matches("cut_and_empty", last(agent))


def test_replies_that_are_not_answers(thread: Make) -> None:
    agent = thread(
        says("I look.", finish_reason="tool_calls"),
        'look({"path": "x"})',
        calls(("look", {"path": "x"})),
        "<tool_response>saw x</tool_response>",
        "",
        "",
        "Saw x.",
        tools=[look],
    )
    matches("no_answers", last(agent))


def test_an_interrupted_run(thread: Make) -> None:
    agent = thread(PLAN, looks("x"), OSError("no network"), done(1, 2, 3), "bye", tools=[look])
    with pytest.raises(OSError, match="no network"):
        agent.run("Tidy up.")
    agent.run({})
    matches("run_interrupted", shown(agent.model.requests[-1]))


def test_the_list_shown_again(thread: Make) -> None:
    agent = thread(
        PLAN,
        looks("x"),
        ".",
        rewritten=True,
        tools=[look],
        change={"max_wake_cycles": 0, "guard_retries": 0},
        pre_model_hook=lambda state: (
            {"llm_input_messages": state["messages"][-2:]} if len(state["messages"]) > 3 else {}
        ),
    )
    matches("shown_again", last(agent))


def test_a_format(thread: Make) -> None:
    shape = {
        "title": "Answer",
        "description": "An answer.",
        "type": "object",
        "properties": {"text": {"type": "string"}},
    }
    matches("format", last(thread("Done.", "no json", '{"text": "x"}', response_format=shape)))


def test_events_of_the_inbox(thread: Make) -> None:
    agent = thread("hi")
    agent.run(
        {
            "todo_inbox": [
                {"kind": "cron", "id": "1", "text": "Every morning."},
                {"kind": "peer_message", "id": "2", "text": "Hello.", "sender": "bob"},
            ]
        }
    )
    matches("inbox", shown(agent.model.requests[-1]))


def test_a_long_list(thread: Make) -> None:
    agent = thread(
        write(*(f"step {n}" for n in range(1, 8))),
        ".",
        ".",
        change={"nudge_items": 3, "max_wake_cycles": 1, "guard_retries": 0},
    )
    matches("long_list", last(agent))


def test_long_content(thread: Make) -> None:
    agent = thread(
        write("short", "words " * 100), ".", ".", change={"max_wake_cycles": 1, "guard_retries": 0}
    )
    matches("long_text", last(agent))


# -- the files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", sorted(WORDS.rglob("*.md")), ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_a_file_has_no_dollar_sign_without_a_name(path: Path) -> None:
    assert Template(path.read_text()).is_valid()


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", sorted(list_prompts()))
def test_every_prompt_can_be_filled_in_every_dialect(name: str, dialect: str) -> None:
    try:
        text = fill_prompt(name, dialect, {}, **{blank: f"<{blank}>" for blank in find_blanks(name)})
    except FileNotFoundError:
        assert (name, dialect) in {("last_check", other) for other in DIALECTS if other != "write_todos"}
    else:
        assert text.strip() == text != ""
        assert "$" not in text


def test_an_unfilled_blank_raises() -> None:
    with pytest.raises(KeyError, match="list"):
        fill_prompt("nudge", "parley", {}, open=1, total=1)


def test_a_replaced_prompt_comes_first() -> None:
    assert fill_prompt("nag", "parley", {"nag": "$rounds rounds"}, rounds=3, open=1) == "3 rounds"


@pytest.mark.parametrize(("name", "text"), [("nope", "x"), ("nudge", "$nope"), ("nag", "100 $")])
def test_an_invalid_replacement_is_refused(name: str, text: str) -> None:
    with pytest.raises(SettingsError, match=name):
        check_prompt(name, text)
