"""The tool that waits for work in the background."""

from time import time
from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, StructuredTool, ToolException
from langgraph.types import Command
from pydantic import Field

from wakeloop.loop.waits import LONGEST_TIMER

DESCRIPTION = (
    "Wait for something that runs without you, such as a build that you started. You are called again "
    "when it is said to be over, or after the seconds."
)


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


wait_for_work = StructuredTool.from_function(_wait_for_work, name="wait_for_work", description=DESCRIPTION)
"""The tool `wait_for_work(what, seconds=3600)`, for `tools=[…]` of an agent with a checkpointer.

The run parks when its turn ends. A kick, any other event or a message continues it, and so does a host's
clock after the seconds.
"""
