"""Strategies for conversations that break no rule."""

from itertools import count

from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from wakeloop.testing import calls, says

texts = st.text(alphabet="abc \n", min_size=1).filter(str.strip)


@st.composite
def rounds(draw: st.DrawFn, numbers: "count[int]") -> list[BaseMessage]:
    """A reply with calls and their results, in any order; some replies also have text."""
    keys = [f"c{next(numbers)}" for _ in range(draw(st.integers(1, 3)))]
    reply = calls(*(("tool", {"n": key}, key) for key in keys), text=draw(st.just("") | texts))
    order = draw(st.permutations(keys))
    return [reply, *(ToolMessage(draw(texts), tool_call_id=key) for key in order)]


@st.composite
def turns(draw: st.DrawFn, numbers: "count[int]") -> list[BaseMessage]:
    """One or two user messages, rounds, a closing reply."""
    asked: list[BaseMessage] = [HumanMessage(draw(texts)) for _ in range(draw(st.integers(1, 2)))]
    worked = [message for made in draw(st.lists(rounds(numbers), max_size=3)) for message in made]
    return [*asked, *worked, says(draw(texts))]


@st.composite
def threads(draw: st.DrawFn, *, system: bool | None = None) -> list[BaseMessage]:
    """A conversation that ends where a request may: with a user message or a result."""
    numbers = count()
    begun = draw(st.booleans()) if system is None else system
    head: list[BaseMessage] = [SystemMessage("rules")] if begun else []
    said = [message for turn in draw(st.lists(turns(numbers), max_size=2)) for message in turn]
    last = [HumanMessage(draw(texts))]
    open_round = draw(st.just([]) | rounds(numbers))
    return [*head, *said, *last, *open_round]


def requests_of(thread: list[BaseMessage]) -> list[list[BaseMessage]]:
    """Return every request that led to this conversation: the messages before each reply, and all of them."""
    cuts = [place for place, message in enumerate(thread) if isinstance(message, AIMessage)]
    return [*(thread[:place] for place in cuts), thread]
