"""What a cell spends, and where its ceilings are."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.tools import BaseTool, StructuredTool

PER_TOKEN = 4  # characters, where the server tells no usage
REFUSED = (400, 413, 422)  # a server that refuses what it was sent: the agent's fault, and a result


class CeilingError(Exception):
    """A cell has made as many requests as any agent may."""


class OutageError(Exception):
    """A request failed for a reason that says nothing of the agent: the cell is run again another time."""


@dataclass(eq=False)
class Meter(BaseCallbackHandler):
    """Counts requests and tokens from LangChain's callbacks, so that every agent is measured alike.

    Where the server tells no usage a token is four characters, and cached is what a request has in common
    with the beginning of the one before it.
    """

    most: int
    ended: Callable[[str], None]  # a turn has ended with this text
    requests: int = 0
    input: int = 0
    cached: int = 0
    output: int = 0
    estimated: bool = False
    raise_error = True
    _sent: list[str] = field(default_factory=list)
    _told: dict[UUID, tuple[int, int]] = field(default_factory=dict)

    def on_chat_model_start(
        self,
        serialized: Any,  # noqa: ARG002 - the interface's
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        """A request goes out. Raises `CeilingError` where it would be one too many."""
        if self.requests >= self.most:
            raise CeilingError(f"{self.most} requests")
        self.requests += 1
        tools = (kwargs.get("invocation_params") or {}).get("tools")
        sent = [json.dumps(tools, default=str) if tools else "", *map(written, messages[0])]
        same = next((i for i, (a, b) in enumerate(zip(sent, self._sent, strict=False)) if a != b), None)
        shared = sent[: min(len(sent), len(self._sent)) if same is None else same]
        self._told[run_id] = (sum(map(len, sent)) // PER_TOKEN, sum(map(len, shared)) // PER_TOKEN)
        self._sent = sent

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """A reply has come."""
        first = response.generations[0][0]
        reply = first.message if isinstance(first, ChatGeneration) else AIMessage(first.text)
        asked, shared = self._told.pop(run_id, (0, 0))
        usage: Any = getattr(reply, "usage_metadata", None)
        if usage:
            self.input += usage["input_tokens"]
            self.cached += (usage.get("input_token_details") or {}).get("cache_read") or 0
            self.output += usage["output_tokens"]
        else:
            self.estimated = True
            self.input += asked
            self.cached += shared
            self.output += len(written(reply)) // PER_TOKEN
        if not (getattr(reply, "tool_calls", ()) or getattr(reply, "invalid_tool_calls", ())):
            self.ended(str(reply.text))

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:  # noqa: ARG002
        """A request failed. Raises `OutageError` unless the server refused what it was sent."""
        if isinstance(error, Exception) and getattr(error, "status_code", None) not in REFUSED:
            raise OutageError(f"{type(error).__name__}: {error}") from error


def written(message: BaseMessage) -> str:
    """Return a message as it counts: who says it, what, and its calls."""
    calls = getattr(message, "tool_calls", None)
    said = message.content if isinstance(message.content, str) else json.dumps(message.content, default=str)
    return f"{message.type}: {said}{json.dumps([[c['name'], c['args']] for c in calls]) if calls else ''}"


@dataclass
class Bench:
    """The tools of a cell, counted."""

    calls: int = 0
    failed: int = 0

    def around(self, tools: Sequence[BaseTool]) -> list[BaseTool]:
        """Return the same tools, watched."""
        return [self._watched(tool) for tool in tools]

    def _watched(self, tool: BaseTool) -> BaseTool:
        def run(**args: Any) -> str:
            self.calls += 1
            try:
                return str(tool.invoke(args))
            except Exception:
                self.failed += 1
                raise

        return StructuredTool(
            name=tool.name, description=tool.description, args_schema=tool.args_schema, func=run
        )
