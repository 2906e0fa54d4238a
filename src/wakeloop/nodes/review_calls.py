"""Asks a person about the calls of a reply, together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

from wakeloop.platform.runnables import Node
from wakeloop.thread.tool_reviews import ToolReviews


@dataclass(frozen=True, eq=False)
class ReviewCalls(Node):
    """Ask once about several calls. The approved ones run in the next superstep, the others are answered."""

    tools: Mapping[str, BaseTool] = field(default_factory=dict)
    reviews: ToolReviews = field(default_factory=ToolReviews)

    def __call__(self, state: dict[str, Any], config: RunnableConfig) -> dict[str, Any]:
        """Return the calls with the decisions on them, and the results of those that do not run."""
        decided = self.reviews.decide_together(state["calls"], self.tools)
        answers = [self.reviews.apply_decision(call, self.tools.get(call["name"]))[1] for call in decided]
        results = [answer for answer in answers if answer is not None]
        update: dict[str, Any] = {"todo_decided": decided}
        return {**update, "messages": results} if results else update
