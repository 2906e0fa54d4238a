"""What a person is asked to approve, and how answers are read."""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, Self, cast, get_args

from wakeloop.text.characters import fix_surrogates, shorten, to_one_line
from wakeloop.todos.items import OperationRefused

YES_WORDS = frozenset(("yes", "y", "ok", "okay", "sure", "approve", "approved", "accept", "true"))
NO_WORDS = frozenset(
    ("no", "n", "nope", "reject", "rejected", "deny", "denied", "decline", "declined", "refuse", "false")
)
# The words after these say what must not be done, so without the first one they are not a reason.
NEGATIONS = frozenset(("not", "don't", "dont", "never", "stop", "cancel", "abort"))
COURTESIES = frozenset(("please", "pls", "thanks", "thx", "thank", "you"))
APOSTROPHE = "\N{RIGHT SINGLE QUOTATION MARK}"  # as phones type it
_WORD = re.compile(rf"\w+(?:['{APOSTROPHE}]\w+)*")
_COURTESY = re.compile(rf"(?:{'|'.join(sorted(COURTESIES))}|[\s!-/:-@])*", re.IGNORECASE)
_SEPARATORS = " \t\r\n,.;:!-–—…"  # between a no and its reason


@dataclass(frozen=True)
class Words:
    """What an answer in words says; `reason` holds a person's words without the no that begins them."""

    kind: Literal["yes", "no", "unclear"]
    reason: str = ""
    goes_on: bool = False  # it begins with a yes, and then says more


def read_words(text: str) -> Words:
    """Read an answer in words. A yes stands alone, apart from courtesies; a no may be followed by a reason.

    >>> read_words("Yes, please!").kind
    'yes'
    >>> read_words("no, not there").reason
    'not there'
    >>> read_words("yes, but not now").kind
    'unclear'
    """
    text = fix_surrogates(text).strip()
    if not text:
        return Words("no")
    found = [match for match in _WORD.finditer(text) if _fold(match) not in COURTESIES]
    if not found:
        return Words("unclear")
    first, rest = _fold(found[0]), found[1:]
    if first in YES_WORDS:
        is_alone = not rest and "?" not in text
        return Words("yes") if is_alone else Words("unclear", goes_on=bool(rest))
    if first in NEGATIONS or (first == "do" and rest and _fold(rest[0]) == "not"):
        return Words("no", text)
    if first in NO_WORDS:
        reason = text[found[0].end() :].lstrip(_SEPARATORS)
        is_reason = rest or not _COURTESY.fullmatch(reason)
        return Words("no", reason if is_reason else "")
    return Words("unclear")


def read_plain_answer(answer: object) -> Words:
    """Read an answer that is not a decision: words, True or False, or a mapping with `approved` or words."""
    if isinstance(answer, Mapping):
        said = next((answer[key] for key in ("message", "reason", "text") if answer.get(key)), "")
        approved = answer.get("approved")
        if approved is True:
            return Words("yes")
        if approved is False:
            return Words("no", fix_surrogates(said).strip() if isinstance(said, str) else "")
        return read_plain_answer(said) if not answer or said else Words("unclear")
    if isinstance(answer, str):
        return read_words(answer)
    if isinstance(answer, bool):
        return Words("yes" if answer else "no")
    is_empty = answer is None or (isinstance(answer, Sequence) and not answer)
    return Words("no" if is_empty else "unclear")


def _fold(word: "re.Match[str]") -> str:
    return unicodedata.normalize("NFKC", word[0]).casefold().replace(APOSTROPHE, "'")


DecisionKind = Literal["approve", "edit", "reject", "respond"]
KINDS: tuple[DecisionKind, ...] = get_args(DecisionKind)
PLAN_ACTION = "approve_plan"  # the action that a person decides where the list is put
REVIEW_KEY = "wakeloop_review"  # in the metadata of a tool that asks a person before each call
BOTH_ARE_WORDS = "its words would approve one call and answer another"


@dataclass(frozen=True)
class Decision:
    """What a person decided: `args` of an edit, `words` of a rejection or of an answer in place of a tool."""

    kind: DecisionKind
    args: Mapping[str, Any] | None = None
    words: str = ""


@dataclass(frozen=True)
class Review:
    """How a person is asked about a tool's calls.

    `described_by` names the argument that describes a call, such as the question of a tool that asks one.
    """

    allowed: tuple[DecisionKind, ...] = KINDS
    description: str = ""
    on: str = "approval"
    described_by: str | None = None

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any] | None) -> Self | None:
        """Return the review that a tool of the package asks for, or None."""
        found = (metadata or {}).get(REVIEW_KEY)
        return cls(**{**found, "allowed": tuple(found["allowed"])}) if found else None

    def to_metadata(self) -> dict[str, Any]:
        """Return the metadata of a tool whose calls are reviewed this way."""
        return {REVIEW_KEY: {**vars(self), "allowed": list(self.allowed)}}

    def covers(self, call: Mapping[str, Any]) -> bool:
        """Tell whether a person decides a call. The tool itself refuses a question without words."""
        question = call["args"].get(self.described_by)
        return not isinstance(question, str) or bool(question.strip())

    def note_call(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is noted of a call that waits: an answer is judged by this, whoever takes it."""
        question, text = call["args"].get(self.described_by), self.description or f"Run {call['name']}?"
        if isinstance(question, str) and question.strip():
            text = describe_question(question, call["args"])
        return {"allowed": list(self.allowed), "description": text, "on": self.on}


def build_approval_request(
    name: str,
    args: Mapping[str, Any],
    description: str,
    allowed: Sequence[DecisionKind],
    on: str = "approval",
) -> dict[str, Any]:
    """Return the value of an interrupt about one action, in the shape that chat UIs of LangChain render."""
    return {
        "action_requests": [{"name": name, "args": dict(args), "description": description}],
        "review_configs": [{"action_name": name, "allowed_decisions": list(allowed)}],
        "on": on,
    }


def build_calls_request(calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the value of one interrupt about several calls, each with its note under `review`."""
    asked: dict[str, Any] = {"action_requests": [], "review_configs": [], "on": "human"}
    for call in calls:
        note = call["review"]
        one = build_approval_request(call["name"], call["args"], note["description"], note["allowed"])
        asked["action_requests"] += one["action_requests"]
        asked["review_configs"] += one["review_configs"]
        if note["on"] == "approval":
            asked["on"] = "approval"
    return asked


def build_call_request(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of an interrupt about one call, in the shape of LangChain's mode `per_call`."""
    return {
        "type": "tool_approval",
        "tool_call_id": call["id"],
        "name": call["name"],
        "args": dict(call["args"]),
        "description": call["review"]["description"],
        "on": call["review"]["on"],
    }


def build_question(question: str, choices: Sequence[str] = ()) -> dict[str, Any]:
    r"""Return the value of the interrupt with which a person is asked; any words are an answer.

    >>> build_question("Which one?", ["old", "all"])["action_requests"][0]["description"]
    'Which one?\n  1. old\n  2. all'
    """
    args: dict[str, Any] = {"question": question}
    if choices:
        args["choices"] = list(choices)
    described = describe_question(question, args)
    return build_approval_request("ask_user", args, described, ("respond",), on="human")


def describe_question(question: str, args: Mapping[str, Any]) -> str:
    """Return a question with its numbered choices, if it has some."""
    choices = enumerate(find_choices(args), 1)
    return "\n".join([question, *(f"  {number}. {to_one_line(choice)}" for number, choice in choices)])


def find_choices(args: Mapping[str, Any]) -> list[str]:
    """Return the choices among a call's arguments."""
    given = args.get("choices")
    return [one for one in given if isinstance(one, str)] if isinstance(given, list) else []


def read_choice(words: str, args: Mapping[str, Any]) -> str:
    """Return the choice that an answer names by its number; any other words are the answer as they are."""
    choices, typed = find_choices(args), words.strip()
    if typed in choices or not typed.isascii() or not typed.isdecimal():
        return words
    number = int(typed[:9])
    return choices[number - 1] if 0 < number <= len(choices) else words


def repeat_request(asked: Mapping[str, Any], fault: str) -> dict[str, Any]:
    """Return a request to ask again, with a sentence on why its answer was not accepted."""
    error = f"The answer was not accepted: {fault}."
    if "action_requests" not in asked:
        return {**asked, "description": f"{error}\n\n{asked['description']}", "error": error}
    first, *others = asked["action_requests"]
    described = {**first, "description": f"{error}\n\n{first['description']}"}
    return {**asked, "action_requests": [described, *others], "error": error}


def read_decision(answer: object, asked: Mapping[str, Any]) -> Decision:
    """Read the answer to a request about one action."""
    [decision] = read_decisions(answer, asked)
    return decision


def read_decisions(answer: object, asked: Mapping[str, Any]) -> list[Decision]:
    """Read the answer to a request: decisions in LangChain's shape, also as JSON, or words.

    Nothing runs on a misreading. Raises `OperationRefused` for words that are neither a yes nor a no, for a
    wrong number of decisions, and for one that is not allowed or not complete.
    """
    actions, configs = asked["action_requests"], asked["review_configs"]
    read = _read_json(answer)
    given = _find_decisions(read, len(actions))
    if given is None:
        return _read_words(answer, read, actions, configs)
    decisions: list[Decision] = []
    for number, (one, action, config) in enumerate(zip(given, actions, configs, strict=True), 1):
        try:
            decisions.append(_read_one(one, action["name"], config["allowed_decisions"]))
        except OperationRefused as fault:
            raise name_fault(fault, number, actions) from None
    return decisions


def name_fault(fault: OperationRefused, number: int, actions: Sequence[Any]) -> OperationRefused:
    """Return the fault of one decision; among several, with its number."""
    return fault if len(actions) == 1 else OperationRefused(f"decision {number}: {fault}")


def runs_call(decision: Mapping[str, Any]) -> bool:
    """Tell whether a call runs after a decision, as it is noted with the call."""
    return decision["kind"] in ("approve", "edit")


def quote_words(decision: Decision) -> str:
    """Return a person's words as the model reads them after a rejection; "" without any."""
    return f' They said: "{decision.words}"' if decision.words else ""


def _read_one(given: Mapping[str, Any], name: str, allowed: Sequence[str]) -> Decision:
    kind = given.get("type")
    if kind not in allowed:
        raise OperationRefused(
            f"{name} cannot be decided by {shorten(repr(kind))}; allowed are {', '.join(allowed)}"
        )
    words = given.get("message")
    if kind == "respond" and not isinstance(words, str):
        raise OperationRefused("a decision to respond needs its text as message")
    if words is not None and not isinstance(words, str):
        raise OperationRefused(f"message must be a string, not {shorten(repr(words))}")
    args = _read_edited_args(given, name) if kind == "edit" else None
    return Decision(cast(DecisionKind, kind), args, fix_surrogates(words or ""))


def _find_decisions(answer: object, count: int) -> Sequence[Mapping[str, Any]] | None:
    """Return the decisions that an answer holds, one per action; None if it is in words."""
    if isinstance(answer, list) and answer and isinstance(answer[0], Mapping) and "type" in answer[0]:
        answer = {"decisions": answer}
    if not isinstance(answer, Mapping):
        return None
    if "decisions" not in answer:
        if "type" not in answer:
            return None
        answer = {"decisions": [answer]}
    decisions = answer["decisions"]
    if not isinstance(decisions, list) or not all(isinstance(one, Mapping) for one in decisions):
        decisions = []
    if len(decisions) != count:
        example = ", ".join(["{'type': 'approve'}"] * min(count, 3))
        how_many = "one decision" if count == 1 else f"{count} decisions, in the order of the calls"
        raise OperationRefused(f"decisions must be a list of {how_many}, such as [{example}]")
    return decisions


def _looks_like_json(answer: object) -> bool:
    return isinstance(answer, str) and answer.lstrip().startswith(("{", "["))


def _read_json(answer: object) -> object:
    """Return what a JSON string holds if it is meant as an answer; else the answer, which is words."""
    if not _looks_like_json(answer):
        return answer
    try:
        read = json.loads(cast(str, answer))
    except (ValueError, RecursionError):
        return answer
    first = read[0] if isinstance(read, list) and read else read
    is_decision = isinstance(first, Mapping) and ("decisions" in first or first.get("type") in KINDS)
    is_meant = is_decision or (isinstance(read, Mapping) and "approved" in read)
    return read if is_meant else answer


def _read_words(
    answer: object, read: object, actions: Sequence[Any], configs: Sequence[Any]
) -> list[Decision]:
    """Read words: as a response where nothing else is allowed, otherwise as a yes or a no to all."""
    takes_response = [config["allowed_decisions"] == ["respond"] for config in configs]
    said: str = "" if answer is None else fix_surrogates(str(answer))
    if all(takes_response):
        return [Decision("respond", words=said)] * len(configs)
    words = Words("unclear") if _looks_like_json(read) else read_plain_answer(read)
    is_plan = actions[0]["name"] == PLAN_ACTION
    if words.kind == "unclear" and is_plan and _is_prose(answer) and not words.goes_on:
        words = Words("no", said.strip())
    kind: DecisionKind = "approve" if words.kind == "yes" else "reject"
    if words.kind == "unclear":
        why = "a yes with more words may be a no" if words.goes_on else "it is neither a yes nor a no"
        raise OperationRefused(f"{why}; {_list_choices(configs)}")
    if kind == "approve" and any(takes_response):
        raise OperationRefused(f"{BOTH_ARE_WORDS}; {_list_choices(configs)}")
    for responds, config in zip(takes_response, configs, strict=True):
        if not responds and kind not in config["allowed_decisions"]:
            raise OperationRefused(_list_choices(configs))
    answers = {True: Decision("respond", words=said), False: Decision(kind, words=words.reason)}
    return [answers[responds] for responds in takes_response]


def _is_prose(answer: object) -> bool:
    """Whether an answer is words, and not a decision with a typing error. "[1] first" is words."""
    return isinstance(answer, str) and re.match(r"\s*(\[\s*)?\{", answer) is None


def _list_choices(configs: Sequence[Any]) -> str:
    """Return what may be answered, in words and as decisions."""
    allowed = dict.fromkeys(chain.from_iterable(config["allowed_decisions"] for config in configs))
    choices = []
    if all("approve" in config["allowed_decisions"] for config in configs):
        choices.append("yes")
    if all({"reject", "respond"} & set(config["allowed_decisions"]) for config in configs):
        choices.append("no with your reason")
    count = "a decision" if len(configs) == 1 else f"{len(configs)} decisions"
    choices.append(f"{count} of the type {', '.join(allowed)}")
    return f"answer {', or '.join(choices)}"


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
