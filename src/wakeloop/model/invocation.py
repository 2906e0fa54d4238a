"""One request, waited for or not."""

from typing import Any

from langchain_core.messages import AnyMessage
from langchain_core.runnables import Runnable

from wakeloop.model.chat_models import to_prompt_value, without_streaming
from wakeloop.model.reply_watcher import ReplyWatcher


def invoke_model(voice: Runnable[Any, Any], wire: list[AnyMessage], heard: ReplyWatcher) -> Any:
    """Return what a model says, once more whole where its stream never began; None where it was not read."""
    raw, sent = None, to_prompt_value(voice, wire)
    with heard:
        raw = voice.invoke(sent, heard.config)
    if heard.never_began:
        with heard:
            raw = without_streaming(voice).invoke(sent, heard.config)
    return raw


async def ainvoke_model(voice: Runnable[Any, Any], wire: list[AnyMessage], heard: ReplyWatcher) -> Any:
    """Return the same; the model is awaited."""
    raw, sent = None, to_prompt_value(voice, wire)
    with heard:
        raw = await voice.ainvoke(sent, heard.config)
    if heard.never_began:
        with heard:
            raw = await without_streaming(voice).ainvoke(sent, heard.config)
    return raw
