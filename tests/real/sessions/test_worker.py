"""A turn is killed at every point and repeated: nothing happens twice, and nothing is lost."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import RunControl

from wakeloop import create_todo_agent
from wakeloop.loop.inbox import WakeEvent
from wakeloop.sessions import session_tools
from wakeloop.sessions.dbos.database import open_engine
from wakeloop.sessions.mailbox import Mailbox
from wakeloop.sessions.thread_runner import ThreadRunner
from wakeloop.testing import ScriptedModel, calls, says


class Killed(GraphBubbleUp):
    """A simulated SIGKILL. Anything else that a tool or a model raises becomes a result or a failure."""


class Frail(Mailbox):
    """A mailbox that dies before or after it claims or settles a turn."""

    point: str | None = None

    def dies(self, point: str) -> None:
        if Frail.point == point:
            Frail.point = None
            raise Killed

    def claim(self, turn: str, events: Sequence[WakeEvent]) -> bool:
        self.dies("before it begins")
        noted = super().claim(turn, events)
        self.dies("before its input is stored")
        return noted

    def settle_run(self, thread: str, turn: str, error: str | None = None) -> None:
        self.dies("before it is let go")
        super().settle_run(thread, turn, error)
        self.dies("after it was let go")


class Sender:
    """The part of a host that a turn needs: it stores what is sent, each id once."""

    def __init__(self, mailbox: Frail) -> None:
        self.agents = {"main": None, "ada": None}
        self.mailbox = mailbox

    def send(self, thread_id: str, event: WakeEvent) -> str:
        self.mailbox.dies("before its answer is sent")
        self.mailbox.add_event(thread_id, event)
        self.mailbox.dies("after its answer was sent")
        return event["id"]


POINTS = [
    "before it begins",
    "before its input is stored",
    "in its first request",
    "in its tool",
    "in its last request",
    "before its answer is sent",
    "after its answer was sent",
    "before it is let go",
    "after it was let go",
]


@pytest.mark.parametrize("point", POINTS)
def test_a_turn_that_died_is_run_again_and_repeats_nothing(point: str, tmp_path: Path) -> None:
    mailbox = Frail(open_engine(f"sqlite:///{tmp_path / 'sessions.db'}"))
    mailbox.create_tables()
    worked: list[str] = []

    def work(what: str) -> str:
        """Work."""
        mailbox.dies("in its tool")
        worked.append(what)
        return "done"

    def reply(request: Any) -> Any:
        if request[-1].type == "tool":
            mailbox.dies("in its last request")
            return says("It is done.")
        mailbox.dies("in its first request")
        return calls(("work", {"what": "it"}))

    host: Any = Sender(mailbox)
    model = ScriptedModel([reply] * 4)
    tools = [work, *session_tools(host, ["reply_to_peer"])]
    agent: Any = create_todo_agent(
        model, tools=tools, checkpointer=InMemorySaver(), settings="lesson"
    )  # no wakes: the host answers
    question: Any = {"kind": "peer_message", "text": "do it", "sender": "ada", "correlation_id": "q"}
    mailbox.add_event("main", {"id": "q", **question})
    Frail.point = point
    for _ in range(2):
        with suppress(Killed):
            ThreadRunner(mailbox, host).run_waiting(agent, "main", RunControl())
    assert Frail.point is None  # it died there
    history = [*agent.get_state_history({"configurable": {"thread_id": "main"}})]
    assert [(one.metadata or {})["source"] for one in history].count("input") == 1  # it became input once
    values = history[0].values
    assert [m.type for m in values["messages"]] == ["human", "ai", "tool", "ai"]
    assert worked == ["it"]
    assert values["owed_replies"] == []
    assert mailbox.list_waiting("main") == []
    [answer] = mailbox.list_waiting("ada")
    assert (answer.event["kind"], answer.event["text"]) == ("peer_reply", "It is done.")
    mailbox.engine.dispose()
