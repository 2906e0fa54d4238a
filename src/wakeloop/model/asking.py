"""One request, waited for or not."""

from typing import Any

from langchain_core.messages import AnyMessage
from langchain_core.runnables import Runnable

from wakeloop.model.broken_stream import Hearing
from wakeloop.model.named import as_prompt, whole


def ask(voice: Runnable[Any, Any], wire: list[AnyMessage], heard: Hearing) -> Any:
    """Return what a model says, once more whole where its stream never began; None where it was not read."""
    raw, sent = None, as_prompt(voice, wire)
    with heard:
        raw = voice.invoke(sent, heard.config)
    if heard.silent:
        with heard:
            raw = whole(voice).invoke(sent, heard.config)
    return raw


async def aask(voice: Runnable[Any, Any], wire: list[AnyMessage], heard: Hearing) -> Any:
    """Return the same; the model is awaited."""
    raw, sent = None, as_prompt(voice, wire)
    with heard:
        raw = await voice.ainvoke(sent, heard.config)
    if heard.silent:
        with heard:
            raw = await whole(voice).ainvoke(sent, heard.config)
    return raw
