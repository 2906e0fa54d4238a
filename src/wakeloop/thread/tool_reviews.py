"""Tool reviews: calls that a person approves before they run."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
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
from wakeloop.text.wording import describe_type, suggest
from wakeloop.thread.interrupts import ask_person
from wakeloop.todos.items import OperationRefused

ACCEPTED_VALUES = "True, a list of decisions, or {'allowed_decisions': […], 'description': '…'}"


@dataclass(frozen=True)
class ToolReviews:
    """How calls are reviewed, by tool; `words` replace the sentences that the model reads about a review."""

    by_tool: Mapping[str, Review] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(
        cls, given: object, tools: Collection[str], elsewhere: Mapping[str, str], words: Mapping[str, str]
    ) -> Self:
        """Read `interrupt_on`. `elsewhere` are tools that cannot be reviewed, each with the reason.

        Raises `ToolNameError` for a tool that cannot be reviewed, `ArgumentError` for anything else.
        """
        if given is None:
            return cls()
        if not isinstance(given, Mapping):
            raise ArgumentError(
                f"interrupt_on must map tool names to {ACCEPTED_VALUES}, got {describe_type(given)}."
            )
        for name in given:
            if name not in tools:
                raise ToolNameError(_explain_unknown_tool(name, tools, elsewhere))
        return cls({name: _parse_review(name, how) for name, how in given.items() if how is not False}, words)

    def review_call(
        self, call: dict[str, Any], tool: BaseTool, *, due: bool = False
    ) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """Ask about a call, and return it as it is to run, with None; or with the update that answers it."""
        # A call that was written under an agent that reviewed this tool (`due`) is still asked about, even
        # if the agent was rebuilt without the review before the person answered.
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
        """Tell the model, in the call's result, with which arguments the call ran if a person edited them."""
        if written["args"] == ran["args"]:
            return update
        args = json.dumps(ran["args"], ensure_ascii=False, default=str)
        text = fill_prompt("call_edited", "", self.words, args=args)
        return update_results(update, ran["id"], partial(_prepend_text, text))


def _prepend_text(text: str, result: ToolMessage) -> ToolMessage:
    content: Any = f"{text}\n\n{result.content}"
    if isinstance(result.content, list):
        content = [{"type": "text", "text": text}, *result.content]
    return result.model_copy(update={"content": content})


def _check_edited_args(tool: BaseTool, decision: Decision) -> Decision:
    """Refuse an edit with arguments that the tool would not accept."""
    schema = tool.tool_call_schema
    if decision.kind != "edit" or not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        return decision
    if unknown := sorted(set(decision.args or ()) - set(tool.args)):
        raise OperationRefused(
            f"{tool.name} has no argument {shorten(unknown[0])!r}; it takes {', '.join(tool.args) or 'none'}"
        )
    try:
        schema.model_validate(decision.args)
    except ValidationError as error:
        raise OperationRefused(describe_tool_error(error)) from None
    return decision


def _explain_unknown_tool(name: object, tools: Collection[str], elsewhere: Mapping[str, str]) -> str:
    """Say why calls of this name cannot be reviewed, with the nearest name that can."""
    if name in elsewhere:
        return f"interrupt_on cannot review {name!r}: {elsewhere[cast(str, name)]}."
    hint = suggest(name, sorted(tools) or ["none"])
    return f"interrupt_on names an unknown tool, {shorten(str(name))!r}. {hint}"


def _parse_review(name: str, how: object) -> Review:
    """Read what `interrupt_on` says about one tool. Raises `ArgumentError`."""
    if how is True:
        return Review()
    config: Any = how if isinstance(how, Mapping) else {"allowed_decisions": how}
    if unknown := sorted(set(map(str, config)) - {"allowed_decisions", "description"}):
        raise ArgumentError(
            f"interrupt_on[{name!r}] has an unknown key, {unknown[0]!r}. It takes {ACCEPTED_VALUES}."
        )
    allowed, description = config.get("allowed_decisions"), config.get("description", "")
    if not isinstance(allowed, list | tuple) or not allowed or not isinstance(description, str):
        raise ArgumentError(f"interrupt_on[{name!r}] must be {ACCEPTED_VALUES}, got {shorten(repr(how))}.")
    if wrong := [one for one in allowed if one not in KINDS]:
        raise ArgumentError(
            f"interrupt_on[{name!r}] has an unknown decision, {shorten(repr(wrong[0]))}. "
            f"Available: {', '.join(KINDS)}."
        )
    return Review(cast(tuple[DecisionKind, ...], tuple(dict.fromkeys(allowed))), description)
