"""A strict fake model that plays a script."""

from collections.abc import Iterable, Iterator, Sized
from itertools import chain
from typing import Any, cast

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable
from pydantic import PrivateAttr

from wakeloop.testing.captured_requests import describe_message
from wakeloop.testing.recording_model import RecordingModel
from wakeloop.testing.replies import Step, is_step, step_error
from wakeloop.text.characters import pluralize


class ScriptError(AssertionError):
    """The run does not match the script: it made a call too many, or replies are left over."""


class _Script:
    """The replies still to come, shared by all copies of a model."""

    def __init__(self, replies: Iterable[Step]) -> None:
        self.size = len(replies) if isinstance(replies, Sized) else None
        self.coming: Iterator[Step] = iter(replies)
        self.unanswered: list[str] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Script":
        return self

    def next(self, number: int, request: list[BaseMessage]) -> Step:
        """Return the step for request `number`, counted from 1. Raises ScriptError past the last one."""
        for step in self.coming:
            if not is_step(step):
                raise step_error(step, f"Reply {number} of the script")
            return step
        complaint = f"Call {number} has no reply in the script"
        if self.size is not None:
            complaint += f", which has {self.size}"
        asked = describe_message(request[-1]) if request else "nothing"
        complaint += f". Its last message: {asked}"
        self.unanswered.append(complaint)
        raise ScriptError(complaint)


class ScriptedModel(RecordingModel):
    """A chat model that plays `replies` in order, one per request, and is strict about it.

    `ScriptedModel("hello", calls(("search", {"query": "x"})), TimeoutError)`, or one iterable of them. A
    reply is a string, an `AIMessage`, an exception to raise (instance or class, also KeyboardInterrupt), or a
    callable that gets the request (a list of messages) and returns any of these; a coroutine function works
    where the model is awaited. Each message is played as a fresh copy, without an id unless the script set
    one. An iterator may be endless: `ScriptedModel(itertools.repeat("still busy"))`. A callable is played
    once as well; `itertools.repeat(callable)` plays it forever.

    A call too many raises `ScriptError` (an AssertionError) with the number of the call, counted from 1, and
    its last message. `assert_done()` reports replies left over, and calls too many whose error the agent
    swallowed. With `tools=False` it acts as a model without tool support: `bind_tools` raises
    NotImplementedError. Text and calls stream in a few chunks that add up to the reply. Other keywords are
    those of `BaseChatModel`, such as `disable_streaming`.

    Example:
        >>> model = ScriptedModel("Hello!", "Bye!")
        >>> [model.invoke("Hi").text, model.invoke("Bye").text]
        ['Hello!', 'Bye!']
    """

    _script: _Script = PrivateAttr()
    _can_call: bool = PrivateAttr()

    def __init__(self, *replies: Step | Iterable[Step], tools: bool = True, **fields: Any) -> None:
        super().__init__(**fields)
        steps: Any = replies
        if len(replies) == 1 and not is_step(replies[0]):
            steps = replies[0]
        if not isinstance(steps, Iterable) or isinstance(steps, (dict, BaseMessage)):
            raise step_error(steps, "A reply")
        if isinstance(steps, Sized):
            for number, step in enumerate(steps, start=1):
                if not is_step(step):
                    raise step_error(step, f"Reply {number} of the script")
        self._script = _Script(cast("Iterable[Step]", steps))
        self._can_call = tools

    def assert_done(self) -> None:
        """Raise ScriptError if replies are left over, or if there was a call too many.

        An endless script always has replies left over.
        """
        if self._script.unanswered:
            raise ScriptError(self._script.unanswered[0])
        for first in self._script.coming:
            self._script.coming = chain([first], self._script.coming)
            shown = describe_message(first) if isinstance(first, AIMessage) else repr(first)
            after = pluralize(len(self.requests), "call")
            raise ScriptError(f"The script has replies left over after {after}, first: {shown}")

    def bind_tools(self, tools: Any, **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        """Return this model with tools. Raises NotImplementedError if it was made with `tools=False`."""
        if not self._can_call:
            raise NotImplementedError("This scripted model was made without tool support (tools=False).")
        return super().bind_tools(tools, **kwargs)

    def _choose_step(self, request: list[BaseMessage]) -> Step:
        return self._script.next(len(self.requests), request)
