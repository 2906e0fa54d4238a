"""What an answer to a question of the package means, depending on the allowed decisions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wakeloop.loop.approval import KINDS, Decision, build_approval_request, read_decision, repeat_request
from wakeloop.todos.items import OperationRefused

ASKING: Any = ("respond",)


def edited(args: Any) -> dict[str, Any]:
    return {"type": "edit", "edited_action": {"name": "send", "args": args}}


NEITHER: Any = [((), one) for one in ("[1] is it", '["a"]', '{"a": 1}', '{"type": "accept"}', "{no JSON")]
NEITHER += [((), "[" * 100_000)]
UNCLEAR = (
    "it is neither a yes nor a no; answer yes, or no with your reason, or a decision of the type approve, "
    "edit, reject, respond"
)
EDIT = edited({"to": "b"})


def asked(*allowed: Any) -> dict[str, Any]:
    return build_approval_request("send", {"to": "a"}, "Send it?", allowed or KINDS)


@pytest.mark.parametrize(
    ("allowed", "answer", "decision"),
    [
        ((), {"decisions": [EDIT]}, Decision("edit", {"to": "b"})),
        ((), EDIT, Decision("edit", {"to": "b"})),
        ((), [EDIT], Decision("edit", {"to": "b"})),
        ((), json.dumps([EDIT]), Decision("edit", {"to": "b"})),
        ((), json.dumps({"decisions": [EDIT]}), Decision("edit", {"to": "b"})),
        ((), {"type": "reject"}, Decision("reject")),
        ((), "not so", Decision("reject", words="not so")),
        (ASKING, '{"type": "accept"}', Decision("respond", words='{"type": "accept"}')),
        (ASKING, "yes", Decision("respond", words="yes")),
        (ASKING, "", Decision("respond", words="")),
        (ASKING, 7, Decision("respond", words="7")),
        (ASKING, {"type": "respond", "message": "blue"}, Decision("respond", words="blue")),
        ((), "no \ud800", Decision("reject", words="\ufffd")),
        (ASKING, "\ud800", Decision("respond", words="\ufffd")),
        ((), r'{"type": "respond", "message": "\ud800"}', Decision("respond", words="\ufffd")),
        ((), edited({"to": ["\ud800"]}), Decision("edit", {"to": ["\ufffd"]})),
    ],
)
def test_an_answer_is_read(allowed: Any, answer: Any, decision: Decision) -> None:
    assert read_decision(answer, asked(*allowed)) == decision


@pytest.mark.parametrize(
    ("allowed", "answer", "sentence"),
    [
        (
            (),
            {"type": "accept"},
            "send cannot be decided by 'accept'; allowed are approve, edit, reject, respond",
        ),
        ((), {"type": None}, "send cannot be decided by None; allowed are approve, edit, reject, respond"),
        (ASKING, {"type": "approve"}, "send cannot be decided by 'approve'; allowed are respond"),
        ((), {"decisions": EDIT}, "decisions must be a list of one decision, such as [{'type': 'approve'}]"),
        ((), [EDIT, EDIT], "decisions must be a list of one decision, such as [{'type': 'approve'}]"),
        ((), {"type": "reject", "message": 5}, "message must be a string, not 5"),
        (
            (),
            {"type": "edit", "edited_action": {"args": []}},
            "a decision to edit needs edited_action, with the name 'send' and args",
        ),
        ((), edited({1: "b"}), "an edit names each argument by a string, not by 1"),
        (("edit",), "y", "answer a decision of the type edit"),
        (("reject", "edit"), "y", "answer no with your reason, or a decision of the type reject, edit"),
        *((allowed, answer, UNCLEAR) for allowed, answer in NEITHER),
    ],
)
def test_an_invalid_decision_is_refused_in_one_sentence(allowed: Any, answer: Any, sentence: str) -> None:
    with pytest.raises(OperationRefused) as refused:
        read_decision(answer, asked(*allowed))
    assert str(refused.value) == sentence


PLAN = build_approval_request("approve_plan", {"todos": []}, "Continue?", ("approve", "edit", "reject"))


@pytest.mark.parametrize(
    "answer",
    ['{"decisions": [}', "{'decisions': [{'type': 'approve'}]}", ' [{"type": "aprove"}', '{"todos": ["a"]}'],
)
def test_a_decision_with_a_typo_does_not_reject_a_plan(answer: str) -> None:
    choices = "answer yes, or no with your reason, or a decision of the type approve, edit, reject"
    with pytest.raises(OperationRefused) as refused:
        read_decision(answer, PLAN)
    assert str(refused.value) == f"it is neither a yes nor a no; {choices}"


@pytest.mark.parametrize("answer", ["[1] first", '["a"]', "smaller steps {please}"])
def test_words_reject_a_plan(answer: str) -> None:
    assert read_decision(answer, PLAN) == Decision("reject", words=answer)


def test_a_repeated_question_is_the_same_request_plus_the_sentence() -> None:
    first = asked()
    twice = repeat_request(first, "no")
    action = {**first["action_requests"][0], "description": "The answer was not accepted: no.\n\nSend it?"}
    assert twice == {**first, "action_requests": [action], "error": "The answer was not accepted: no."}
    assert first == asked()
