"""The table of answers in words: what each does to the calls that a person is asked about."""

from __future__ import annotations

from typing import Any

import pytest
from answers_in_words import ASKED_AGAIN, NO, YES

from wakeloop.loop.approval import build_calls_request, read_decisions
from wakeloop.todos.items import OperationRefused


def asked(*allowed: Any, name: str = "send") -> dict[str, Any]:
    """Return a question about two calls."""
    note = {
        "allowed": allowed or ("approve", "edit", "reject", "respond"),
        "description": "Run?",
        "on": "approval",
    }
    return build_calls_request(
        [{"name": name, "args": {"to": one}, "id": one, "review": note} for one in "ab"]
    )


def test_the_table_is_long_enough() -> None:
    rows = [*YES, *(text for text, _ in NO), *ASKED_AGAIN]
    assert len(rows) == len(set(rows)) >= 60


@pytest.mark.parametrize("text", YES)
def test_a_yes_approves_all(text: str) -> None:
    assert [one.kind for one in read_decisions(text, asked())] == ["approve"] * 2


@pytest.mark.parametrize(("text", "reason"), NO)
def test_a_no_rejects_all_and_quotes_the_answer(text: str, reason: str) -> None:
    assert [(one.kind, one.words) for one in read_decisions(text, asked())] == [("reject", reason)] * 2


@pytest.mark.parametrize("text", ASKED_AGAIN)
def test_anything_else_is_asked_again(text: str) -> None:
    with pytest.raises(
        OperationRefused, match="answer yes, or no with your reason, or 2 decisions of the type"
    ):
        read_decisions(text, asked())


@pytest.mark.parametrize("text", [*YES, *(text for text, _ in NO), *ASKED_AGAIN])
def test_an_answer_in_words_is_the_response_if_nothing_else_is_allowed(text: str) -> None:
    assert [(one.kind, one.words) for one in read_decisions(text, asked("respond"))] == [
        ("respond", text)
    ] * 2


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        *((True, "approve"), (False, "reject"), (None, "reject"), ({}, "reject"), ([], "reject")),
        *(({"approved": True}, "approve"), ({"approved": True, "args": {"to": "c"}}, "approve")),
        *(
            ({"approved": False, "reason": "no"}, "reject"),
            ({"message": "no"}, "reject"),
            (1, None),
            (0, None),
        ),
        *((["y"], None), ([True], None), ({"approved": 1}, None), ({"approved": "true"}, None)),
        *(({"message": "hm"}, None), ({"yes": True}, None), (1.5, None)),
    ],
)
def test_an_answer_that_is_not_a_string(answer: Any, kind: str | None) -> None:
    if kind is None:
        with pytest.raises(OperationRefused):
            read_decisions(answer, asked())
    else:
        assert [one.kind for one in read_decisions(answer, asked())] == [kind] * 2


@pytest.mark.parametrize(
    ("text", "kinds"), [("yes", None), ("hm", None), ("no, blue", ["reject", "respond"])]
)
def test_a_question_next_to_a_call_to_approve(text: str, kinds: Any) -> None:
    """A yes could be meant for either, so it runs nothing."""
    first, second = asked(), asked("respond")
    both = {key: [first[key][0], second[key][0]] for key in ("action_requests", "review_configs")}
    if kinds is None:
        with pytest.raises(OperationRefused):
            read_decisions(text, both)
    else:
        assert [one.kind for one in read_decisions(text, both)] == kinds
