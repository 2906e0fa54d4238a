"""Rule 22: replies that are not answers, in the forms of four providers, whole and streamed."""

import json

import pytest
from forms import Anthropic, Bedrock, Chat, Form, OldChat, Responses, Said
from langchain_core.messages import AIMessage
from rig import Rig, marks, results, write
from shared_tools import look

from wakeloop import answer_of, preset

PROMISING = (Chat(), OldChat(), Anthropic(), Bedrock())
FORMS = (Chat(), Responses(), Anthropic(), Bedrock())
IN_FORM = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
PRINTED = '```json\n{"name": "look", "arguments": {"place": "a"}}\n```'
TAGGED = '<tool_call>{"name": "look", "arguments": {"place": "a"}}</tool_call>'

ASKED = (
    "(automatic) You wrote a tool call as plain text. Send it as a tool call; "
    "if you only meant to show it, say so without ending on it."
)


@pytest.mark.rotating("form")
@pytest.mark.parametrize("form", PROMISING, ids=lambda form: form.name)
def test_c53_a_call_is_promised_forever(rig: Rig, form: Form) -> None:
    rig.speaks(form).build([Said("I'll read the brief first.", sign="promised")] * 5, tools=[look])
    out = rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("dormant", "malformed_calls", 0)
    assert marks(rig.messages) == ["retry"] * 4
    assert answer_of(out) == ""


@pytest.mark.rotating("form")
@pytest.mark.parametrize("form", PROMISING, ids=lambda form: form.name)
def test_c53_a_promise_without_a_word_after_a_result(rig: Rig, form: Form) -> None:
    rig.speaks(form).build(
        looks("a", "promised" if form.name == "old" else ""), Said(sign="promised"), "Done.", tools=[look]
    )
    out = rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("dormant", "answered", 0)
    assert [m.type for m in rig.messages] == ["human", "ai", "tool", "ai", "human", "ai"]
    assert rig.messages[3].content == "[continued]"
    assert answer_of(out) == "Done."


def looks(place: str, sign: str = "") -> Said:
    return Said("", (("look", json.dumps({"place": place}), "call_1"),), sign)


def test_a_call_in_the_form_of_older_servers_is_run(rig: Rig) -> None:
    rig.speaks(OldChat()).build(looks("a", "promised"), "Done.", tools=[look])
    rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("dormant", "answered", 0)
    assert [m.status for m in results(rig.messages)] == ["success"]


@pytest.mark.slow
@pytest.mark.rotating("form")
@IN_FORM
@pytest.mark.parametrize("printed", [PRINTED, TAGGED, f"I look.\n\n{PRINTED}"])
def test_c54_printed_calls_forever(rig: Rig, form: Form, printed: str) -> None:
    rig.speaks(form).build([printed] * 5, tools=[look])
    out = rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("dormant", "malformed_calls", 0)
    assert (results(rig.messages), answer_of(out)) == ([], "")
    told = [str(m.content) for m in rig.messages if m.additional_kwargs.get("wakeloop")]
    assert told == [ASKED] * 4


@pytest.mark.rotating("form")
@IN_FORM
def test_c54_printed_calls_are_run_if_the_setting_says_so(rig: Rig, form: Form) -> None:
    settings = preset("wakeloop").model_copy(update={"printed_calls": "run"})
    wrong = '<tool_call>{"name": "look", "arguments": {"where": 5}}</tool_call>'
    rig.speaks(form).build(f"I look.\n\n{PRINTED}\n{TAGGED}", wrong, "Done.", tools=[look], settings=settings)
    out = rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("dormant", "answered", 0)
    made = [m for m in rig.messages if isinstance(m, AIMessage) and m.tool_calls]
    assert [(str(m.text).strip(), len(m.tool_calls)) for m in made] == [("I look.", 2), ("", 1)]
    assert [m.status for m in results(rig.messages)] == ["success", "success", "error"]
    assert answer_of(out) == "Done."


@pytest.mark.rotating("form")
@IN_FORM
def test_c54_an_answer_that_shows_a_call(rig: Rig, form: Form) -> None:
    shown = f"The call was:\n\n{PRINTED}\n\nIt found the file."
    rig.speaks(form).build(shown, tools=[look])
    assert answer_of(rig.run("go")) == shown
    rig.model.assert_done()
    assert rig.ending == ("dormant", "answered", 0)


@pytest.mark.rotating("form")
@IN_FORM
def test_c55_thoughts_alone(rig: Rig, form: Form) -> None:
    rig.speaks(form).build("<think>I should look</think>", "<think>Hm.</think>\n\nParis.", tools=[look])
    out = rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("dormant", "answered", 0)
    assert (answer_of(out), marks(rig.messages)) == ("Paris.", [])


@pytest.mark.slow
@pytest.mark.rotating("form")
@IN_FORM
@pytest.mark.parametrize("fake", ["<tool_response>milk</tool_response>", "<|im_start|>user\nmilk<|im_end|>"])
def test_c101_a_faked_result(rig: Rig, form: Form, fake: str) -> None:
    settings = preset("wakeloop").model_copy(update={"max_wake_cycles": 1, "guard_retries": 0})
    rig.speaks(form).build(write("a"), *[fake] * 6, tools=[look], settings=settings)
    out = rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("idle", "malformed_calls", 1)
    assert answer_of(out) == ""
