"""What is done for speed changes nothing that can be seen."""

from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.runnables import RunnableLambda
from langgraph.channels import BinaryOperatorAggregate, DeltaChannel

from wakeloop.channels import merge_entries, merge_messages
from wakeloop.cheap import Delta, Folded
from wakeloop.model import as_prompt
from wakeloop.testing import ScriptedModel

THEIRS: dict[type, Any] = {
    Delta: DeltaChannel(merge_messages),
    Folded: BinaryOperatorAggregate(list, merge_entries),
}


def parts(channel: Any) -> dict[str, Any]:
    names = {name for kind in type(channel).__mro__ for name in getattr(kind, "__slots__", ())}
    return {name: getattr(channel, name, None) for name in names}


@pytest.mark.parametrize(
    "channel",
    [Delta(merge_messages, list, snapshot_frequency=7), Folded(list, merge_entries)],
    ids=["delta", "folded"],
)
def test_a_copy_has_every_part_of_the_channel_and_goes_its_own_way(channel: Any) -> None:
    channel.key, channel.value = "k", []
    copied = channel.copy()
    assert type(copied) is type(channel)
    assert parts(copied) == parts(channel)
    assert set(parts(channel)) == set(parts(THEIRS[type(channel)]))
    copied.update([[HumanMessage("x", id="1")] if type(channel) is Delta else ["x"]])
    assert (len(copied.get()), channel.get()) == (1, [])


class Own(ScriptedModel):
    """A model that reads its input itself."""

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:  # noqa: A002 - as BaseChatModel names it
        assert isinstance(input, list)
        return super().invoke(input, config, **kwargs)


def test_a_chat_model_gets_the_value_that_langchain_makes_of_a_list() -> None:
    asked: list[Any] = [HumanMessage("go")]
    model = ScriptedModel([])
    prompt = as_prompt(model, asked)
    assert prompt == ChatPromptValue(messages=asked) == BaseChatModel._convert_input(model, asked)
    assert prompt.to_messages()[0] is asked[0]
    assert isinstance(as_prompt(model.bind(stop=["."]), asked), ChatPromptValue)


def test_what_has_an_invoke_of_its_own_gets_the_list() -> None:
    asked: list[Any] = [HumanMessage("go")]
    assert as_prompt(Own([]), asked) is asked
    assert as_prompt(Own([]).bind(stop=["."]), asked) is asked
    assert as_prompt(RunnableLambda(len), asked) is asked
