"""Cases C36 to C38, C40, C43 and C46: cut, invalid, refused, or whole, in every provider's form."""

from collections.abc import Iterator
from itertools import repeat
from typing import Any, ClassVar

import pytest
from forms import FORMS, Anthropic, Chat, Form, OldChat, Responses, Said, Server, names_of
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from rig import Rig, close, marks, results, statuses, write
from shared_tools import City, look

from wakeloop import LoopSettings, ReplyError, answer_of, create_todo_agent, preset
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.testing import calls, says

PARSED = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning")  # langchain-openai's
IN_FORM = pytest.mark.parametrize("form", FORMS)


def looks(sign: str = "", *, text: str = "", args: str = '{"place": "x"}') -> Said:
    return Said(text, (("look", args, "call1"),), sign)


# -- C36 -------------------------------------------------------------------------------------------------


@IN_FORM
def test_c36_half_a_reply(rig: Rig, form: Form) -> None:
    rig.speaks(form).build(write("a"), Said("Half an", sign="cut"), close(1), "Done.")
    rig.run("go")
    rig.model.assert_done()
    assert marks(rig.messages) == ["retry"]
    assert rig.ending == ("dormant", "settled", 0)
    rig.follow_up()


@IN_FORM
def test_c36_a_call_whose_arguments_look_complete(rig: Rig, form: Form) -> None:
    rig.speaks(form).build(looks("cut"), "Done.", tools=[look])
    rig.run("go")
    rig.model.assert_done()
    (result,) = results(rig.messages)
    assert result.status == "error"
    assert "cut off" in str(result.content)
    rig.follow_up()


def test_c36_bedrocks_sign(rig: Rig) -> None:
    told = {"stopReason": "max_tokens"}
    rig.build(
        AIMessage("Half an", response_metadata=told),
        calls(("look", {"place": "x"}), response_metadata=told),
        "Done.",
        tools=[look],
    )
    rig.run("go")
    rig.model.assert_done()
    assert [m.status for m in results(rig.messages)] == ["error"]
    rig.follow_up()


# -- C37 -------------------------------------------------------------------------------------------------

LISTED = Said(calls=(("look", '["a", "b"]', "bad1"), ("look", '{"place": "x"}', "good1")))


@pytest.mark.parametrize("form", [Chat(), Responses()], ids=["chat", "responses"])
def test_c37_arguments_that_are_not_an_object(rig: Rig, form: Form) -> None:
    rig.speaks(form).build(LISTED, looks(), "Done.", tools=[look])
    rig.run("go")
    heard = form.name == "chat" and rig.door.endswith("stream")
    told = [m.status for m in results(rig.messages)]
    assert told == (["success", "error", "success"] if heard else ["success"])
    rig.model.assert_done()  # where the client raises, both are lost: the same request again
    assert len(rig.model.requests) == 3
    assert rig.ending == ("dormant", "answered", 0)
    rig.follow_up()


@pytest.mark.parametrize("form", [Chat(), Responses()], ids=["chat", "responses"])
def test_c37_endless_ones_are_bounded_and_counted(rig: Rig, form: Form) -> None:
    bad = Said(calls=(("look", '["a", "b"]', "bad1"),))
    rig.speaks(form).build(write("a"), *[bad] * 11, tools=[look])
    rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("idle", "malformed_calls", 5)
    rig.follow_up()


def test_c37_a_call_that_the_provider_could_not_read(rig: Rig) -> None:
    """Gemini's and Bedrock's own sign for it, with nothing else in the reply."""
    lost = AIMessage("", response_metadata={"finish_reason": "MALFORMED_FUNCTION_CALL"})
    rig.build(write("a"), lost, close(1), "Done.")
    rig.run("go")
    rig.model.assert_done()
    assert marks(rig.messages) == []
    rig.then(write("b"), *[lost] * 11)
    rig.run("and now")
    assert rig.ending == ("idle", "malformed_calls", 5)
    rig.follow_up()


# -- C38 -------------------------------------------------------------------------------------------------


class Thinking(Anthropic):
    """Anthropic's with thinking on: a format cannot be forced there, and its client raises for prose."""

    more: ClassVar = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2048}


@pytest.fixture
def thinking() -> Form:
    pytest.importorskip("langchain_anthropic")
    return Thinking()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_c38_a_format_answered_in_prose(rig: Rig, thinking: Form) -> None:
    in_form = Said(calls=(("City", '{"city": "Bern"}', "f1"),))
    rig.speaks(thinking).build(write("a"), close(1), "bye", "It is Bern.", in_form, response_format=City)
    out = rig.run("go")
    rig.model.assert_done()
    assert out["structured_response"] == {"city": "Bern"}
    assert marks(rig.messages) == ["format", "format", "retry", "format"]
    assert "It is Bern." in [str(m.content) for m in rig.messages]
    assert rig.ending == ("dormant", "settled", 0)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_c38_endless_prose_is_bounded_and_kept(rig: Rig, thinking: Form) -> None:
    rig.speaks(thinking).build("bye", *["It is Bern."] * 5, response_format=City)
    out = rig.run("go")
    rig.model.assert_done()
    assert out["structured_response"] is None
    assert rig.ending == ("dormant", "malformed_calls", 0)
    assert [str(m.text) for m in rig.messages if m.type == "ai"] == ["bye", *["It is Bern."] * 5]


@PARSED
def test_c38_a_format_cut_off_when_the_client_raises(rig: Rig) -> None:
    """openai's own parser raises for a reply at the limit, and for one that was filtered."""
    rig.speaks(Chat()).build("bye", *[Said('{"city": "Be', sign="cut")] * 5, response_format=City)
    rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("dormant", "truncated", 0)


@PARSED
@pytest.mark.parametrize("prose", ["It is Bern.", '{"town": "Bern"}'])
def test_c38_prose_when_openais_parser_raises(rig: Rig, prose: str) -> None:
    rig.speaks(Chat()).build("bye", prose, '{"city": "Bern"}', response_format=City)
    out = rig.run("go")
    rig.model.assert_done()
    assert out["structured_response"] == {"city": "Bern"}
    assert prose in [str(m.content) for m in rig.messages]


# -- C40 -------------------------------------------------------------------------------------------------

REFUSALS = {
    "no words": (Said(sign="refused"), "[no text]"),
    "half a reply": (Said("As for", sign="refused"), "As for"),
    "words next to a call": (looks("refused", text="I will not."), "I will not."),
}


@IN_FORM
@pytest.mark.parametrize(("refusal", "words"), REFUSALS.values(), ids=REFUSALS)
def test_c40_a_refusal_is_the_last_word(rig: Rig, form: Form, refusal: Said, words: str) -> None:
    rig.speaks(form).build(write("a"), refusal, tools=[look])
    rig.run("go")
    rig.model.assert_done()  # asked no more: no wake, no correction
    assert rig.ending == ("idle", "refused", 0)
    last = rig.messages[-1]
    assert (last.type, str(last.content), last.tool_calls) == ("ai", words, [])
    assert len(results(rig.messages)) == 1
    rig.follow_up()


def test_c40_openais_field(rig: Rig) -> None:
    rig.build(write("a"), AIMessage("", additional_kwargs={"refusal": "I cannot help."}))
    out = rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("idle", "refused", 0)
    assert answer_of(out) == "I cannot help."
    rig.follow_up()


@pytest.mark.parametrize("form", [Chat(), Responses()], ids=["chat", "responses"])
def test_c91_openais_field_over_the_wire(rig: Rig, form: Form) -> None:
    pieces = form.name == "chat" and rig.door.endswith("stream")  # its client drops it
    rig.speaks(form).build([Said(refusal="I cannot help.")])
    out = rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("dormant", "refused", 0)
    assert answer_of(out) == ("I cannot help. Ask me another." if pieces else "I cannot help.")
    rig.follow_up()


@pytest.mark.parametrize("layer", [False, True], ids=["graph", "middleware"])
def test_c91_a_refusal_in_pieces(*, layer: bool) -> None:
    server = Server(Chat(), [Said(refusal="I cannot help.")])
    agent: Any = create_todo_agent(server.chat, [look])
    if layer:
        agent = create_agent(server.chat, [look], middleware=[WakeLoopMiddleware()])
    *_, (_, out) = agent.stream({"messages": [("user", "go")]}, stream_mode=["messages", "values"])
    server.assert_done()
    assert (out["todo_session"]["reason"], answer_of(out)) == ("refused", "I cannot help. Ask me another.")


@pytest.mark.parametrize("why", ["SAFETY", "FinishReason.SAFETY", "PROHIBITED_CONTENT"])
def test_c40_geminis_sign_with_half_a_reply(quick: Rig, why: str) -> None:
    quick.build(write("a"), says("Half", finish_reason=why))
    quick.run("go")
    quick.model.assert_done()
    assert quick.ending == ("idle", "refused", 0)


@IN_FORM
def test_c40_an_explanation_that_is_refused(rig: Rig, form: Form) -> None:
    todos = [{"content": "a", "status": "in_progress"}]
    rig.speaks(form).build(
        calls(("write_todos", {"todos": todos})), "no", "no", "no", Said("No.", sign="refused"),
        settings=preset("cubepi-strict"),
    )  # fmt: skip
    rig.run("go")
    rig.model.assert_done()
    assert rig.ending == ("idle", "refused", 0)
    if rig.keeps:
        ledger = rig.state["todo_ledger"]
        assert (ledger["todo_guard_blocked"], ledger["todo_guard_suppressed"]) == (None, True)


@IN_FORM
def test_c40_a_format_that_is_refused(rig: Rig, form: Form) -> None:
    rig.speaks(form).build("bye", Said("No.", sign="refused"), response_format=City)
    out = rig.run("go")
    rig.model.assert_done()
    assert out["structured_response"] is None
    assert rig.ending == ("dormant", "refused", 0)
    assert str(rig.messages[-1].content) == "No."


# -- C46 -------------------------------------------------------------------------------------------------

LOADING = "model is loading"
ERRORS = {
    "a string": {"error": LOADING},
    "Anthropic's": {"type": "error", "error": {"type": "overloaded_error", "message": LOADING}},
    "FastAPI's": {"detail": [{"loc": ["body"], "msg": LOADING}]},
    "MiniMax's": {"id": "1", "choices": None, "base_resp": {"status_code": 1004, "status_msg": LOADING}},
    "Cloudflare's": {"result": None, "success": False, "errors": [{"code": 7, "message": LOADING}]},
    "Baidu's": {"error_code": 336, "error_msg": LOADING},
    "Gemini's": [{"error": {"code": 503, "message": LOADING}}],
}


@pytest.mark.slow
@pytest.mark.rotating("form")
@pytest.mark.parametrize("form", FORMS[:3])
@pytest.mark.parametrize("body", ERRORS.values(), ids=ERRORS)
def test_c46_the_servers_words_wherever_they_are(quick: Rig, form: Form, body: Any) -> None:
    wrong = [Said(body=body)] * (2 if quick.door == "stream" else 1)
    quick.speaks(form).build(write("a"), *wrong, close(1), "Done.")
    with pytest.raises(ReplyError, match=rf"\(the server says: {LOADING}\)"):
        quick.run("go")
    quick.run(None)
    quick.model.assert_done()
    assert quick.ending == ("dormant", "settled", 0)
    quick.follow_up()


@PARSED
@pytest.mark.parametrize(
    "body", [{"detail": LOADING}, {"id": "1", "choices": []}], ids=["an error", "nothing"]
)
def test_c46_instead_of_a_format(quick: Rig, body: Any) -> None:
    quick.speaks(Chat()).build("bye", Said(body=body), '{"city": "Bern"}', response_format=City)
    with pytest.raises(ReplyError, match="could not be read"):
        quick.run("go")
    assert quick.run(None)["structured_response"] == {"city": "Bern"}
    quick.model.assert_done()
    quick.followed = True  # the agent's next request is for a format again


# -- C43 -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optional", [False, True], ids=["required", "optional"])
def test_c43_no_finish_reason(rig: Rig, optional: bool) -> None:
    settings = LoopSettings(finish_reason="optional") if optional else LoopSettings()
    whole = optional or not rig.door.endswith("stream")
    once = 1 if whole else 5
    rig.speaks(Chat()).build(
        *[looks("none")] * once,
        *([Said("Done.", sign="none")] if whole else []),
        tools=[look],
        settings=settings,
    )
    rig.run("go")
    rig.model.assert_done()
    assert [m.status for m in results(rig.messages)] == (["success"] if whole else ["error"] * 5)
    assert rig.ending == ("dormant", "answered" if whole else "truncated", 0)


def test_c43_a_setting_of_the_thread(kept: Rig) -> None:
    kept.speaks(Chat()).build(looks("none"), Said("Done.", sign="none"), tools=[look])
    kept.run({"messages": [("user", "go")], "todo_settings": {"finish_reason": "optional"}})
    kept.model.assert_done()
    assert statuses(kept.todos) == []
    assert kept.ending == ("dormant", "answered", 0)
    kept.then(repeat("Second answer."))


# -- C74 -------------------------------------------------------------------------------------------------


class RepeatsNames(Chat):
    """A server that sends the whole name with every piece of a stream."""

    def parts(self, said: Said) -> Iterator[dict[str, Any]]:
        first, *others = super().parts(said)
        yield first
        delta = first["choices"][0]["delta"]
        for call in delta.get("tool_calls", ()):
            again = {"index": call["index"], "function": {"name": call["function"]["name"], "arguments": ""}}
            for _ in range(2):
                yield {
                    **first,
                    "choices": [{"index": 0, "finish_reason": None, "delta": {"tool_calls": [again]}}],
                }
        if "function_call" in delta:
            again = {"name": delta["function_call"]["name"], "arguments": ""}
            yield {
                **first,
                "choices": [{"index": 0, "finish_reason": None, "delta": {"function_call": again}}],
            }
        yield from others


class RepeatsOldNames(RepeatsNames, OldChat):
    """The same with one `function_call`."""


@pytest.mark.parametrize("form", [RepeatsNames(), RepeatsOldNames()], ids=["chat", "old"])
def test_c74_a_name_repeated_in_pieces(rig: Rig, form: Form) -> None:
    planned = Said(calls=(("todo_write", '{"items": ["a"]}', "w1"),), sign="promised")
    done = Said(calls=(("todo_update", '{"id": 1, "status": "done"}', "u1"),), sign="promised")
    rig.speaks(form).build(planned, looks("promised"), done, "Done.", tools=[look])
    rig.run("go")
    rig.model.assert_done()
    assert [(m.name, m.status) for m in results(rig.messages)] == [
        ("todo_write", "success"),
        ("look", "success"),
        ("todo_update", "success"),
    ]
    assert names_of(rig.model) == ["todo_write", "look", "todo_update"]
    assert rig.ending == ("dormant", "settled", 0)
    rig.follow_up()


def looklook(place: str) -> str:
    """Look twice."""
    return f"seen {place} twice"


def test_c74_a_tool_of_that_name_wins(quick: Rig) -> None:
    quick.build(
        calls(("looklook", {"place": "x"}), ("looklooklook", {"place": "y"})), "Done.", tools=[look, looklook]
    )
    quick.run("go")
    assert [str(m.content) for m in results(quick.messages)] == ["seen x twice", "seen y"]
    quick.follow_up()


# -- C75 -------------------------------------------------------------------------------------------------


@PARSED
@pytest.mark.parametrize("form", [Chat(), OldChat(), Responses()], ids=["chat", "old", "responses"])
def test_c75_object_arguments_in_each_form(rig: Rig, form: Form) -> None:
    def call(name: str, arguments: Any) -> Said:
        return Said(calls=((name, arguments, f"{name}1"),), sign="promised")

    rig.speaks(form).build(call("todo_list", {}), call("look", {"place": "x"}), "Done.", tools=[look])
    rig.run("go")
    rig.model.assert_done()
    told = [(m.name, m.status) for m in results(rig.messages)]
    assert told == [("todo_list", "success"), ("look", "success")]
    assert rig.ending == ("dormant", "answered", 0)
    rig.follow_up()


# -- C87 -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [Chat(), OldChat(), Responses()], ids=["chat", "old", "responses"])
@pytest.mark.parametrize("layer", [False, True], ids=["graph", "middleware"])
def test_c87_arguments_of_5000_levels(form: Form, *, layer: bool) -> None:
    """If the client itself raises, the reply is lost and asked for again."""
    deep = looks("promised", args='{"place": ' + '{"a": ' * 5000 + "1" + "}" * 5001)
    server = Server(form, deep, looks("promised"), "Done.")
    agent: Any = create_todo_agent(server.chat, [look])
    if layer:
        agent = create_agent(server.chat, [look], middleware=[WakeLoopMiddleware(settings="wakeloop")])
    out = agent.invoke({"messages": [("user", "go")]})
    server.assert_done()
    told = [m.status for m in results(out["messages"])]
    assert told == (["success"] if form.name == "responses" else ["error", "success"])
    assert out["todo_session"]["reason"] == "answered"
