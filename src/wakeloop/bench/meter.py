"""Meters and limits for requests, tokens and tool calls."""

import time
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from errno import EDQUOT, ENOSPC
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import ValidationError

from wakeloop.model.finish_reasons import is_unreadable_call
from wakeloop.platform.provider_errors import find_status
from wakeloop.testing.captured_requests import UsageMeter
from wakeloop.text.characters import pluralize

REFUSAL_STATUSES = (400, 413, 422)  # a server refused a request: the agent's fault, so a result


class CeilingError(Exception):
    """A cell has used up its requests."""


class OutageError(Exception):
    """A request failed for a reason that says nothing about the agent; the cell is run again later."""


@dataclass(eq=False)
class RequestMeter(BaseCallbackHandler):
    """Counts requests and tokens from LangChain's callbacks, so every agent is measured alike.

    If the server reports no usage, it is estimated from the size of the request.
    """

    most: int
    ended: Callable[[str], None]  # called with the last text of each turn
    requests: int = 0
    input: int = 0
    cached: int = 0
    output: int = 0
    estimated: bool = False
    given_up: bool = False  # nobody waits any more, so replies are refused
    raised: Exception | None = None  # a ceiling or an outage, which some agents swallow
    raise_error = True
    _size: UsageMeter = field(default_factory=UsageMeter)
    _asked: dict[UUID, tuple[Sequence[dict[str, Any]], list[BaseMessage]]] = field(default_factory=dict)
    _since: dict[UUID, float] = field(default_factory=dict)

    @property
    def waiting(self) -> float:
        """The seconds since the oldest unanswered request was sent."""
        out = list(self._since.values())
        return time.monotonic() - min(out) if out else 0.0

    def on_chat_model_start(
        self,
        serialized: Any,  # noqa: ARG002 - the interface's
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        """Count a request. Raises `CeilingError` if it is one too many."""
        self._must_be_wanted()
        if self.requests >= self.most:
            self.raised = CeilingError(pluralize(self.most, "request"))
            raise self.raised
        self.requests += 1
        self._since[run_id] = time.monotonic()
        self._asked[run_id] = (kwargs.get("invocation_params") or {}).get("tools") or (), messages[0]

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """Count a reply and its usage."""
        self._since.pop(run_id, None)
        self._must_be_wanted()
        first = response.generations[0][0]
        reply = AIMessage(first.text)
        if isinstance(first, ChatGeneration) and isinstance(first.message, AIMessage):
            reply = first.message
        asked = self._asked.pop(run_id)
        self.estimated |= reply.usage_metadata is None
        used = reply.usage_metadata or self._size.usage(*asked, reply)
        self.input += used["input_tokens"]
        self.cached += used.get("input_token_details", {}).get("cache_read") or 0
        self.output += used["output_tokens"]
        if not (reply.tool_calls or reply.invalid_tool_calls):
            self.ended(str(reply.text))

    def _must_be_wanted(self) -> None:
        if self.given_up:
            raise OutageError("This agent has been abandoned.")

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """Handle a failed request. Raises `OutageError` unless the agent or the model is at fault.

        The agent is at fault if the server refuses its request, the model if its calls can't be read. If the
        very first request is refused, the server does not support this model or what the bench needs.
        """
        self._since.pop(run_id, None)
        if not isinstance(error, Exception) or _is_model_error(error):
            return
        refused = find_status(error) in REFUSAL_STATUSES
        if not refused or self.requests == 1:
            how = "refuses the first request" if refused else "cannot be reached"
            self.raised = OutageError(f"The model {how}: {type(error).__name__}: {error}")
            raise self.raised from error


def _is_model_error(error: Exception) -> bool:
    """Return whether a request failed because of the reply: its calls are invalid, or not JSON."""
    return isinstance(error, ValidationError) or is_unreadable_call(error)


def _disk_full_error(error: BaseException | None) -> OSError | None:
    """Return the error about a full disk in the chain of causes, if there is one."""
    while error is not None and not (isinstance(error, OSError) and error.errno in (ENOSPC, EDQUOT)):
        error = error.__cause__ or error.__context__
    return error


@dataclass
class ToolCounter:
    """Counts the tool calls of a cell, and pads their results: the cost of a wake depends on their size."""

    characters: int = 0  # of a padded result
    calls: int = 0
    failed: int = 0
    full: OSError | None = None  # a full disk is not the agent's fault

    def wrap(self, tools: Sequence[BaseTool]) -> list[BaseTool]:
        """Return the same tools; each call is counted, and each result padded."""
        return [*map(self._wrap_tool, tools)]

    def _wrap_tool(self, tool: BaseTool) -> BaseTool:
        def run(**args: Any) -> str:
            self.calls += 1
            try:
                return str(tool.invoke(args)).ljust(self.characters, ".")
            except Exception as error:
                self.failed += 1
                self.full = self.full or _disk_full_error(error)
                raise

        return StructuredTool(
            name=tool.name, description=tool.description, args_schema=tool.args_schema, func=run
        )


TIMEOUT = 180.0  # seconds that a request may take, including its client's retries
THREAD_NAME = "wakeloop-bench-agent"
TICK = 0.2  # seconds between two checks


def run_with_timeout(run: Callable[[], Any], meter: RequestMeter, timeout: float) -> Any:
    """Return the result of an agent. Raises its errors, and `OutageError` if the model does not answer.

    The agent runs in a thread. After an outage the thread is abandoned, because it may wait for the server
    forever; the meter refuses replies that come too late. Ctrl-C works at any time.
    """
    heard: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()

    def work() -> None:
        try:
            heard.put((run(), None))
        except BaseException as error:  # noqa: BLE001 - raised again by the caller's thread
            heard.put((None, error))

    Thread(target=copy_context().run, args=(work,), name=THREAD_NAME, daemon=True).start()
    while True:
        try:
            ending, error = heard.get(timeout=TICK)
        except Empty:
            if meter.waiting <= timeout:
                continue
            meter.given_up = True
            raise OutageError(
                f"The model did not answer within {pluralize(round(timeout), 'second')}; "
                "--timeout sets how long to wait for a request."
            ) from None
        except BaseException:
            meter.given_up = True
            raise
        if error := error or meter.raised:
            raise error
        return ending
