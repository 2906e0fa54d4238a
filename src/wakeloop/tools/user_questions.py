"""The tool that asks the person at the other end."""

from typing import Annotated

from langchain_core.tools import StructuredTool, ToolException
from pydantic import Field

from wakeloop.loop.approval import Review, build_question, read_choice
from wakeloop.thread.interrupts import ask_person

DESCRIPTION = (
    "Ask the person you work for, and wait for the answer. Ask only what you cannot find out yourself."
)
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
    _ask_user, name="ask_user", description=DESCRIPTION, metadata=REVIEW.to_metadata()
)
"""The tool `ask_user(question, choices=None)`, for `tools=[…]` of an agent with a checkpointer.

It stops the run at an `interrupt` whose value has LangChain's shape, with the one decision `respond`. Answer
with `Command(resume="words")`, or with the number of a choice.
"""
