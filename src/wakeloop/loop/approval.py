"""What a person is asked to approve, and how answers are read."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from wakeloop.text.characters import fix_surrogates, shorten, to_one_line
from wakeloop.todos.items import OperationRefused

DecisionKind = Literal["approve", "edit", "reject", "respond"]
KINDS: tuple[DecisionKind, ...] = get_args(DecisionKind)
PLAN_ACTION = "approve_plan"  # the action that a person decides where the list is put
YES = ("y", "yes")
NO = ("", "n", "no")


@dataclass(frozen=True)
class Decision:
    """What a person decided: `args` of an edit, `words` of a rejection or of an answer in place of a tool."""

    kind: DecisionKind
    args: Mapping[str, Any] | None = None
    words: str = ""


@dataclass(frozen=True)
class Review:
    """How a person is asked about a tool's calls."""

    allowed: tuple[DecisionKind, ...] = KINDS
    description: str = ""

    def build_request(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value of the interrupt for a call."""
        return build_approval_request(
            call["name"], call["args"], self.description or f"Run {call['name']}?", self.allowed
        )


def build_approval_request(
    name: str,
    args: Mapping[str, Any],
    description: str,
    allowed: Sequence[DecisionKind],
    on: str = "approval",
) -> dict[str, Any]:
    """Return the value of an interrupt, in the shape that chat UIs of LangChain render."""
    return {
        "action_requests": [{"name": name, "args": dict(args), "description": description}],
        "review_configs": [{"action_name": name, "allowed_decisions": list(allowed)}],
        "on": on,
    }


def repeat_request(asked: Mapping[str, Any], fault: str) -> dict[str, Any]:
    """Return a request to ask again, with a sentence on why its answer was not accepted."""
    [action] = asked["action_requests"]
    error = f"The answer was not accepted: {fault}."
    described = {**action, "description": f"{error}\n\n{action['description']}"}
    return {**asked, "action_requests": [described], "error": error}


def read_decision(answer: object, asked: Mapping[str, Any]) -> Decision:
    """Read the answer to a request: a decision in LangChain's shape, also as JSON, or plain words.

    A plain yes (`True`, "y", "yes", `{"approved": True}`) approves. Anything else that is not a decision is a
    no in the person's words, or the answer itself if the tool asked for one: nothing runs on a misreading.
    Raises `OperationRefused` for a decision that is not allowed or not complete.
    """
    [action], [config] = asked["action_requests"], asked["review_configs"]
    allowed: Sequence[str] = config["allowed_decisions"]
    given = _find_decision(answer)
    if given is None:
        return _read_plain_answer(answer, allowed)
    kind = given.get("type")
    if kind not in allowed:
        raise OperationRefused(
            f"{action['name']} cannot be decided by {shorten(repr(kind))}; allowed are {', '.join(allowed)}"
        )
    words = given.get("message")
    if kind == "respond" and not isinstance(words, str):
        raise OperationRefused("a decision to respond needs its text as message")
    if words is not None and not isinstance(words, str):
        raise OperationRefused(f"message must be a string, not {shorten(repr(words))}")
    args = _read_edited_args(given, action["name"]) if kind == "edit" else None
    return Decision(cast(DecisionKind, kind), args, fix_surrogates(words or ""))


def quote_words(decision: Decision) -> str:
    """Return a person's words as the model reads them after a rejection; "" without any."""
    return f' They said: "{decision.words}"' if decision.words else ""


def _find_decision(answer: object) -> Mapping[str, Any] | None:
    """Return the one decision that an answer holds; None if it is in plain words."""
    if isinstance(answer, str) and answer.lstrip().startswith(("{", "[")):
        answer = _read_json_decision(answer)
    if isinstance(answer, list) and answer and isinstance(answer[0], Mapping) and "type" in answer[0]:
        answer = {"decisions": answer}
    if not isinstance(answer, Mapping):
        return None
    if "decisions" not in answer:
        return answer if "type" in answer else None
    decisions = answer["decisions"]
    if not isinstance(decisions, list) or len(decisions) != 1 or not isinstance(decisions[0], Mapping):
        raise OperationRefused("decisions must be a list of one decision, such as [{'type': 'approve'}]")
    return decisions[0]


def _read_json_decision(answer: str) -> object:
    """Return what a JSON string holds if it is meant as a decision; else None, since it is plain words."""
    try:
        read = json.loads(answer)
    except (ValueError, RecursionError):
        return None
    first = read[0] if isinstance(read, list) and read else read
    is_meant = isinstance(first, Mapping) and ("decisions" in first or first.get("type") in KINDS)
    return read if is_meant else None


def _read_plain_answer(answer: object, allowed: Sequence[str]) -> Decision:
    """Read a plain answer as a yes, a no, or the answer for a tool that asks."""
    if "approve" in allowed and _is_yes(answer):
        return Decision("approve")
    if "respond" in allowed and "approve" not in allowed:
        return Decision("respond", words=fix_surrogates(str(answer)))
    if "reject" not in allowed:
        raise OperationRefused(f"it needs a decision, such as {{'type': {allowed[0]!r}}}")
    if isinstance(answer, Mapping):
        answer = answer.get("message") or answer.get("reason") or answer.get("text")
    words = fix_surrogates(answer.strip()) if isinstance(answer, str) else ""
    if words.lower() in NO:  # a bare "no" is not a reason
        words = ""
    return Decision("reject", words=words)


def _is_yes(answer: object) -> bool:
    """Tell whether the person clearly said yes."""
    if isinstance(answer, Mapping):
        return answer.get("approved") is True
    return answer is True or (isinstance(answer, str) and answer.strip().lower() in YES)


def _read_edited_args(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    action = given.get("edited_action")
    if not isinstance(action, Mapping) or not isinstance(action.get("args"), Mapping):
        raise OperationRefused(f"a decision to edit needs edited_action, with the name {name!r} and args")
    if action.get("name", name) != name:
        other = shorten(to_one_line(str(action["name"])))
        raise OperationRefused(f"an edit changes the arguments of {name}, and cannot turn it into {other}")
    for key in action["args"]:
        if not isinstance(key, str):
            raise OperationRefused(f"an edit names each argument by a string, not by {shorten(repr(key))}")
    return cast(Mapping[str, Any], fix_surrogates(dict(action["args"])))
