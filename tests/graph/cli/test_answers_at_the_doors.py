"""The table of answers in words through each door: terminal, chat, session, library."""

from __future__ import annotations

import io
from collections.abc import Callable
from itertools import repeat
from typing import Any

import pytest
from answers_in_words import ASKED_AGAIN, NO, YES
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from wakeloop import create_todo_agent
from wakeloop.cli.chat.dot_commands import parse_entry
from wakeloop.cli.questions import Answering, ask_questions, build_input
from wakeloop.sessions import choose_next_input
from wakeloop.testing import ScriptedModel, calls, says

pytestmark = pytest.mark.slow

ROWS = {**dict.fromkeys(YES, "both run"), **dict.fromkeys(dict(NO), "none runs")}
ROWS |= dict.fromkeys(ASKED_AGAIN, "asked again")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def by_library(snapshot: Any, text: str) -> Any:
    return Command(resume=text)


def by_terminal(snapshot: Any, text: str) -> Any:
    answers = ask_questions(snapshot.interrupts, lambda line: None, Terminal(f"{text}\n"))
    assert answers is not None
    return build_input(answers)


def by_chat(snapshot: Any, text: str) -> Any:
    if not text.strip():
        return None  # Enter alone does nothing
    [question] = snapshot.interrupts
    entry = parse_entry(text)
    assert isinstance(entry, str)
    return Command(resume={question.id: Answering(question.value).take(entry, lambda line: None)})


def by_session(snapshot: Any, text: str) -> Any:
    event: Any = {"kind": "human", "text": text, "correlation_id": snapshot.interrupts[0].id}
    return choose_next_input(snapshot, [event]).input


@pytest.mark.parametrize("door", [by_library, by_terminal, by_chat, by_session])
def test_c64_each_row_does_the_same(door: Callable[[Any, str], Any]) -> None:
    """A terminal and a chat read one line. In a chat and in a session an empty one is not an answer."""
    sent: list[str] = []

    def mail(to: str) -> str:
        """Send a mail."""
        sent.append(to)
        return "sent"

    replies = [calls(("mail", {"to": "a"}), ("mail", {"to": "b"})), says("Bye.")]
    model = ScriptedModel(repeat(lambda messages: replies[messages[-1].type == "tool"]))
    agent = create_todo_agent(model, [mail], interrupt_on={"mail": True}, checkpointer=InMemorySaver())
    did = {}
    for place, text in enumerate(ROWS):
        if door in (by_terminal, by_chat) and "\n" in text.strip():
            continue
        sent.clear()
        config: Any = {"configurable": {"thread_id": str(place)}}
        agent.invoke({"messages": [("user", "go")]}, config)
        agent.invoke(door(agent.get_state(config), text), config)
        waits = bool(agent.get_state(config).interrupts)
        ran = {0: "none runs", 2: "both run"}.get(len(sent), f"{sent}")
        did[text] = "asked again" if waits and not sent else ran
    expected = {text: ROWS[text] for text in did}
    if door in (by_chat, by_session):
        expected |= {"": "asked again", "   ": "asked again"}
    assert did == expected
    assert len(did) >= 60
