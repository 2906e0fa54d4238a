"""Models with a small context window, and jobs that do not fit it."""

from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.tools import BaseTool, tool
from pydantic import PrivateAttr

from wakeloop.testing import Knobs, ScriptedModel, WeakModel
from wakeloop.testing.captured_requests import CHARACTERS_PER_TOKEN, render_message
from wakeloop.testing.jobs import Call, PlainJob, Step
from wakeloop.testing.recording_model import RecordingModel

WINDOW = 15_000
RESULT = 8_000  # characters: 2,000 tokens


def count_tokens(tools: Any, request: list[BaseMessage]) -> int:
    """Count the tokens of a request as the models of this file do."""
    return (len(str(tools)) + sum(len(render_message(one)) for one in request)) // CHARACTERS_PER_TOKEN


class SmallModel(RecordingModel):
    """Refuses requests above its limit in these words, which may name the limit and the request's length."""

    limit: int = WINDOW
    words: str = "prompt is too long: {asked} tokens > {limit} maximum"
    _refused: list[int] = PrivateAttr(default_factory=list)

    @property
    def refused(self) -> list[int]:
        return self._refused

    def _choose_step(self, request: list[BaseMessage]) -> Any:
        asked = count_tokens(self.bound[-1], request)
        if asked > self.limit:
            self.refused.append(asked)
            raise ValueError(self.words.format(limit=self.limit, asked=asked))
        return super()._choose_step(request)


class SmallWeakModel(SmallModel, WeakModel):
    """A weak model that works only from the request: a cleared result is as if never seen."""


class SmallScriptedModel(SmallModel, ScriptedModel):
    """A script that a refused request does not advance."""


@tool
def look(path: str) -> str:
    """Look at a file."""
    return f"{path}: {'word ' * RESULT}"[:RESULT]


@tool
def read(path: str, offset: int = 0, limit: int = 100) -> str:
    """Read a file."""
    return f"{path}: {'word ' * 10 * RESULT}"[: 10 * RESULT]


def job(items: int) -> PlainJob:
    """Ask for this many items, each with one call."""
    return PlainJob([Step(f"item {n}", (Call("look", {"path": f"f{n}.md"}),)) for n in range(1, items + 1)])


def weak_model(items: int, **fields: Any) -> SmallWeakModel:
    return SmallWeakModel(job(items), seed=1, knobs=Knobs(forgets_cleared="cleared:"), **fields)


TOOLS: list[BaseTool] = [look, read]
