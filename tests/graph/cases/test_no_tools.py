"""Case C39: no request without tools over a history with calls, and no call where none is wanted."""

from typing import Any

import pytest
from forms import FORMS, Chat, Form, Said
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from rig import Rig, close, write
from shared_tools import City, look

from wakeloop import preset
from wakeloop.testing import calls

IN_FORM = pytest.mark.parametrize("form", FORMS)
NO_CALL = {"chat": "none", "responses": "none", "anthropic": {"type": "none"}, "bedrock": None}
PARSED = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning")  # langchain-openai's


ITEMS = {"todos": [{"content": "a", "status": "in_progress"}]}
AWAY = Said("I could not.", calls=(("look", '{"place": "x"}', "away"),))


@IN_FORM
def test_c39_an_explanation(rig: Rig, form: Form) -> None:
    rig.speaks(form).build(
        calls(("write_todos", ITEMS)), "no", "no", "no", AWAY, settings=preset("cubepi-strict"), tools=[look]
    )
    rig.run("go")
    rig.model.assert_done()
    assert rig.model.bound == [2] * 5
    assert rig.model.choices == [*[None] * 4, NO_CALL[form.name]]
    assert rig.ending == ("idle", "guard_blocked", 0)
    assert rig.messages[-1].tool_calls == []


@PARSED
@IN_FORM
def test_c39_a_format(rig: Rig, form: Form) -> None:
    """A format that is a tool itself is asked for as it is: its call must not be forbidden."""
    as_tool = form.name in ("anthropic", "bedrock")
    given = Said(calls=(("City", '{"city": "Bern"}', "f1"),)) if as_tool else '{"city": "Bern"}'
    rig.speaks(form).build(write("a"), close(1), "bye", given, response_format=City, tools=[look])
    out = rig.run("go")
    rig.model.assert_done()
    assert out["structured_response"] == {"city": "Bern"}
    forced = {"anthropic": {"type": "tool", "name": "City"}, "bedrock": {"tool": {"name": "City"}}}
    assert rig.model.bound == [4, 4, 4, 1 if as_tool else 4]
    assert rig.model.choices == [None, None, None, forced.get(form.name, "none")]
    assert rig.ending == ("dormant", "settled", 0)
    rig.followed = True  # the agent's next request is for a format again


@pytest.mark.slow
@PARSED
def test_c39_a_format_next_to_the_callers_own_fields(bare: Rig) -> None:
    """`extra_body` is the caller's too."""

    class Along(Chat):
        def client(self, server: Any) -> Any:
            return super().client(server).model_copy(update={"extra_body": {"top_k": 3}})

    bare.speaks(Along()).build(write("a"), close(1), "bye", '{"city": "Bern"}', response_format=City)
    bare.run("go")
    bare.model.assert_done()
    assert [payload["top_k"] for payload in bare.model.payloads] == [3] * 4
    assert bare.model.choices[-1] == "none"
    bare.followed = True


@PARSED
@IN_FORM
def test_c39_a_format_without_earlier_calls_is_asked_for_alone(rig: Rig, form: Form) -> None:
    as_tool = form.name in ("anthropic", "bedrock")
    given = Said(calls=(("City", '{"city": "Bern"}', "f1"),)) if as_tool else '{"city": "Bern"}'
    rig.speaks(form).build("bye", given, response_format=City)
    rig.run("go")
    rig.model.assert_done()
    assert rig.model.bound == [3, 1 if as_tool else 0]
    rig.followed = True


@IN_FORM
@pytest.mark.parametrize("own", [False, True], ids=["no tool", "a tool of its own"])
def test_c39_a_list_switched_off_in_mid_thread(rig: Rig, form: Form, own: bool) -> None:
    """After earlier calls the list's tools stay bound if no other tool is."""
    on = preset("loki").model_copy(update={"auto_continue": True})
    tools = [look] if own else []
    history = [
        HumanMessage("q"),
        AIMessage("", tool_calls=[{"name": "todo__list", "args": {}, "id": "1"}]),
        ToolMessage("nothing", tool_call_id="1"),
        AIMessage("so"),
        HumanMessage("go"),
    ]
    call = Said("Well.", calls=(("todo__list", "{}", "away"),))
    rig.speaks(form).build(*([call] if not own else ["Well."]), settings=on, tools=tools)
    rig.grows = False  # the instructions come and go with the list
    rig.run({"messages": history, "todo_settings": {"auto_continue": False}})
    rig.model.assert_done()
    assert rig.model.bound == [1 if own else 5]
    assert rig.model.choices == [None if own else NO_CALL[form.name]]
    assert rig.messages[-1].tool_calls == []
    assert rig.ending == ("dormant", "answered", 0)


def test_c39_a_client_outside_the_table_is_never_sent_the_bare_word(rig: Rig) -> None:
    rig.build(
        calls(("write_todos", ITEMS)),
        "no",
        "no",
        "no",
        calls(("look", {"place": "x"}), text="I could not."),
        settings=preset("cubepi-strict"),
        tools=[look],
    )
    rig.run("go")
    rig.model.assert_done()
    assert [len(tools) for tools in rig.model.bound] == [2] * 5
    assert rig.model.options == [{}] * 5
    assert rig.messages[-1].tool_calls == []
