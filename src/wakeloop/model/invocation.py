"""One request to the model, sync or async."""

from typing import Any

from langchain_core.messages import AnyMessage
from langchain_core.runnables import Runnable

from wakeloop.model.bindings import BoundModel
from wakeloop.model.chat_models import to_prompt_value, without_streaming
from wakeloop.model.reply_watcher import ReplyWatcher


def invoke_model(bound: BoundModel, wire: list[AnyMessage], watcher: ReplyWatcher) -> Any:
    """Return the model's reply, or None if it could not be read and is to be asked for again.

    A stream that never began is asked for once more without streaming, and a request whose choice of a call
    was refused once more without that choice.
    """
    prompt, attempt = to_prompt_value(bound.model, wire), bound.model
    while True:
        raw = None
        with watcher:
            raw = attempt.invoke(prompt, watcher.config)
        again = _choose_next_attempt(attempt, bound, watcher)
        if again is None:
            return raw
        attempt = again


async def ainvoke_model(bound: BoundModel, wire: list[AnyMessage], watcher: ReplyWatcher) -> Any:
    """Return what `invoke_model` does, awaiting the model."""
    prompt, attempt = to_prompt_value(bound.model, wire), bound.model
    while True:
        raw = None
        with watcher:
            raw = await attempt.ainvoke(prompt, watcher.config)
        again = _choose_next_attempt(attempt, bound, watcher)
        if again is None:
            return raw
        attempt = again


def _choose_next_attempt(
    attempt: Runnable[Any, Any], bound: BoundModel, watcher: ReplyWatcher
) -> Runnable[Any, Any] | None:
    """Return the model for one more attempt at the same request, or None if its reply or error is final."""
    if watcher.drops_choice:
        return bound.unforced
    return without_streaming(attempt) if watcher.never_began else None
