"""The page about models, row by row: how each reply is classified, and how a call is forbidden or forced."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk

from wakeloop.model.finish_reasons import (
    FINISH_REASONS,
    UNREADABLE_CALL_ERRORS,
    is_unreadable_call,
    promises_call,
    reply_problem,
)
from wakeloop.model.tool_choice import TOOL_CHOICES, ToolChoices

PAGE = (Path(__file__).parents[3] / "docs" / "models.md").read_text(encoding="utf-8")
ROWS = re.findall(
    r"^\| [^|]*\| `(\w+)`(?: block)? \| (.+?) \| (cut|refused|unfit|promised) \| (?:tried|read) \|$",
    PAGE,
    re.MULTILINE,
)
DEEPER = {
    "incomplete_details": lambda sign: {"incomplete_details": {"reason": sign}, "status": "incomplete"},
    "prompt_feedback": lambda _: {"prompt_feedback": {"block_reason": 2}},
}


def reply(where: str, sign: str) -> AIMessage:
    word = sign.strip("`")
    if where == "refusal":
        return AIMessage("", additional_kwargs={"refusal": "No."})
    told: Any = DEEPER[where](word) if where in DEEPER else {where: word}
    return AIMessage("Half", response_metadata=told)


@pytest.mark.parametrize(("where", "sign", "taken"), ROWS, ids=["-".join(row) for row in ROWS])
def test_each_row_of_the_table(where: str, sign: str, taken: str) -> None:
    found = reply(where, sign)
    assert reply_problem(found) == (None if taken == "promised" else taken)
    assert promises_call(found) == (taken in ("promised", "unfit"))


def test_a_reason_repeated_in_a_stream() -> None:
    def chunk(reason: str) -> AIMessageChunk:
        return AIMessageChunk("Half", response_metadata={"finish_reason": reason})

    assert promises_call(chunk("tool_calls") + chunk("tool_calls"))
    assert reply_problem(chunk("length") + chunk("length") + chunk("length")) == "cut"
    assert reply_problem(chunk("stop") + chunk("stop")) is None


def test_the_page_lists_every_sign() -> None:
    on_page = {sign.strip("`").lower() for _, sign, _ in ROWS}
    assert set(FINISH_REASONS) <= on_page
    assert len(ROWS) > 30


def test_a_refusal_in_a_block() -> None:
    assert reply_problem(AIMessage([{"type": "refusal", "refusal": "No."}])) == "refused"


@pytest.mark.parametrize(
    "told", [{}, {"finish_reason": "stop"}, {"stop_reason": "end_turn"}, {"finish_reason": 1}]
)
def test_a_complete_reply_has_no_sign(told: Any) -> None:
    assert reply_problem(AIMessage("x", response_metadata=told, additional_kwargs={"refusal": None})) is None


CLIENT = r"^\| `((?:langchain_|wakeloop)\w*\.\w+)`[^|]*\| (not set|`[^`]+`) \| `([^`]+)` \|"


def test_the_page_lists_every_client_and_how_it_forbids_and_forces_a_call() -> None:
    on_page = {}
    for name, none, one in re.findall(CLIENT, PAGE, re.MULTILINE):
        no_call = None if none == "not set" else json.loads(none.strip("`"))
        on_page[name] = ToolChoices(no_call, json.loads(one))
    assert on_page == dict(TOOL_CHOICES)


SAID = re.findall(r"^\| [^|]*\| `([^`]+)` \| (5xx|any) \| (?:tried|read) \|$", PAGE, re.MULTILINE)


class Failed(Exception):  # noqa: N818 - a client's
    """What a client raises for a status."""

    def __init__(self, words: str, status: int | None) -> None:
        super().__init__(f"Error: {words} - at column 74")
        self.status_code = status


def test_the_page_lists_every_phrase_for_a_call_that_a_server_could_not_read() -> None:
    assert {words.lower(): statuses == "any" for words, statuses in SAID} == dict(UNREADABLE_CALL_ERRORS)


@pytest.mark.parametrize(("words", "statuses"), SAID)
def test_a_call_that_the_server_could_not_read(words: str, statuses: str) -> None:
    fit = [status for status in (None, -1, 400, 422, 500, 503) if is_unreadable_call(Failed(words, status))]
    assert fit == [None, -1, *([400, 422] if statuses == "any" else []), 500, 503]


def test_other_errors_are_not_unreadable_calls() -> None:
    assert not is_unreadable_call(None)
    assert not is_unreadable_call(KeyboardInterrupt("error parsing tool call"))
    assert not is_unreadable_call(Failed("Failed to load the model", 500))
