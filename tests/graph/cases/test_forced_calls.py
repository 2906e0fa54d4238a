"""Case C103 through real clients, whose servers honour, ignore or refuse a forced call."""

from collections.abc import Iterator
from itertools import repeat
from typing import Any

import pytest
from forms import FORMS, Anthropic, Bedrock, Chat, Form, Said
from rig import Rig, close, write

ONE_CALL = {"chat": "required", "responses": "required", "anthropic": {"type": "any"}, "bedrock": {"any": {}}}


IN_FORM = pytest.mark.parametrize("form", FORMS)


@pytest.mark.slow
@IN_FORM
def test_c103_in_each_form(quick: Rig, form: Form) -> None:
    """The exact count, for a model that ignores the choice."""
    quick.speaks(form).build(write("a"), *repeat("All done.", 7))
    quick.run("go")
    quick.model.assert_done()
    assert quick.ending == ("idle", "stalled", 5)
    assert quick.model.choices == [*[None] * 3, *[ONE_CALL[form.name]] * 5]
    assert quick.model.bound == [3] * 8


@IN_FORM
def test_c103_a_model_that_honours_it(quick: Rig, form: Form) -> None:
    quick.speaks(form).build(write("a"), "All done.", "All done.", close(1), "Now it is.")
    quick.run("go")
    quick.model.assert_done()
    assert quick.ending == ("dormant", "settled", 2)
    assert quick.model.choices == [None, None, None, ONE_CALL[form.name], None]


@IN_FORM
def test_c103_a_server_that_refuses_it(quick: Rig, form: Form) -> None:
    """It is asked once; the same request follows without the choice, and so do all others."""

    def script() -> Iterator[Any]:
        yield write("a")
        yield from repeat("All done.", 7)

    quick.speaks(form).build(script())
    server, refused = quick.model, []
    plain = server.take

    def take(payload: dict[str, Any]) -> Said | str:
        if form.choice(payload) is None:
            return plain(payload)
        refused.append(payload)
        return "400 tool_choice must not force a call"

    server.take = take
    quick.run("go")
    server.assert_done()
    assert quick.ending == ("idle", "stalled", 5)
    assert len(refused) == 1
    assert server.choices == [None] * 8
    assert len(form.items(refused[0])) == len(form.items(server.payloads[3]))


class Thinking(Anthropic):
    """With extended thinking langchain-anthropic would drop the choice, and warn at each request."""

    def client(self, server: Any) -> Any:
        thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2048}
        return super().client(server).model_copy(update=thinking)


class Llama(Bedrock):
    """A model that, as langchain-aws knows, takes no such choice: it would raise."""

    def client(self, server: Any) -> Any:
        return super().client(server).model_copy(update={"supports_tool_choice_values": ("auto",)})


class Own(Chat):
    """The user's own choice goes with every request."""

    def client(self, server: Any) -> Any:
        return super().client(server).model_copy(update={"model_kwargs": {"tool_choice": "auto"}})


@pytest.mark.parametrize(("form", "choice"), [(Thinking(), None), (Llama(), None), (Own(), "auto")])
def test_c103_if_the_client_cannot_force_or_the_user_has_chosen_only_words(
    quick: Rig, form: Form, choice: Any
) -> None:
    quick.speaks(form).build(write("a"), *repeat("All done.", 7))
    quick.run("go")
    assert quick.model.choices == [choice] * 8
    assert quick.ending == ("idle", "stalled", 5)
