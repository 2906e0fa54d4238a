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
    """Ask once about several calls. What was decided is done with each in the next superstep."""

    tools: Mapping[str, BaseTool] = field(default_factory=dict)
    reviews: ToolReviews = field(default_factory=ToolReviews)

    def __call__(self, state: dict[str, Any], config: RunnableConfig) -> dict[str, Any]:
        """Return the calls with the decisions on them."""
        return {"todo_decided": self.reviews.decide_together(state["calls"], self.tools)}
