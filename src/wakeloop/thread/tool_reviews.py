"""Calls that a person is asked about before they run."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from typing import Any, Self, cast

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ValidationError

from wakeloop.errors import ArgumentError, ToolNameError
from wakeloop.loop.approval import KINDS, Decision, DecisionKind, Review, quote_words
from wakeloop.model.timing import update_results
from wakeloop.model.tool_results import describe_tool_error, tool_result
from wakeloop.prompts import fill_prompt
from wakeloop.text.characters import shorten
from wakeloop.text.wording import describe_type
from wakeloop.thread.interrupts import ask_person
from wakeloop.todos.items import OperationRefused

ACCEPTED_VALUES = "True, a list of decisions, or {'allowed_decisions': […], 'description': '…'}"


@dataclass(frozen=True)
class ToolReviews:
    """By tool how its calls are put to a person; `words` replace what the model reads of it."""

    by_tool: Mapping[str, Review] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(
        cls, given: object, tools: Collection[str], elsewhere: Mapping[str, str], words: Mapping[str, str]
    ) -> Self:
        """Read `interrupt_on`; `elsewhere` are tools that do not run here, each with what is said of it.

        Raises `ToolNameError` for a tool that cannot be asked about, `ArgumentError` for any other fault.
        """
        if given is None:
            return cls()
        if not isinstance(given, Mapping):
            raise ArgumentError(
                f"interrupt_on takes a tool's name with {ACCEPTED_VALUES}, not {describe_type(given)}."
            )
        for name in given:
            if name not in tools:
                raise ToolNameError(_explain_unknown_tool(name, tools, elsewhere))
        return cls({name: _parse_review(name, how) for name, how in given.items() if how is not False}, words)

    def review_call(
        self, call: dict[str, Any], tool: BaseTool, *, due: bool = False
    ) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """Ask about a call where that is `due`; return it as it is to run, or the update that answers it.

        It is due, too, where the build that wrote the call asked about this tool: a no is a no.
        """
        review = self.by_tool.get(tool.name) or (Review() if due else None)
        if review is None:
            return call, None
        decision = ask_person(review.build_request(call), partial(_check_edited_args, tool))
        if decision.kind == "edit":
            return {**call, "args": dict(decision.args or {})}, None
        if decision.kind == "approve":
            return call, None
        if decision.kind == "respond":
            return call, {"messages": [tool_result(call, decision.words)]}
        text = fill_prompt("call_rejected", "", self.words, words=quote_words(decision))
        return call, {"messages": [tool_result(call, f"Error: {text}", "error")]}

    def note_edited_args(self, written: Mapping[str, Any], ran: Mapping[str, Any], update: Any) -> Any:
        """Say in the result of a call that ran otherwise than the model wrote it how it ran."""
        if written["args"] == ran["args"]:
            return update
        text = fill_prompt(
            "call_edited", "", self.words, args=json.dumps(ran["args"], ensure_ascii=False, default=str)
        )
        return update_results(update, ran["id"], partial(_prepend_text, text))


def _prepend_text(text: str, result: ToolMessage) -> ToolMessage:
    content: Any = f"{text}\n\n{result.content}"
    if isinstance(result.content, list):
        content = [{"type": "text", "text": text}, *result.content]
    return result.model_copy(update={"content": content})


def _check_edited_args(tool: BaseTool, decision: Decision) -> Decision:
    """Refuse an edit whose arguments the tool would not take."""
    schema = tool.tool_call_schema
    if decision.kind != "edit" or not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        return decision
    if unknown := sorted(set(decision.args or ()) - set(tool.args)):
        raise OperationRefused(
            f"{tool.name} has no argument {shorten(unknown[0])!r}; there are {', '.join(tool.args) or 'none'}"
        )
    try:
        schema.model_validate(decision.args)
    except ValidationError as error:
        raise OperationRefused(describe_tool_error(error)) from None
    return decision


def _explain_unknown_tool(name: object, tools: Collection[str], elsewhere: Mapping[str, str]) -> str:
    """Say why a name is no tool's that a person can be asked about, with the nearest right one."""
    if name in elsewhere:
        return f"interrupt_on cannot ask about {name!r}: {elsewhere[cast(str, name)]}."
    near = get_close_matches(str(name), tools, n=1)
    there = ", ".join(sorted(tools)) or "none"
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {there}."
    return f"interrupt_on names the tool {shorten(str(name))!r}, and there is none of that name; {hint}"


def _parse_review(name: str, how: object) -> Review:
    """Read what is allowed for a tool. Raises `ArgumentError`."""
    if how is True:
        return Review()
    config: Any = how if isinstance(how, Mapping) else {"allowed_decisions": how}
    if strange := sorted(set(map(str, config)) - {"allowed_decisions", "description"}):
        raise ArgumentError(f"interrupt_on[{name!r}] has the key {strange[0]!r}; it takes {ACCEPTED_VALUES}.")
    allowed, told = config.get("allowed_decisions"), config.get("description", "")
    if not isinstance(allowed, list | tuple) or not allowed or not isinstance(told, str):
        raise ArgumentError(f"interrupt_on[{name!r}] takes {ACCEPTED_VALUES}, not {shorten(repr(how))}.")
    if wrong := [one for one in allowed if one not in KINDS]:
        raise ArgumentError(
            f"interrupt_on[{name!r}] has {shorten(repr(wrong[0]))}; there are {', '.join(KINDS)}."
        )
    return Review(cast(tuple[DecisionKind, ...], tuple(dict.fromkeys(allowed))), told)
