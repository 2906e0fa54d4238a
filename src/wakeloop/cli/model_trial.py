"""Tries out what a run needs from a model."""

from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import Runnable

from wakeloop.cli.failures import SETTLED, CommandError
from wakeloop.display.terminal_output import clean_line
from wakeloop.errors import ToolError
from wakeloop.model.reply import read_reply
from wakeloop.model.reply_watcher import ReplyWatcher
from wakeloop.platform.tool_boundary import run_within

ANSWER_TIMEOUT = 60.0  # seconds that a request may take, including its client's retries

TRIAL_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "ready",
        "description": "Say that you are ready.",
        "parameters": {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]},
    },
}
_PROMPT = "Call the tool ready once, with ok set to true. Then say that you are done."
_CUT = "The reply was cut off, or a stream has no finish reason (see the setting finish_reason)."


@dataclass
class ModelTrial:
    """A call, and a second request with its result, as a run makes them; whole or as a stream.

    What the server cannot do is raised as a `CommandError`, and so is a request that takes longer than
    `ANSWER_TIMEOUT`; errors of the client pass. With `finishes`, a stream has to say how it ended.
    """

    model: Runnable[Any, Any]
    finishes: bool
    streaming: bool = False
    messages: list[BaseMessage] = field(default_factory=lambda: [HumanMessage(_PROMPT)])

    def run(self) -> None:
        """Make both requests."""
        self.request_call()
        self.send_result()

    def request_call(self) -> None:
        """Ask for a call, and answer it in the history."""
        reply, watcher = self._ask_in_time()
        if watcher.unreadable is not None:
            raise CommandError(f"not called. The call could not be read: {watcher.unreadable.why}.")
        read = read_reply(
            reply,
            None,
            {TRIAL_TOOL["function"]["name"]: TRIAL_TOOL},
            used=lambda _: False,
            known=lambda _: False,
            fill=lambda _: _CUT,
            broken_arguments=watcher.broken_arguments,
            must_finish=watcher.must_finish,
        )
        for fault in read.faults.values():
            raise CommandError(f"not called. {fault}")
        if not read.calls:
            answer = clean_line(reply.text, 60)
            raise CommandError(f"not called. It answered {answer!r}; the todo list needs tool calls.")
        results = [ToolMessage("Good.", tool_call_id=call["id"]) for call in read.message.tool_calls]
        self.messages += [read.message, *results]

    def send_result(self) -> None:
        """Send the history with the call and its result."""
        self._ask_in_time()

    def _ask_in_time(self) -> tuple[Any, ReplyWatcher]:
        """Make one request, and give up after `ANSWER_TIMEOUT`.

        The client's own limit would not do: it is ten minutes for each try, and not all providers have one.
        """
        try:
            asked: tuple[Any, ReplyWatcher] = run_within(ANSWER_TIMEOUT, self._ask)
        except ToolError:
            raise CommandError(f"no answer within {ANSWER_TIMEOUT:g} s") from None
        return asked

    def _ask(self) -> tuple[Any, ReplyWatcher]:
        """Make one request. The reply is None if the watcher says why."""
        watcher = ReplyWatcher(
            {}, streaming=self.streaming, retries_unstreamed=self.streaming, finishes=self.finishes
        )
        reply = None
        with watcher:
            if self.streaming:
                reply = reduce(add, self.model.stream(self.messages, watcher.config))
            else:
                reply = self.model.invoke(self.messages, watcher.config)
        if watcher.never_began:
            raise CommandError("none. A run asks again without one, which costs a request.", SETTLED)
        return reply, watcher
