"""Which question a person's message to a running DBOS host answers."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from waiting import until

from wakeloop import create_todo_agent
from wakeloop.sessions.dbos import DbosHost, SessionClient
from wakeloop.testing import ScriptedModel, calls, says
from wakeloop.tools.shell import shell_tool

YES: Any = {"kind": "human", "text": "yes"}


def runs(command: str) -> Any:
    return calls(("run_shell", {"command": command}))


def shell_agent(saver: Any, root: Path, *replies: Any) -> Any:
    return create_todo_agent(ScriptedModel(list(replies)), tools=[shell_tool(root)], checkpointer=saver)


def test_an_answer_by_name_from_a_process_that_knows_only_names_is_judged_by_the_host(
    saver: SqliteSaver, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'events.db'}"
    agent = shell_agent(saver, tmp_path, runs("touch ran"), says("Done."))
    with (
        DbosHost(url, {"main": agent}, polling=0.05) as host,
        closing(SessionClient(url, {"main": None})) as client,
    ):  # type: ignore[dict-item]
        client.send("t", {"kind": "human", "text": "go"})
        until(lambda: host.status("t").asks and not host.mailbox.list_waiting("t"))
        client.send("t", {**YES, "correlation_id": "another"})
        until(lambda: host.status("t").error)
        assert str(host.status("t").error).startswith("The answer names question 'another'")
        assert (host.mailbox.list_waiting("t"), (tmp_path / "ran").exists()) == ([], False)
        client.send("t", {**YES, "correlation_id": host.status("t").asks[0]})
        assert host.wait("t", timeout=30)
        assert (host.status("t").error, (tmp_path / "ran").exists()) == (None, True)


def test_another_programs_question_is_answered_by_what_is_sent_after_it(
    saver: SqliteSaver, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'events.db'}"
    agent = shell_agent(saver, tmp_path, runs("touch ran"), says("Done."))
    with closing(SessionClient(url, {"main": agent})) as client:
        agent.invoke({"messages": [("user", "go")]}, {"configurable": {"thread_id": "t"}})
        client.send("t", YES)
    with DbosHost(url, {"main": agent}, polling=0.05) as host:
        assert host.wait("t", timeout=30)
    assert (tmp_path / "ran").exists()


def test_another_programs_question_is_not_answered_by_what_was_sent_before(
    saver: SqliteSaver, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'events.db'}"
    agent = shell_agent(saver, tmp_path, runs("touch ran"), says("Done."), says("Yes to what?"))
    with closing(SessionClient(url, {"main": agent})) as client:
        client.send("t", YES)
        agent.invoke({"messages": [("user", "go")]}, {"configurable": {"thread_id": "t"}})
    with DbosHost(url, {"main": agent}, polling=0.05) as host:
        until(lambda: host.mailbox.note_questions("t", host.status("t").asks))
        time.sleep(0.3)
        assert (host.status("t").state, (tmp_path / "ran").exists()) == ("waiting", False)
        host.send("t", {"kind": "human", "text": "no"})
        assert host.wait("t", timeout=30)
    assert not (tmp_path / "ran").exists()
    agent_values = agent.get_state({"configurable": {"thread_id": "t"}}).values
    assert [m.text for m in agent_values["messages"] if m.type == "human"] == ["go", "yes"]


def test_an_answer_whose_run_was_given_up_waits_as_a_message(
    saver: SqliteSaver, tmp_path: Path, raising: list[Exception]
) -> None:
    """The question ended with the run, and the answer does not count for a later one."""
    agent = shell_agent(saver, tmp_path, runs("touch a"), runs("touch b"), says("Refused."))
    with DbosHost(f"sqlite:///{tmp_path / 'events.db'}", {"main": agent}, polling=0.05) as host:
        host.send("t", {"kind": "human", "text": "go"})
        until(lambda: host.status("t").asks)
        raising.append(KeyError("gone"))
        first = host.status("t").asks
        host.send("t", {**YES, "id": "yes", "correlation_id": first[0]})
        assert host.wait("t", timeout=30)
        assert host.status("t").error == "KeyError: 'gone'"
        [stored] = host.mailbox.list_waiting("t")
        assert (stored.id, stored.event.get("correlation_id")) == ("yes", None)
        host.send("t", {"kind": "kick"})
        until(lambda: host.status("t").asks not in ((), first) and not host.mailbox.list_waiting("t"))
        host.send("t", {"kind": "human", "text": "no"})
        assert host.wait("t", timeout=30)
    assert not [name for name in "ab" if (tmp_path / name).exists()]
    values = agent.get_state({"configurable": {"thread_id": "t"}}).values
    assert [m.text for m in values["messages"] if m.type == "human" and not m.additional_kwargs] == [
        "go",
        "yes",
    ]
