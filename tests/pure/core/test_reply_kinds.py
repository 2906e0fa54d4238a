"""Rule 22: how a reply without calls is classified by its text and its stop sign."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from printed_forms import ANSWERS, FORMS, MALFORMED

from wakeloop.model.printed_calls import PrintedCall, find_printed_calls
from wakeloop.model.reply_kinds import ReplyEnd, classify_reply
from wakeloop.prompts import fill_prompt
from wakeloop.text.thoughts import answer_text, strip_thoughts

TOOLS = frozenset(("look", "todo_list", "todo_update"))
LOOK = PrintedCall("look", {"path": "a"})


def classify(message: AIMessage | str, **more: Any) -> ReplyEnd:
    given = AIMessage(message) if isinstance(message, str) else message
    return classify_reply(given, TOOLS, {}, lambda text: text == "Stored 3 items, [1] to [3].", **more)


def test_every_family_prints_its_calls() -> None:
    missed = []
    for name, form in FORMS.items():
        for before in ("", "Let me look first.\n\n"):
            text = before + form
            whole = "in Python's form" in name and before  # those only if they are the whole reply
            end = classify(text)
            expected: Any = ("printed", (LOOK,), before.rstrip())
            if not whole and (end.kind, end.printed, end.before) != expected:
                missed.append((name, before, end))
    assert missed == []


def test_the_page_lists_the_families() -> None:
    page = (Path(__file__).parents[3] / "docs" / "models.md").read_text(encoding="utf-8")
    table = page.partition("| models | form |\n|---|---|\n")[2].partition("\n\n")[0]
    on_page = {row.split(" | ")[0].strip("| ") for row in table.splitlines()} - {"any"}
    tried = " / ".join([*FORMS, *MALFORMED])
    assert len(on_page) > 20
    assert [name for name in on_page if name not in tried] == []


def test_printed_arguments_that_are_not_json_are_malformed_calls() -> None:
    found = {name: classify(form) for name, form in MALFORMED.items()}
    assert [name for name, end in found.items() if end.kind != "printed"] == []
    assert all(
        call.name == "look" and isinstance(call.args, str) for end in found.values() for call in end.printed
    )


def test_calls_after_an_empty_list_are_not_read() -> None:
    assert classify('<tool_call>[] look(path="a")').kind == "answer"


def test_no_answer_is_refused() -> None:
    assert len(ANSWERS) >= 40
    assert [(text, classify(text).kind) for text in ANSWERS if classify(text).kind != "answer"] == []
    assert [
        text for text in ANSWERS if classify(AIMessage([{"type": "text", "text": text}])).text != text
    ] == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (f"{FORMS['JSON alone']}\n{FORMS['JSON alone']}", 2),
        (f"{FORMS['fenced JSON']}\n\n{FORMS['fenced JSON']}\nlook({{}})", 3),
        (f"{FORMS['Qwen, Hermes']}\n{FORMS['Qwen, Hermes']}<|im_end|>", 2),
        ('[TOOL_CALLS]look{"path": "a"}[TOOL_CALLS]todo_list{}', 2),
        ("<tool_call>todo_list</tool_call>", 1),
        ('Both:\n{"name": "search", "arguments": {}}\n{"name": "look", "arguments": {}}', 1),
    ],
)
def test_several_in_a_row_count(text: str, count: int) -> None:
    assert len(find_printed_calls(text, TOOLS)[1]) == count


def test_long_replies_are_read_fast() -> None:
    texts = (
        '{"a": ' * 5_000,
        "{\n" * 20_000 + '"look"',
        "<tool_call>" * 20_000 + "look at it",
        "look({" * 20_000,
        "```json\n{}\n```\n" * 5_000 + "look",
        f"{json.dumps({'look': list(range(50_000))}, indent=1)}\n",
        "<think>" * 20_000 + "look",
    )
    began = time.perf_counter()
    kinds = [classify(text).kind for text in texts]
    assert kinds == [*["answer"] * 6, "empty"]
    assert time.perf_counter() - began < 5


THOUGHTS = (
    "<think>I should look</think>",
    "<think>\nI should look",
    "<thinking>a</thinking>\n<thinking>b</thinking>",
    "I should look.\n</think>",
    "[THINK]hm[/THINK]",
    "◁think▷hm◁/think▷",
    "<|channel|>analysis<|message|>We need to look.<|end|>",
    "<seed:think>hm</seed:think>",
    "<|START_THINKING|>hm<|END_THINKING|><|im_end|>",
)


@pytest.mark.parametrize("text", THOUGHTS)
def test_thoughts_alone_are_an_empty_reply_and_never_part_of_an_answer(text: str) -> None:
    assert classify(text) == ReplyEnd("empty", "")
    if "\nI should look" not in text:  # this one never ends
        assert answer_text(AIMessage(f"{text.removesuffix('<|im_end|>')}\n\nParis.")) == "Paris."


def test_a_final_channel_is_the_answer() -> None:
    final = "<|start|>assistant<|channel|>final<|message|>Paris.<|return|>"
    assert answer_text(AIMessage(f"<|channel|>analysis<|message|>Hm.<|end|>{final}")) == "Paris."
    assert strip_thoughts("Paris. <think>a</think>") == "Paris. <think>a</think>"


@pytest.mark.parametrize(
    "message",
    [
        AIMessage([{"type": "thinking", "thinking": "hm", "signature": "x"}]),
        AIMessage([{"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}]),
        AIMessage([{"reasoning_content": {"text": "hm"}, "type": "reasoning_content"}]),
        AIMessage("", additional_kwargs={"reasoning_content": "hm"}),
        *map(AIMessage, ("", " \n", "<|im_end|>", "[no text]", "[continued]", "**[continued]**")),
        AIMessage("[continued]\n\n[no text]"),
        AIMessage("[Interrupted]"),
        *map(
            AIMessage,
            ("[no text] [no text]", "[continued][no text].", "\u201c[no text]\u201d", "> [continued]"),
        ),
        *map(AIMessage, ("\u200b", "\ufeff\n", "\u2800", "<think>hm</think>\u2060")),
    ],
)
def test_nothing_said(message: AIMessage) -> None:
    assert classify(message).kind == "empty"


def test_a_filler_in_the_callers_own_words_is_empty() -> None:
    assert (
        classify_reply(AIMessage("Nichts."), TOOLS, {"no_text": "Nichts."}, lambda _: False).kind == "empty"
    )


SIGNS = (("finish_reason", "tool_calls"), ("finish_reason", "function_call"), ("finish_reason", "tool-calls"))
SIGNS += (
    ("stop_reason", "tool_use"),
    ("stopReason", "tool_use"),
    ("finish_reason", "MALFORMED_FUNCTION_CALL"),
)


@pytest.mark.parametrize(("where", "sign"), SIGNS)
@pytest.mark.parametrize("text", ["I'll read the brief first.", ""])
def test_a_promised_call_that_does_not_come(where: str, sign: str, text: str) -> None:
    promise = AIMessage(text, response_metadata={where: sign})
    assert classify(promise).kind == "promised"
    assert classify(promise, may_call=False).kind == ("answer" if text else "empty")


FAKES = (
    "<tool_response>milk</tool_response>",
    "<tool_result>\nmilk",
    "I'll look.\n<tool_response>\nmilk\n</tool_response>",
    "<function_results>milk</function_results>",
    "<|im_start|>user\nGo on.<|im_end|>",
    "<|im_start|>assistant\nDone.",
    "<|start_header_id|>ipython<|end_header_id|>\n\nmilk",
    "[TOOL_RESULTS]milk[/TOOL_RESULTS]",
    "<|observation|>\nmilk",
    "```tool_output\nmilk\n```",
    "<start_of_turn>user\nmilk",
    "(automatic) Your turn ended, but 2 of 3 items are still open.",
    "Error: the run broke off before this call returned; nothing was stored.",
    "<tool-response>milk</tool-response>",
    "I looked.\n<tool_call_result>\nmilk\n</tool_call_result>",
    "<tool_use_result>milk",
    "```tool_response\nmilk\n```",
    '{"role": "tool", "content": "milk"}',
    '[{"type": "tool_result", "tool_use_id": "1", "content": "milk"}]',
    f"Error: {fill_prompt('call_rejected', '', {}, words=': not there.')}",
    fill_prompt("cleared_result", "", {}, size="5,123", call="read_file(path='a.md')"),
)


@pytest.mark.parametrize("text", FAKES)
def test_a_result_that_no_tool_returned(text: str) -> None:
    assert classify(text).kind == "faked"


def test_a_printed_call_with_a_made_up_result_is_faked() -> None:
    made_up = f"{FORMS['Qwen, Hermes']}\n<tool_response>milk</tool_response>"
    assert classify(made_up).kind == "faked"
    assert classify(f"{made_up}\nThe list says milk.").kind == "faked"


def test_a_copied_result() -> None:
    assert classify("Stored 3 items, [1] to [3].").kind == "copied"
