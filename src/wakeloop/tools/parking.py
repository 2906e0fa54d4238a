"""Tools that park the run: for a person, for other work."""

from time import time
from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, StructuredTool, ToolException
from langgraph.types import Command
from pydantic import Field

from wakeloop.loop.approval import Review, build_question, read_choice
from wakeloop.loop.waits import LONGEST_TIMER
from wakeloop.thread.interrupts import ask_person

REVIEW = Review(("respond",), on="human", described_by="question")


def _ask_user(
    question: Annotated[
        str, Field(min_length=1, description="The question, complete: the person reads only this.")
    ],
    choices: Annotated[
        list[str] | None, Field(description="Answers to choose from, if there are a few.")
    ] = None,
) -> str:
    if not question.strip():
        raise ToolException("question must not be empty")
    asked = build_question(question, choices or [])
    return ask_person(asked, lambda decision: read_choice(decision.words, {"choices": choices}))


ask_user = StructuredTool.from_function(
    _ask_user,
    name="ask_user",
    description="Ask the person you work for, and wait for the answer. "
    "Ask only what you cannot find out yourself.",
    metadata=REVIEW.to_metadata(),
)
"""The tool `ask_user(question, choices=None)`, for `tools=[…]` of an agent with a checkpointer.

It stops the run at an `interrupt` whose value has LangChain's shape, with the one decision `respond`. Answer
with `Command(resume="words")`, or with the number of a choice.
"""


def _wait_for_work(
    what: Annotated[str, Field(description="What you wait for, in a few words.")],
    call_id: Annotated[str, InjectedToolCallId],
    seconds: Annotated[float, Field(gt=0, le=LONGEST_TIMER, description="The longest time to wait.")] = 3600,
) -> Command[Any]:
    if not what.strip():
        raise ToolException("what must not be empty")
    text = f"Waiting for {what.strip()}. Do what you can without it, then end your turn."
    entry = {"id": call_id, "on": "work", "what": what.strip(), "until": time() + seconds}
    result = ToolMessage(text, tool_call_id=call_id, name=wait_for_work.name)
    return Command(update={"messages": [result], "waiting_on": [entry]})


wait_for_work = StructuredTool.from_function(
    _wait_for_work,
    name="wait_for_work",
    description="Wait for something that runs without you, such as a build that you started. You are called "
    "again when it is said to be over, or after the seconds.",
)
"""The tool `wait_for_work(what, seconds=3600)`, for `tools=[…]` of an agent with a checkpointer.

The run parks when its turn ends. A kick, any other event or a message continues it, and so does a host's
clock after the seconds.
"""
