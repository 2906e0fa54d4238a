"""Tool reviews: calls that a person approves before they run."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Literal, Self, cast, get_args

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ValidationError

from wakeloop.checks.json_schema import find_misfit
from wakeloop.errors import ArgumentError, ToolNameError
from wakeloop.loop.approval import (
    KINDS,
    Decision,
    DecisionKind,
    Review,
    build_call_request,
    build_calls_request,
    name_fault,
    quote_words,
    read_choice,
    read_decision,
    read_decisions,
)
from wakeloop.loop.ledger import Ledger
from wakeloop.model.tool_results import describe_tool_error, tool_result, update_results
from wakeloop.prompts import fill_prompt
from wakeloop.text.characters import shorten
from wakeloop.text.wording import describe_type, suggest
from wakeloop.thread.interrupts import ask_until_accepted
from wakeloop.todos.items import OperationRefused

InterruptMode = Literal["batched", "per_call"]
ACCEPTED_VALUES = (
    f"True, a list of decisions ({', '.join(KINDS)}), or {{'allowed_decisions': […], 'description': '…'}}"
)
REVIEW_KEYS = {"allowed_decisions", "description"}


@dataclass(frozen=True)
class ToolReviews:
    """How calls are reviewed, by tool; `words` replace the sentences that the model reads about a review.

    `mode` says whether the calls of a reply are put in one interrupt, or each in its own.
    """

    by_tool: Mapping[str, Review] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    mode: InterruptMode = "batched"

    @classmethod
    def parse(
        cls,
        given: object,
        tools: Mapping[str, BaseTool],
        elsewhere: Mapping[str, str],
        words: Mapping[str, str],
        mode: object = "batched",
    ) -> Self:
        """Read `interrupt_on` and `interrupt_mode`, and find the tools that ask by themselves.

        `elsewhere` are tools that cannot be reviewed, each with the reason. Raises `ToolNameError` for a tool
        that cannot be reviewed, `ArgumentError` for anything else.
        """
        if mode not in get_args(InterruptMode):
            raise ArgumentError(f"interrupt_mode must be 'batched' or 'per_call', got {shorten(repr(mode))}.")
        reviews = find_asking_tools(tools.values())
        given = {} if given is None else given
        if not isinstance(given, Mapping):
            raise ArgumentError(
                f"interrupt_on must map tool names to {ACCEPTED_VALUES}, got {describe_type(given)}."
            )
        for name, how in given.items():
            if name in elsewhere:
                raise ToolNameError(f"interrupt_on cannot review {name!r}: {elsewhere[name]}.")
            if name not in tools:
                hint = suggest(name, sorted(tools) or ["none"])
                raise ToolNameError(f"interrupt_on names an unknown tool, {shorten(str(name))!r}. {hint}")
            if how is not False:
                reviews[name] = _parse_review(name, how)
        return cls(reviews, words, cast(InterruptMode, mode))

    @property
    def are_together(self) -> bool:
        """Whether a person may decide several calls in one interrupt."""
        return bool(self.by_tool) and self.mode == "batched"

    def find_reviews(self, calls: Sequence[Mapping[str, Any]], notes: Ledger) -> dict[str, dict[str, Any]]:
        """Return, by call id, how a person is asked about the calls of a reply.

        This is stored with the reply: an answer is judged by it, whatever build of the agent takes it.
        """
        settled = {*notes.get("todo_calls", ()), *notes.get("faults", {})}
        found: dict[str, dict[str, Any]] = {}
        for call in calls:
            review = self.by_tool.get(call["name"])
            if review is not None and call["id"] not in settled and review.covers(call):
                note = review.note_call(call)
                found[call["id"]] = note if self.mode == "batched" else {**note, "alone": True}
        return found

    def decide_together(
        self, calls: Sequence[dict[str, Any]], tools: Mapping[str, BaseTool]
    ) -> list[dict[str, Any]]:
        """Ask once about several calls, and return each with the decision on it."""
        request = build_calls_request(calls)

        def read(answer: object) -> list[Decision]:
            decisions = read_decisions(answer, request)
            for number, (call, decision) in enumerate(zip(calls, decisions, strict=True), 1):
                try:
                    check_edited_args(tools.get(call["name"]), decision)
                except OperationRefused as fault:
                    raise name_fault(fault, number, calls) from None
            return decisions

        decided: list[dict[str, Any]] = []
        for call, decision in zip(calls, ask_until_accepted(request, read), strict=True):
            decided.append({**strip_notes(call), "decision": asdict(decision)})
        return decided

    def decide_noted(
        self, call: dict[str, Any], tool: BaseTool | None, notes: Ledger
    ) -> tuple[dict[str, Any], ToolMessage | None]:
        """Decide a call as it was noted with its reply, and return what `apply_decision` returns.

        In `create_agent` this is the gate before the package's own tools that ask.
        """
        note = notes.get("reviews", {}).get(call["id"])
        if note is None:
            return call, None
        [decided] = self.decide_together([{**call, "review": note}], {call["name"]: tool} if tool else {})
        return self.apply_decision(decided, tool)

    def review_written(self, call: dict[str, Any], tools: Mapping[str, BaseTool]) -> dict[str, Any]:
        """Return a call that somebody wrote in the model's place, with its review, which nobody has noted."""
        review = self.by_tool.get(call["name"])
        if review is None or not review.covers(call):
            return call
        noted = {**call, "review": review.note_call(call)}
        return self.decide_together([noted], tools)[0] if self.mode == "batched" else noted

    def decide_alone(self, call: dict[str, Any], tool: BaseTool | None) -> Decision:
        """Ask about one call, in an interrupt of its own."""
        request = build_calls_request([call])

        def read(answer: object) -> Decision:
            return check_edited_args(tool, read_decision(answer, request))

        schema = build_answer_schema(call["name"], call["review"]["allowed"], tool)
        return ask_until_accepted(build_call_request(call), read, schema)

    def apply_decision(
        self, call: dict[str, Any], tool: BaseTool | None
    ) -> tuple[dict[str, Any], ToolMessage | None]:
        """Return a call as it is to run, with None; or with the result that takes its place.

        The decision came with the call, or is asked for now, if the call is put on its own.
        """
        plain = strip_notes(call)
        if "decision" in call:
            decision = Decision(**call["decision"])
        elif "review" in call:
            decision = self.decide_alone(call, tool)
        else:
            return plain, None
        match decision.kind:
            case "approve":
                return {**plain, "approved": True}, None
            case "edit":
                return {**plain, "args": dict(decision.args or {}), "approved": True}, None
            case "respond":
                return plain, tool_result(plain, read_choice(decision.words, plain["args"]))
        text = fill_prompt("call_rejected", "", self.words, words=quote_words(decision))
        return plain, tool_result(plain, f"Error: {text}", "error")

    def note_edited_args(self, written: Mapping[str, Any], ran: Mapping[str, Any], update: Any) -> Any:
        """Tell the model, in the call's result, with which arguments the call ran if a person edited them."""
        if written["args"] == ran["args"]:
            return update
        args = json.dumps(ran["args"], ensure_ascii=False, default=str)
        text = fill_prompt("call_edited", "", self.words, args=args)
        return update_results(update, ran["id"], partial(_prepend_text, text))


def find_asking_tools(tools: Iterable[Any]) -> dict[str, Review]:
    """Return the tools of the package that ask a person by themselves, and how."""
    found: dict[str, Review] = {}
    for tool in tools:
        if isinstance(tool, BaseTool) and (review := Review.from_metadata(tool.metadata)):
            found[tool.name] = review
    return found


def strip_notes(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call without what the graph noted about it."""
    return {key: call[key] for key in ("name", "args", "id", "type") if key in call}


def build_answer_schema(name: str, allowed: Collection[str], tool: BaseTool | None) -> dict[str, Any]:
    """Return the JSON schema of a decision on one call, for the clients of the mode `per_call`.

    LangGraph does not check answers against it, so that words and faulty decisions are answered in words.
    """
    args: Any = tool.tool_call_schema if tool is not None else {"type": "object"}
    if not isinstance(args, dict):
        args = args.model_json_schema()
    action = _object_schema(name={"const": name, "type": "string"}, args=args)
    text = {"type": "string"}
    details = {"edit": {"edited_action": action}, "reject": {"message": text}, "respond": {"message": text}}
    members: list[dict[str, Any]] = []
    for kind in KINDS:
        if kind in allowed:
            shape = _object_schema(type={"const": kind, "type": "string"}, **details.get(kind, {}))
            members.append({**shape, "required": ["type"]} if kind == "reject" else shape)
    return members[0] if len(members) == 1 else {"oneOf": members}


def _object_schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _prepend_text(text: str, result: ToolMessage) -> ToolMessage:
    content: Any = f"{text}\n\n{result.content}"
    if isinstance(result.content, list):
        content = [{"type": "text", "text": text}, *result.content]
    return result.model_copy(update={"content": content})


def check_edited_args(tool: BaseTool | None, decision: Decision) -> Decision:
    """Refuse an edit with arguments that the tool would not accept."""
    if decision.kind != "edit" or tool is None:
        return decision
    schema = tool.tool_call_schema
    if not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        if misfit := find_misfit(decision.args, schema):
            raise OperationRefused(f"invalid arguments: {misfit}")
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


def _parse_review(name: str, how: object) -> Review:
    """Read what `interrupt_on` says about one tool. Raises `ArgumentError`."""
    if how is True:
        return Review()
    config: Any = how if isinstance(how, Mapping) else {"allowed_decisions": how}
    allowed, description = config.get("allowed_decisions"), config.get("description", "")
    is_known = isinstance(allowed, list | tuple) and allowed and all(one in KINDS for one in allowed)
    if not is_known or not isinstance(description, str) or config.keys() - REVIEW_KEYS:
        raise ArgumentError(f"interrupt_on[{name!r}] must be {ACCEPTED_VALUES}, got {shorten(repr(how))}.")
    return Review(cast(tuple[DecisionKind, ...], tuple(dict.fromkeys(allowed))), description)
