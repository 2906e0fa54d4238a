"""A weak model with habits, each with its probability."""

import json
from dataclasses import replace
from random import Random
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, InvalidToolCall, ToolCall
from pydantic import Field, PrivateAttr

from wakeloop.testing.captured_requests import is_from_model
from wakeloop.testing.careful import Desk, Intent, desk_of, next_intent, work
from wakeloop.testing.recording_model import RecordingModel
from wakeloop.testing.schema_examples import make_example
from wakeloop.testing.todo_tools import PlannedCall

_WORKS_ON = 0.5


class UnreliableModel(RecordingModel):
    """A seeded model that works through its todo list with the tools it is given, unreliably.

    At heart it is careful: it writes a list of `items` items when a user asks, calls one of the other tools
    for each item (arguments from the tool's schema), closes the item, and ends with a text. It knows the
    todo tools by their names: `todo_write`/`todo_update`, `todo__init`/`todo__add`/`todo__done`,
    `write_todos`, `todo`; with none of them it makes one call and ends. Everything it knows it reads from the
    request. On that come its habits, each a probability from 0 to 1 that is tossed at every reply it fits:

    - `stop_early`: says "all done" while items are open
    - `forget`: does not close the item after the work, but works on or stops
    - `malformed`: spoils a call: broken JSON, an unknown tool, or arguments that do not fit
    - `double`: makes each todo call of a reply twice
    - `repeat`: sends its previous reply again

    The same seed and the same requests give the same replies, call ids included. Raises pydantic's
    ValidationError for a probability outside 0 to 1. Where a `response_format` is bound it replies with JSON
    that fits.
    """

    seed: int
    stop_early: float = Field(default=0.1, ge=0, le=1)
    forget: float = Field(default=0.1, ge=0, le=1)
    malformed: float = Field(default=0.1, ge=0, le=1)
    double: float = Field(default=0.1, ge=0, le=1)
    repeat: float = Field(default=0.1, ge=0, le=1)
    items: int = Field(default=3, ge=1)

    _rng: Random = PrivateAttr()

    def __init__(self, seed: int, **fields: Any) -> None:
        super().__init__(seed=seed, **fields)
        self._rng = Random(seed)  # noqa: S311 - a test repeats, it keeps no secret

    def _choose_step(self, request: list[BaseMessage]) -> AIMessage:
        form = self.options[-1].get("response_format")
        if isinstance(form, dict):
            shape = form.get("json_schema", {}).get("schema", {"type": "object"})
            return AIMessage(content=json.dumps(make_example(shape, self._rng, "done")))
        previous = next((message for message in reversed(request) if is_from_model(message)), None)
        if isinstance(previous, AIMessage) and self._tosses(self.repeat):
            return self._again(previous)
        desk = desk_of(request, self.bound[-1])
        intent = self._distracted(desk, next_intent(desk, self._rng, self.items))
        if intent.moves and self._tosses(self.malformed):
            return self._spoilt(desk, intent)
        return self._said(intent)

    def _tosses(self, probability: float) -> bool:
        return self._rng.random() < probability

    def _distracted(self, desk: Desk, intent: Intent) -> Intent:
        if desk.open and self._tosses(self.stop_early):
            return Intent("end", "All done.")
        if intent.kind == "update" and self._tosses(self.forget):
            if desk.others and self._tosses(_WORKS_ON):
                return work(desk, self._rng, desk.open[-1].text)
            return Intent("end", f"I have finished {desk.open[0].text}.")
        if intent.kind in ("plan", "update") and self._tosses(self.double):
            return replace(intent, moves=intent.moves * 2)
        return intent

    def _said(self, intent: Intent) -> AIMessage:
        return AIMessage(content=intent.text, tool_calls=[self._call(*move) for move in intent.moves])

    def _call(self, name: str, args: dict[str, Any]) -> ToolCall:
        return ToolCall(type="tool_call", name=name, args=args, id=self._id())

    def _id(self) -> str:
        return f"call_{self._rng.getrandbits(48):012x}"

    def _spoilt(self, desk: Desk, intent: Intent) -> AIMessage:
        """The reply with its first call broken in one of three ways."""
        (name, args), *rest = intent.moves
        match self._rng.choice(["json", "name", "args"]):
            case "json":
                broken = InvalidToolCall(
                    type="invalid_tool_call", name=name, args=json.dumps(args)[:-1], id=self._id(), error=None
                )
                reply = self._said(replace(intent, moves=tuple(rest)))
                return reply.model_copy(update={"invalid_tool_calls": [broken]})
            case "name":
                spoilt = PlannedCall(self._unknown(desk, name), args)
            case _:
                wrapped: dict[str, Any] = {key: {"value": value} for key, value in args.items()}
                spoilt = PlannedCall(name, wrapped or {"argument": None})
        return self._said(replace(intent, moves=(spoilt, *rest)))

    def _unknown(self, desk: Desk, name: str) -> str:
        while name in desk.tools:
            name += "_now"
        return name

    def _again(self, previous: AIMessage) -> AIMessage:
        """The same text and calls, with ids of their own, as a server gives them."""
        return AIMessage(
            content=previous.content,
            tool_calls=[self._call(call["name"], call["args"]) for call in previous.tool_calls],
            invalid_tool_calls=[{**call, "id": self._id()} for call in previous.invalid_tool_calls],
        )
