"""An answer approves the question that it names, or the one it came after, never another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from host_stage import Stage
from langgraph.types import interrupt

from wakeloop import SessionError
from wakeloop.testing import calls
from wakeloop.tools.shell import shell_tool

YES: Any = {"kind": "human", "text": "yes"}


def runs(*commands: str) -> Any:
    return calls(*(("run_shell", {"command": command}) for command in commands))


def ask(*questions: str) -> Any:
    return calls(*(("ask_user", {"question": question}) for question in questions))


def asks(host: Stage, thread: str = "ada") -> list[str]:
    return [question.id for question in host.snapshot(thread).interrupts]


# -- every host ------------------------------------------------------------------------------------------


def test_c50_a_yes_older_than_the_question_approves_nothing(host: Stage, tmp_path: Path) -> None:
    def first(_: Any) -> Any:
        host.send("ada", YES)
        return runs("touch ran")

    host.agent("ada", first, "It was refused.", "Yes to what?", tools=[shell_tool(tmp_path)])
    host.say("ada", "go")
    assert host.ending("ada") == ("waiting", "interrupted", "approval")
    assert (len(host.queue), (tmp_path / "ran").exists()) == (1, False)
    host.say("ada", "no")
    assert not (tmp_path / "ran").exists()
    assert [m.text for m in host.values("ada")["messages"] if m.type == "human"] == ["go", "yes"]
    assert host.last("ada", 2) == "yes"  # it waited, and became input
    host.done()


@pytest.mark.slow
def test_a_yes_left_over_from_one_question_does_not_answer_the_next(host: Stage, tmp_path: Path) -> None:
    replies = [ask("Which?"), runs("touch ran"), "It was refused.", "Yes to what?"]
    host.agent("ada", *replies, tools=[shell_tool(tmp_path)])
    host.say("ada", "go")
    host.send("ada", {"kind": "human", "text": "this one", "correlation_id": asks(host)[0]})
    host.send("ada", YES)
    host.settle()
    assert host.results("ada") == [("success", "this one")]
    assert (host.ending("ada")[2], len(host.queue), (tmp_path / "ran").exists()) == ("approval", 1, False)
    host.say("ada", "no")
    assert not (tmp_path / "ran").exists()
    assert host.last("ada") == "yes"
    host.done()


def test_c50_an_answer_for_another_question_is_refused_in_one_sentence(host: Stage, tmp_path: Path) -> None:
    host.agent("ada", runs("touch ran"), "Done.", tools=[shell_tool(tmp_path)])
    host.say("ada", "go")
    [question] = asks(host)
    with pytest.raises(SessionError) as refused:
        host.send("ada", {**YES, "correlation_id": "another"})
    assert str(refused.value) == (
        f"The answer names question 'another', but the session asks {question}. Name one of those."
    )
    host.settle()
    assert (host.queue, (tmp_path / "ran").exists()) == ([], False)
    assert host.status("ada").asks == (question,)
    host.send("ada", {**YES, "correlation_id": question})
    host.settle()
    assert (tmp_path / "ran").exists()
    with pytest.raises(SessionError) as refused:
        host.send("ada", {**YES, "correlation_id": question})
    assert str(refused.value) == (
        f"The answer names question '{question}', but the session asks nothing now. "
        "Leave the id out to send a message."
    )
    assert host.status("ada").asks == ()
    host.done()


def test_a_second_yes_for_one_question_approves_no_other(host: Stage, tmp_path: Path) -> None:
    """A double click: both answers name the first question, and come before the next one."""
    host.agent("ada", runs("touch a"), runs("touch b"), "Done.", tools=[shell_tool(tmp_path)])
    host.say("ada", "go")
    [question] = asks(host)
    for key in ("click", "click again"):
        host.send("ada", {**YES, "id": key, "correlation_id": question})
    host.settle()
    assert [(tmp_path / name).exists() for name in "ab"] == [True, False]
    assert host.queue == []
    assert len(host.failures) == 1
    assert host.failures[0].startswith(f"The answer names question '{question}'")
    host.say("ada", "no")
    assert [(tmp_path / name).exists() for name in "ab"] == [True, False]
    host.done()


def test_a_plan_waits_for_an_approval_and_is_edited_by_a_message(host: Stage) -> None:
    """Words reject, and a decision as JSON edits, as with every other answer."""
    again, done = [calls(("todo_write", {"items": [item]})) for item in ("a", "b")], "done"
    close = calls(("todo_update", {"id": 2, "status": done}))
    host.agent("ada", *again, close, "Done.", approve_plan="first")
    host.say("ada", "go")
    assert host.ending("ada") == ("waiting", "interrupted", "approval")
    host.say("ada", "Smaller.")
    assert host.results("ada")[0][1].endswith('They said: "Smaller." Send a new one, as they want it.')
    [question] = asks(host)
    edit = {"type": "edit", "edited_action": {"name": "approve_plan", "args": {"todos": ["c"]}}}
    host.send("ada", {"kind": "human", "text": json.dumps(edit), "correlation_id": question})
    host.settle()
    assert [(t["id"], t["content"], t["status"]) for t in host.values("ada")["todos"]] == [
        (2, "c", "completed")
    ]
    host.done()


@pytest.mark.parametrize(("text", "first"), [("n", []), ("y", ["a"])])
def test_c93_the_answer_counts_in_a_host_that_asks_nobody(
    host: Stage, tmp_path: Path, text: str, first: list[str]
) -> None:
    host.agent("ada", runs("touch a"), tools=[shell_tool(tmp_path)])
    host.say("ada", "go")
    host.agent("ada", runs("touch b"), "Done.", tools=[shell_tool(tmp_path, ask=False)])
    host.say("ada", text)
    assert sorted(one.name for one in tmp_path.iterdir() if one.name in "ab") == [*first, "b"]
    host.done()


def test_two_questions_in_one_reply_are_one_and_answered_together(host: Stage) -> None:
    host.agent("ada", ask("a?", "b?"), "Thanks.")
    host.say("ada", "go")
    assert len(asks(host)) == 1
    answers = [{"type": "respond", "message": f"to {one}"} for one in "ab"]
    host.say("ada", json.dumps({"decisions": answers}))
    assert host.results("ada") == [("success", "to a"), ("success", "to b")]
    host.done()


def test_words_answer_all_questions_of_a_reply(host: Stage) -> None:
    host.agent("ada", ask("a?", "b?"), "Thanks.")
    host.say("ada", "go")
    host.say("ada", "whatever you like")
    assert host.results("ada") == [("success", "whatever you like")] * 2
    host.done()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "results"),
    [("hm", []), ("yes, both", []), ("ok", ["a", "b"]), ("no, not there", []), ("Sure, thanks!", ["a", "b"])],
)
def test_c64_words_decide_all_commands_of_a_reply(
    host: Stage, tmp_path: Path, text: str, results: list[str]
) -> None:
    host.agent("ada", runs("touch a", "touch b"), "Done.", tools=[shell_tool(tmp_path)])
    host.say("ada", "go")
    host.say("ada", text)
    assert sorted(one.name for one in tmp_path.iterdir() if one.name in "ab") == results
    if text in ("hm", "yes, both"):
        assert host.ending("ada") == ("waiting", "interrupted", "approval")
        host.say("ada", "n")
    elif not results:
        assert 'They said: "not there"' in host.results("ada")[0][1]
    host.done()


def test_a_tool_that_asks_twice_has_two_questions(host: Stage) -> None:
    def twice() -> str:
        """Ask twice."""
        return f"{interrupt('one?')} {interrupt('two?')}"

    host.agent("ada", calls(("twice", {})), "Thanks.", tools=[twice])
    host.say("ada", "go")
    [first] = asks(host)
    host.send("ada", {"kind": "human", "id": "1", "text": "A", "correlation_id": first})
    host.send("ada", {"kind": "human", "id": "2", "text": "A", "correlation_id": first})
    host.settle()
    assert asks(host) not in ([first], [])
    host.say("ada", "B")
    assert host.results("ada") == [("success", "A B")]
    host.done()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "on"),
    [
        ({"question": "?", "on": "approval"}, "approval"),
        ({"question": "?", "on": "human"}, "human"),
        ({"question": "?", "on": "peer"}, "human"),
        ({"question": "?", "on": ["approval"]}, "human"),
        ({"question": "?"}, "human"),
        ("approval", "human"),
    ],
)
def test_what_an_interrupt_says_it_waits_on(host: Stage, value: Any, on: str) -> None:
    def wonder() -> str:
        """Wonder."""
        return str(interrupt(value))

    host.agent("ada", calls(("wonder", {})), "Thanks.", tools=[wonder])
    host.say("ada", "go")
    assert host.ending("ada") == ("waiting", "interrupted", on)
    assert (host.status("ada").on, host.status("ada").asks) == (on, tuple(asks(host)))
    host.say("ada", "so")
    host.done()
