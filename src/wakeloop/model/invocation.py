"""One request to the model, sync or async."""

from typing import Any

from langchain_core.messages import AnyMessage
from langchain_core.runnables import Runnable

from wakeloop.model.chat_models import to_prompt_value, without_streaming
from wakeloop.model.reply_watcher import ReplyWatcher


def invoke_model(model: Runnable[Any, Any], wire: list[AnyMessage], watcher: ReplyWatcher) -> Any:
    """Return the model's reply, or None if it could not be read and is to be asked for again.

    A stream that never began is asked for once more without streaming.
    """
    raw, prompt = None, to_prompt_value(model, wire)
    with watcher:
        raw = model.invoke(prompt, watcher.config)
    if watcher.never_began:
        with watcher:
            raw = without_streaming(model).invoke(prompt, watcher.config)
    return raw


async def ainvoke_model(model: Runnable[Any, Any], wire: list[AnyMessage], watcher: ReplyWatcher) -> Any:
    """Return what `invoke_model` does, awaiting the model."""
    raw, prompt = None, to_prompt_value(model, wire)
    with watcher:
        raw = await model.ainvoke(prompt, watcher.config)
    if watcher.never_began:
        with watcher:
            raw = await without_streaming(model).ainvoke(prompt, watcher.config)
    return raw
